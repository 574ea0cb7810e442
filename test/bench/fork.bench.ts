/**
 * Forks of an agent with a workspace of 100 MB, in Docker: from the request to a running agent, while spare agents are
 * ready. The alternative is a copy of the same files, and the engine's own boot in a container of the same image.
 */
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { cp, mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { BASE_IMAGE } from '../support/docker.ts'
import { enginesDir } from '../support/engines.ts'
import { startModel } from '../support/model.ts'
import { until } from '../support/processes.ts'
import { readMetrics, startStack } from '../support/stack.ts'
import { type Agent, Api } from './support/agent-api.ts'
import { bareConfig, startBareGateway } from './support/bare-gateway.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { against, compare, time } from './support/time.ts'

export const title = 'Forks'

const AT_ONCE = 5
const ROUNDS = 3
const FILES = 1000
const FILE_BYTES = 100_000
const FULL_MS = 600_000
const MAX_MS = { one: 1500, several: 5000 }
const execute = promisify(execFile)

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const model = await startModel()
  ending.defer(() => model.stop())
  const env = {
    BERTH_RUNTIME: 'docker',
    BERTH_BASE_IMAGE: BASE_IMAGE,
    BERTH_ENGINES_DIR: enginesDir,
    BERTH_POOL: String(AT_ONCE),
    ...model.env,
  }
  const stack = await startStack({ kind: 'embedded', env })
  ending.defer(() => stack.stop())
  const api = new Api(stack, await stack.createKey())
  const full = () =>
    until(
      'all spares are ready',
      async () => {
        const metrics = await (await readMetrics(stack.env, 'web')).text()
        return metrics.includes(`berth_spares{status="running"} ${AT_ONCE}\n`)
      },
      FULL_MS,
    )

  const parent = await api.create()
  const command = `mkdir workspace/data && cd workspace/data && head -c ${FILES * FILE_BYTES} /dev/urandom | split -a 4 -b ${FILE_BYTES}`
  await api.call('POST', `/v0/agents/${parent.agentId}/console/exec`, { command })
  await api.call('POST', `/v0/agents/${parent.agentId}/snapshots/sync`, undefined, { prefer: 'wait=180' })
  const inspect = ['inspect', '--format', '{{.Config.Image}}', `berth-${parent.agentId}`]
  const image = (await execute('docker', inspect)).stdout.trim()
  const fork = async (count: number) => {
    await full()
    let forks: { agent?: Agent & { status: string }; error?: string }[] = []
    const took = await time(async () => {
      const path = `/v0/agents/${parent.agentId}/fork`
      forks = (await api.call('POST', path, { count }, { prefer: 'wait=180' })).forks
    })
    for (const { agent, error } of forks) {
      if (agent?.status !== 'running') throw new Error(`a fork is ${agent?.status}: ${error}`)
      await api.remove(agent)
    }
    return took
  }
  const single: number[] = []
  for (let round = 0; round < ROUNDS; round++) single.push(await fork(1))
  const several = await fork(AT_ONCE)
  await stack.stop()

  const folder = await mkdtemp(join(tmpdir(), 'fork-'))
  ending.defer(() => rm(folder, { recursive: true }))
  await mkdir(join(folder, 'from'))
  for (let file = 0; file < FILES; file++)
    await writeFile(join(folder, 'from', `${file}`), randomBytes(FILE_BYTES))
  const rounds: { berth: number; bare: number }[] = []
  for (const [round, berth] of single.entries()) {
    const copied = await time(() => cp(join(folder, 'from'), join(folder, `${round}`), { recursive: true }))
    const gateway = await startBareGateway(image, bareConfig(model.url))
    await gateway.stop()
    rounds.push({ berth, bare: copied + gateway.readyMs })
  }
  return [
    against('a fork with 100 MB, median', median(single), MAX_MS.one),
    against('five forks with 100 MB each', several, MAX_MS.several),
    compare('a fork, next to a copy of its files and a boot', rounds, {}),
  ]
}

if (import.meta.main) print(title, await bench())
