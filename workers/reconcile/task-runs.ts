/**
 * Tells of the runs of agents' scheduled tasks. The engine runs them in the sandbox; the status of an agent says when there
 * may be new ones, and only then they are read, newest first until those that were told of already. A run and its event are
 * written in one statement: a worker that is killed has told of it or not, and the next one goes on.
 */
import { z } from 'zod'
import type { AgentStatus, TaskRun, TaskRunPage } from '../../agentd/protocol.ts'
import { type AgentdClient, AgentdError, type AgentdTarget } from '../../src/agents/agentd-client.ts'
import { storable } from '../../src/agents/agentd-status.ts'
import { forgetTaskRuns, noteTaskRuns, readNotedTaskRuns } from '../../src/db/statements/task-runs.ts'
import { crashPoint } from '../../src/lib/crash-point.ts'
import { type Loop, startLoop } from '../../src/lib/loop.ts'
import type { Logger } from '../../src/log.ts'
import type { AgentWorkerServices } from '../services.ts'

const LOOP_MS = 500
/** Agents that are read side by side: each may take its time to answer. */
const CONCURRENCY = 8
/** Time of one agent for all its pages. */
const AGENT_MS = 10_000
/** An agent whose runs cannot be read is left alone for this. */
const FAILED_MS = 60_000
/** Runs of an agent that are told at a time, the newest; after them it rests, so that its tasks fill no stream. */
const MOST_RUNS = 500
const REST_MS_EACH = 100
const MOST_PAGES = 30
const BATCH = 100
/** Runs that are remembered of an agent: more than are read again. */
const KEPT_RUNS = 2 * MOST_RUNS
const MOST_OF_PAGE = 100
const MOST_BYTES = 1_048_576

/** The answer of agentd, which is untrusted. */
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
  runs: z.array(endedRun).max(MOST_OF_PAGE),
  next: z.number().int().min(0).nullable(),
})

interface Noticed {
  id: string
  target: AgentdTarget
  /** What the status said: another one than before means that there may be runs. */
  mark: string
}

export class TaskRuns {
  readonly #services: AgentWorkerServices
  readonly #log: Logger
  /** Agents that may have new runs, by id. */
  readonly #waiting = new Map<string, Noticed>()
  /** Up to which status all runs of an agent were told of. */
  readonly #done = new Map<string, string>()
  /** When an agent's turn is at the earliest. */
  readonly #notBefore = new Map<string, number>()

  constructor(services: AgentWorkerServices, log: Logger) {
    this.#services = services
    this.#log = log
  }

  /** Takes notice of the status of an agent. */
  notice(id: string, target: AgentdTarget, { startedAt, taskRuns, gateway }: AgentStatus): void {
    const mark = `${startedAt} ${taskRuns}`
    if (taskRuns > 0 && gateway.state === 'ready' && this.#done.get(id) !== mark)
      this.#waiting.set(id, { id, target, mark })
  }

  /** Forgets agents that are no more. @param ids of those that are. */
  keepOnly(ids: ReadonlySet<string>): void {
    for (const known of [this.#waiting, this.#done, this.#notBefore])
      for (const id of known.keys()) if (!ids.has(id)) known.delete(id)
  }

  /** Tells of the new runs of all agents that were noticed, as far as it is their turn. */
  async pass(signal: AbortSignal): Promise<void> {
    const now = performance.now()
    const due = [...this.#waiting.values()].filter(({ id }) => (this.#notBefore.get(id) ?? 0) <= now)
    const work = Array.from({ length: CONCURRENCY }, async () => {
      for (let next = due.shift(); next && !signal.aborted; next = due.shift()) await this.#turn(next, signal)
    })
    await Promise.all(work)
  }

  async #turn({ id, target, mark }: Noticed, signal: AbortSignal): Promise<void> {
    this.#waiting.delete(id)
    try {
      const count = await this.#tell(id, target, AbortSignal.any([signal, AbortSignal.timeout(AGENT_MS)]))
      this.#done.set(id, mark)
      this.#notBefore.set(id, performance.now() + count * REST_MS_EACH)
    } catch (error) {
      if (signal.aborted) return
      this.#notBefore.set(id, performance.now() + FAILED_MS)
      this.#log.debug(
        { err: error, agentId: target.agentId },
        'the runs of tasks cannot be read; trying again',
      )
    }
  }

  /** @returns how many runs it told of. */
  async #tell(id: string, target: AgentdTarget, signal: AbortSignal): Promise<number> {
    const { pool, agentd } = this.#services
    const noted = await readNotedTaskRuns.first(pool, id)
    if (!noted) return 0
    const known = new Set(noted.runIds)
    const runs: TaskRun[] = []
    let offset: number | null = 0
    for (let pages = 0; offset !== null && pages < MOST_PAGES && runs.length < MOST_RUNS; pages++) {
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
    // The oldest first: where this ends half way, what is missing is newer than what was told of.
    const told = runs.slice(0, MOST_RUNS).reverse()
    for (let at = 0; at < told.length; at += BATCH) {
      crashPoint('task-runs-before-note')
      await noteTaskRuns.run(pool, id, JSON.stringify(told.slice(at, at + BATCH)))
      crashPoint('task-runs-after-note')
    }
    if (noted.runIds.length + told.length > KEPT_RUNS) await forgetTaskRuns.run(pool, id, KEPT_RUNS)
    return told.length
  }
}

/** Reads a page of the runs that have ended, the newest first. @throws AgentdError, also for an answer that is no such page. */
async function readEndedRuns(
  agentd: AgentdClient,
  target: AgentdTarget,
  { offset, signal }: { offset: number; signal: AbortSignal },
): Promise<TaskRunPage> {
  const path = `/v1/task-runs?offset=${offset}`
  const answer = await agentd.json(target, { path, maxBytes: MOST_BYTES, signal })
  const parsed = runPage.safeParse(answer)
  if (parsed.success) return parsed.data
  throw new AgentdError('bad_answer', 'agentd answered no runs', 0, { cause: parsed.error })
}

/** Tells of runs soon after they were noticed. */
export const startTaskRunLoop = (runs: TaskRuns, log: Logger): Loop =>
  startLoop('task runs', LOOP_MS, log, (signal) => runs.pass(signal))
