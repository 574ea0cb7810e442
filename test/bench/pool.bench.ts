/**
 * From the request to a running agent in Docker: with a spare agent in the pool, against half a second, and without,
 * against `docker run` of the same image and the engine's own boot. Needs a Docker engine, see `scripts/ci/docker.sh`.
 */
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { BASE_IMAGE } from '../support/docker.ts'
import { enginesDir } from '../support/engines.ts'
import { startModel } from '../support/model.ts'
import { until } from '../support/processes.ts'
import { readMetrics, type Stack, startStack } from '../support/stack.ts'
import { type Agent, Api } from './support/agent-api.ts'
import { bareConfig, startBareGateway } from './support/bare-gateway.ts'
import { median, quantile } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { against, compare, ms, time } from './support/time.ts'

export const title = 'Pool'

const TAKEN = 8
const WITH_SECRET = 4
const COLD = 3
const FULL_MS = 300_000
const MAX_MS = { median: 500, p95: 1000 }
const execute = promisify(execFile)

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const model = await startModel()
  ending.defer(() => model.stop())
  const start = async (size: number) => {
    const env = {
      BERTH_RUNTIME: 'docker',
      BERTH_BASE_IMAGE: BASE_IMAGE,
      BERTH_ENGINES_DIR: enginesDir,
      BERTH_POOL: String(size),
      ...model.env,
    }
    const stack = await startStack({ kind: 'embedded', env })
    return { stack, api: new Api(stack, await stack.createKey()) }
  }

  const { stack, api } = await start(1)
  ending.defer(() => stack.stop())
  const taken: number[] = []
  for (let round = 0; round < TAKEN; round++) taken.push((await takeSpare(stack, api)).ms)
  const secret = await api.call('POST', '/v0/secrets', { name: 'MY_BENCH_KEY', value: 'a value' })
  const secretIds = [secret.secret.id]
  const withSecret: number[] = []
  for (let round = 0; round < WITH_SECRET; round++)
    withSecret.push((await takeSpare(stack, api, { secretIds })).ms)
  const { image } = await takeSpare(stack, api)
  await stack.stop()

  const without = await start(0)
  ending.defer(() => without.stack.stop())
  const rounds: { berth: number; bare: number }[] = []
  for (let round = 0; round < COLD; round++) {
    let agent: Agent | undefined
    const berth = await time(async () => {
      agent = await without.api.create()
    })
    if (agent) await without.api.remove(agent)
    const bare = await startBareGateway(image, bareConfig(model.url))
    await bare.stop()
    rounds.push({ berth, bare: bare.readyMs })
  }
  return [
    against('from the request to an agent that was a spare, median', median(taken), MAX_MS.median),
    against('from the request to an agent that was a spare, 95 %', quantile(taken, 0.95), MAX_MS.p95),
    { what: 'with a secret in its environment, median', berth: ms(median(withSecret)) },
    compare('from the request to an agent without a pool', rounds, { goal: { atMost: 1.1 } }),
  ]
}

/** Creates an agent as soon as a spare is ready, and removes it. */
async function takeSpare(stack: Stack, api: Api, more = {}): Promise<{ ms: number; image: string }> {
  const isReady = async () => {
    const metrics = await (await readMetrics(stack.env, 'web')).text()
    return /^berth_spares\{status="running"\} 1$/m.test(metrics)
  }
  await until('a spare is ready', isReady, FULL_MS)
  const began = performance.now()
  const { agent } = await api.call('POST', '/v0/agents', { name: 'bench', ...more }, { prefer: 'wait=180' })
  const took = performance.now() - began
  if (agent.status !== 'running') throw new Error(`the agent is ${agent.status}: ${agent.statusReason}`)
  const inspect = ['inspect', '--format', '{{.Config.Image}}', `berth-${agent.agentId}`]
  const { stdout } = await execute('docker', inspect)
  // Metrics are cached: they may still show the spare that was taken.
  await until('its place is empty', async () => !(await isReady()))
  await api.remove(agent)
  return { ms: took, image: stdout.trim() }
}

if (import.meta.main) print(title, await bench())
