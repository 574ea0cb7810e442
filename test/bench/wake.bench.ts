/**
 * A hundred new agents, and then a hundred stopped ones, are started at once, as processes with the stand-in engine.
 * The benchmark measures when the first, the median and the last one is ready, their memory, and how long requests of
 * another workspace take during the starts. Compared with the bare engines, as many at a time as there are processors.
 *
 * BERTH_TEST_WAKE is the number of agents, BERTH_TEST_WAKE_AT_A_TIME `agents` of BERTH_CONCURRENCY. docs/scale.md has
 * the figures.
 */
import { mkdtemp, rm } from 'node:fs/promises'
import { cpus, tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { forEachConcurrently } from '../../src/lib/each-of.ts'
import { MARKER } from '../../src/sandboxes/process/table.ts'
import { freePort, type Running, run, until } from '../support/processes.ts'
import { AgentWorld, installEngine } from '../torture/agent-world.ts'
import { endOnSignal } from './support/end-on-signal.ts'
import { quantile } from './support/numbers.ts'
import { findProcesses, proportionalBytes } from './support/process-use.ts'
import { print, type Result } from './support/report.ts'
import { ms } from './support/time.ts'

export const title = 'A hundred agents that start at once'

const AGENTS = Number(process.env.BERTH_TEST_WAKE ?? 100)
const AT_A_TIME = Number(process.env.BERTH_TEST_WAKE_AT_A_TIME ?? 4)
const CALM_MS = 5000
const PROBE_PAUSE_MS = 50
const STORM_MS = 600_000
/** Requests for starts at a time; all are accepted within a second or two. */
const CLIENTS = 16
const BARE_VERSION = '2026.1.1'

interface Storm {
  /** Ms from the first request until each agent was ready, ascending. */
  ready: number[]
  /** Ms until all requests were accepted. */
  accepted: number
  /** Ms of another workspace's requests in the meantime. */
  others: number[]
}

export async function bench(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  endOnSignal(stack)
  const bare = await startBare()
  const elsewhere = await findProcesses(`${MARKER}=`)
  const agents = await AgentWorld.start('process', {
    BERTH_CONCURRENCY: `agents=${AT_A_TIME}`,
    BERTH_INTERVALS: 'agents=5,snapshots=86400',
  })
  stack.defer(() => agents.stop())
  const probe = await createProbe(agents)
  const calm = await probe(AbortSignal.timeout(CALM_MS))

  const ids: string[] = []
  const created = await storm(agents, probe, AGENTS, async () => void ids.push(await agents.create()))
  const bytes = await bytesOfAgents(elsewhere)
  console.log(
    `  ${AGENTS} agents run after ${ms(quantile(created.ready, 1))}, with ${(bytes / 1e6).toFixed(0)} MB`,
  )
  await putToSleep(agents, ids)
  let next = 0
  const woken = await storm(agents, probe, AGENTS, () => agents.restart(ids[next++] as string))

  const at = (q: number, of: number[]) => ms(quantile(of, q))
  const times = (of: number[]) => `${at(0, of)}, ${at(0.5, of)}, ${at(1, of)}`
  const result = (what: string, { ready, accepted, others }: Storm): Result[] => [
    {
      what: `${AGENTS} ${what}, ${AT_A_TIME} at a time: first, median and last ready`,
      berth: times(ready),
      bare: times(bare),
      ratio: quantile(ready, 1) / quantile(bare, 1),
    },
    { what: `${AGENTS} ${what}: all requests accepted`, berth: ms(accepted) },
    {
      what: `${AGENTS} ${what}: lists of another workspace, median and 99th percentile (bare: before)`,
      berth: `${at(0.5, others)}, ${at(0.99, others)}`,
      bare: `${at(0.5, calm)}, ${at(0.99, calm)}`,
      ratio: quantile(others, 0.5) / quantile(calm, 0.5),
    },
  ]
  return [
    ...result('new agents', created),
    ...result('stopped agents', woken),
    {
      what: `memory of ${AGENTS} agents, agentd and stand-in engine`,
      berth: `${(bytes / 1e6).toFixed(0)} MB`,
    },
  ]
}

/** Sends `count` requests, and waits until as many agents are ready. */
async function storm(
  agents: AgentWorld,
  probe: (until: AbortSignal) => Promise<number[]>,
  count: number,
  ask: () => Promise<void>,
): Promise<Storm> {
  const over = new AbortController()
  const others = probe(over.signal)
  const began = performance.now()
  const ready: number[] = []
  const counting = until(
    `${count} agents are ready`,
    async () => {
      const [row] = await agents.world.query<{ ready: number }>(
        `SELECT count(*)::int AS ready FROM agent WHERE status = 'running' AND purged_at IS NULL`,
      )
      const now = performance.now() - began
      while (ready.length < (row?.ready ?? 0)) ready.push(now)
      return ready.length >= count
    },
    STORM_MS,
  )
  counting.catch(() => {})
  others.catch(() => {})
  try {
    await forEachConcurrently(Array.from({ length: count }), CLIENTS, ask)
    const accepted = performance.now() - began
    await counting
    over.abort()
    return { ready, accepted, others: await others }
  } finally {
    over.abort()
  }
}

/** Another workspace that lists its files and its agents. */
async function createProbe({ world }: AgentWorld): Promise<(until: AbortSignal) => Promise<number[]>> {
  const { token } = await world.createTenant('others')
  const headers = { authorization: `Bearer ${token}` }
  return async (until) => {
    const times: number[] = []
    for (let i = 0; !until.aborted; i++) {
      const began = performance.now()
      const response = await fetch(`${world.url}${i % 2 ? '/v0/agents' : '/v3/files/public'}`, { headers })
      await response.text()
      if (!response.ok) throw new Error(`the other workspace got ${response.status}`)
      times.push(performance.now() - began)
      await delay(PROBE_PAUSE_MS)
    }
    return times
  }
}

/** Stops the agents as if each had been stopped for good: nothing starts them until they are asked for. */
async function putToSleep({ world, runtime }: AgentWorld, ids: string[]): Promise<void> {
  const [worker] = world.workers
  // Meanwhile, it would start them again.
  worker?.pause()
  await forEachConcurrently(ids, CLIENTS, (agentId) => runtime.stop(agentId))
  await world.query(`UPDATE agent SET status = 'not_running', status_reason = 'asleep', address = NULL`)
  worker?.resume()
}

/** Memory of all processes in sandboxes, except those of another Berth on this machine. */
async function bytesOfAgents(others: number[]): Promise<number> {
  const pids = await findProcesses(`${MARKER}=`)
  const sizes = await Promise.all(pids.filter((pid) => !others.includes(pid)).map(proportionalBytes))
  return sizes.reduce((sum, size) => sum + size, 0)
}

/** Starts as many engines without Berth. @returns ms until each responds, ascending. */
async function startBare(): Promise<number[]> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-bare-engines-'))
  const engines: Running[] = []
  const ready: number[] = []
  try {
    await installEngine(dir, BARE_VERSION)
    const program = join(dir, 'node_modules/openclaw/openclaw.mjs')
    const began = performance.now()
    await forEachConcurrently(Array.from({ length: AGENTS }), cpus().length, async () => {
      const port = await freePort()
      engines.push(run(process.execPath, [program, '--port', String(port)]))
      await until('the engine responds', async () => (await fetch(`http://127.0.0.1:${port}`)).ok)
      ready.push(performance.now() - began)
    })
    return ready
  } finally {
    await Promise.all(engines.map((engine) => engine.end()))
    await rm(dir, { recursive: true, force: true })
  }
}

if (import.meta.main) print(title, await bench())
