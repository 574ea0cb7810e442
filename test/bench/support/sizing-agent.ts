/** The size of an agent in Docker: memory after a first chat, disk of its home, its snapshots and the engine. */
import { execFile } from 'node:child_process'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { AgentHost } from '../../support/agent-host.ts'
import { BASE_IMAGE, docker } from '../../support/docker.ts'
import { enginesDir } from '../../support/engines.ts'
import { startModel } from '../../support/model.ts'
import { startStack } from '../../support/stack.ts'
import { type Agent, Api } from './agent-api.ts'
import type { Result } from './report.ts'

const MODEL_REQUEST = {
  model: 'openclaw/default',
  messages: [{ role: 'user', content: 'ping' }],
}
/** Lines of `<proportional bytes> <command>` of all processes in the sandbox. */
const PROCESSES = `for p in /proc/[0-9]*; do
  echo "$(grep -a ^Pss: $p/smaps_rollup | tr -dc 0-9) $(tr '\\0' ' ' < $p/cmdline)"
done 2>/dev/null`

const REST_MS = 60_000

export async function measureAgent(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const model = await startModel()
  ending.defer(() => model.stop())
  const stack = await startStack({
    kind: 'embedded',
    env: {
      BERTH_RUNTIME: 'docker',
      BERTH_BASE_IMAGE: BASE_IMAGE,
      BERTH_ENGINES_DIR: enginesDir,
      // Only the snapshot that is requested.
      BERTH_INTERVALS: 'snapshots=86400',
      ...model.env,
    },
  })
  ending.defer(() => stack.stop())
  const api = new Api(stack, await stack.createKey())
  const agent = await api.create()
  ending.defer(() => api.remove(agent))

  const answer = await new AgentHost(stack.url, agent.agentId, agent.gatewayToken).post(
    '/v1/chat/completions',
    MODEL_REQUEST,
  )
  if (!answer.text.includes('pong')) throw new Error(`chat: ${answer.status} ${answer.text}`)
  const busy = await processes(api, agent)
  await new Promise((resolve) => setTimeout(resolve, REST_MS))
  const resting = await processes(api, agent)
  const [workspace, state] = await Promise.all([
    diskBytes(api, agent, '/home/node/clawd'),
    diskBytes(api, agent, '/home/node/.openclaw'),
  ])
  const store = join(stack.dataDir, 'ipfs/private')
  const before = await localBytes(store)
  await api.call('POST', `/v0/agents/${agent.agentId}/snapshots/sync`, undefined, { prefer: 'wait=120' })
  const snapshot = (await localBytes(store)) - before

  const container = await docker.getContainer(`berth-${agent.agentId}`).inspect()
  const [image, base] = await Promise.all([
    docker.getImage(container.Image).inspect(),
    docker.getImage(BASE_IMAGE).inspect(),
  ])
  return [
    { what: 'agentd, right after a first chat and a minute later', berth: both(busy.agentd, resting.agentd) },
    { what: 'its engine, likewise', berth: both(busy.engine, resting.engine) },
    { what: 'agent after a first chat, disk: workspace', berth: megabytes(workspace) },
    { what: "agent after a first chat, disk: the engine's state", berth: megabytes(state) },
    { what: 'first snapshot of it, in the store', berth: megabytes(snapshot) },
    { what: "engine's image, beside its base", berth: megabytes(image.Size - base.Size) },
    {
      what: "engine's folder, beside the image",
      berth: megabytes(await localBytes(join(enginesDir, version(image)))),
    },
  ]
}

const both = (...bytes: number[]) => bytes.map(megabytes).join(', ')

const version = (image: { RepoTags: string[] }) => /\d+\.\d+\.\d+/.exec(image.RepoTags.join(' '))?.[0] ?? ''

async function processes(api: Api, agent: Agent): Promise<{ agentd: number; engine: number }> {
  const lines = (await exec(api, agent, PROCESSES)).split('\n')
  const sum = (agentd: boolean) =>
    lines
      .filter((line) => line.includes('/opt/agentd/') === agentd)
      .reduce((total, line) => total + 1024 * (Number.parseInt(line, 10) || 0), 0)
  return { agentd: sum(true), engine: sum(false) }
}

const diskBytes = async (api: Api, agent: Agent, path: string) =>
  Number.parseInt(await exec(api, agent, `du --summarize --block-size=1 ${path}`), 10)

async function exec(api: Api, { agentId }: Agent, command: string): Promise<string> {
  const { stdout } = await api.call('POST', `/v0/agents/${agentId}/console/exec`, { command })
  return stdout
}

/** Allocated bytes on the disk of this machine. */
export async function localBytes(path: string): Promise<number> {
  const { stdout } = await promisify(execFile)('du', ['--summarize', '--block-size=1', path])
  return Number.parseInt(stdout, 10)
}

export const megabytes = (bytes: number) => `${(bytes / 1e6).toFixed(bytes < 1e7 ? 1 : 0)} MB`
