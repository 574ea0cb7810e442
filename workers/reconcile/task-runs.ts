/**
 * Publishes `task.ran` for the runs of agents' scheduled tasks. The engine runs tasks in the sandbox. Runs are read
 * only if the agent's status hints at new ones, newest first down to known ones. One statement writes a run and its
 * event: a killed worker has published it or not, and the next worker continues.
 */
import { z } from 'zod'
import type { AgentStatus, TaskRun, TaskRunPage } from '../../agentd/protocol.ts'
import type { AgentdClient, AgentdTarget } from '../../src/agents/agentd-client.ts'
import { storable } from '../../src/agents/agentd-status.ts'
import { forgetTaskRuns, noteTaskRuns, readNotedTaskRuns } from '../../src/db/statements/task-runs.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import { forEachConcurrently } from '../../src/lib/each-of.ts'
import { type Loop, startLoop } from '../../src/lib/loop.ts'
import { within } from '../../src/lib/signals.ts'
import type { Logger } from '../../src/log.ts'
import type { AgentWorkerServices } from '../services.ts'

const LOOP_MS = 500
/** Number of agents read concurrently, because each may respond slowly. */
const CONCURRENCY = 8
/** Time limit for all pages of one agent. */
const AGENT_MS = 10_000
/** Pause for an agent whose runs cannot be read. */
const FAILED_MS = 60_000
/**
 * Maximum number of an agent's runs published at a time, the newest; then the agent pauses, so that its tasks do not
 * fill a stream.
 */
const MAX_RUNS = 500
const REST_MS_EACH = 100
const MAX_PAGES = 30
const BATCH = 100
/** Number of remembered runs per agent: more than are read again. */
const KEPT_RUNS = 2 * MAX_RUNS
const MAX_OF_PAGE = 100
const MAX_BYTES = 1_048_576

/** The response of agentd, which is untrusted. */
const runText = storable(200).pipe(z.string().min(1))
const endedRun = z.object({
  runId: runText,
  taskId: runText,
  name: storable(200).nullable(),
  status: z.enum(['ok', 'error', 'skipped']),
  startedAt: z.iso.datetime(),
  endedAt: z.iso.datetime(),
  durationMs: z.number().int().min(0).nullable(),
  error: storable(500).nullable(),
})
const runPage = z.object({
  runs: z.array(endedRun).max(MAX_OF_PAGE),
  next: z.number().int().min(0).nullable(),
})

interface Noticed {
  id: string
  target: AgentdTarget
  /** When agentd started, and its count of runs: a changed value hints at new runs. */
  version: string
}

export class TaskRuns {
  readonly #services: AgentWorkerServices
  readonly #log: Logger
  /** Agents that may have new runs, by id. */
  readonly #waiting = new Map<string, Noticed>()
  /** The version up to which all runs of an agent are published, by the agent's id. */
  readonly #done = new Map<string, string>()
  /** The earliest time of an agent's next turn, by its id. */
  readonly #notBefore = new Map<string, number>()

  constructor(services: AgentWorkerServices, log: Logger) {
    this.#services = services
    this.#log = log
  }

  /** Notes from its status that an agent may have new runs. */
  notice(id: string, target: AgentdTarget, { startedAt, taskRuns, gateway }: AgentStatus): void {
    const version = `${startedAt} ${taskRuns}`
    if (taskRuns > 0 && gateway.state === 'ready' && this.#done.get(id) !== version)
      this.#waiting.set(id, { id, target, version })
  }

  /** Forgets all agents except these. @param ids of existing agents. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const known of [this.#waiting, this.#done, this.#notBefore])
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id)
  }

  /** Publishes the new runs of all noted agents whose turn it is. */
  async pass(signal: AbortSignal): Promise<void> {
    const now = performance.now()
    const due = [...this.#waiting.values()].filter(({ id }) => (this.#notBefore.get(id) ?? 0) <= now)
    await forEachConcurrently(due, CONCURRENCY, async (next) => {
      if (!signal.aborted) await this.#turn(next, signal)
    })
  }

  async #turn({ id, target, version }: Noticed, signal: AbortSignal): Promise<void> {
    this.#waiting.delete(id)
    try {
      const count = await this.#publish(id, target, within(AGENT_MS, signal))
      this.#done.set(id, version)
      this.#notBefore.set(id, performance.now() + count * REST_MS_EACH)
    } catch (error) {
      if (signal.aborted) return
      this.#notBefore.set(id, performance.now() + FAILED_MS)
      this.#log.debug({ err: error, agentId: target.agentId }, 'cannot read the runs of tasks; trying again')
    }
  }

  /** @returns the number of runs published. */
  async #publish(id: string, target: AgentdTarget, signal: AbortSignal): Promise<number> {
    const { pool, agentd } = this.#services
    const noted = await readNotedTaskRuns.first(pool, id)
    if (!noted) return 0
    const known = new Set(noted.runIds)
    const runs: TaskRun[] = []
    let offset: number | null = 0
    for (let pages = 0; offset !== null && pages < MAX_PAGES && runs.length < MAX_RUNS; pages++) {
      const page: TaskRunPage = await readEndedRuns(agentd, target, { offset, signal })
      const fresh = page.runs.filter(({ runId, endedAt }) => {
        const isKnown = known.has(runId) || new Date(endedAt) <= noted.since
        known.add(runId)
        return !isKnown
      })
      runs.push(...fresh)
      const isOver = page.runs.length > 0 && fresh.length === 0
      offset = isOver ? null : page.next
    }
    // Publishes the oldest run first: if this stops halfway, the missing runs are newer than the published ones.
    const published = runs.slice(0, MAX_RUNS).reverse()
    for (let at = 0; at < published.length; at += BATCH) {
      crashPoint('task-runs-before-note')
      await noteTaskRuns.run(pool, id, JSON.stringify(published.slice(at, at + BATCH)))
      crashPoint('task-runs-after-note')
    }
    if (noted.runIds.length + published.length > KEPT_RUNS) await forgetTaskRuns.run(pool, id, KEPT_RUNS)
    return published.length
  }
}

/** Reads a page of ended runs, newest first. @throws AgentdError, including for a malformed response. */
async function readEndedRuns(
  agentd: AgentdClient,
  target: AgentdTarget,
  { offset, signal }: { offset: number; signal: AbortSignal },
): Promise<TaskRunPage> {
  const path = `/v1/task-runs?offset=${offset}`
  return agentd.json(target, { path, maxBytes: MAX_BYTES, signal }, runPage)
}

/** Publishes runs soon after they were noted. */
export const startTaskRunLoop = (runs: TaskRuns, log: Logger): Loop =>
  startLoop('task runs', LOOP_MS, log, (signal) => runs.pass(signal))
