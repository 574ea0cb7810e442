import { AgentdError } from './agentd-errors.ts'
import { Connection } from './gateway-client.ts'
import type { TaskRun, TaskRunPage } from './protocol.ts'
import { type Agent, type Call, type GatewayHandle, queryNumber, type Service } from './server.ts'

/** Wait before reconnecting to the gateway. */
const RETRY_MS = 1000
/** The engine may report the end of a run a moment before its history contains it. */
const SETTLE_MS = 1000
const CALL_MS = 5000
/** Runs per page; each contains everything that was said in it. */
const PAGE = 50
/** The engine lists at most this many jobs at a time. */
const MAX_JOBS = 200
const ID_CHARS = 200
const ERROR_CHARS = 500

/**
 * Notices when the engine runs scheduled tasks: the engine notifies its clients, so an engine without runs need not be
 * asked.
 */
export class TaskWatch {
  readonly #gateway: GatewayHandle
  readonly #onChange: () => void
  #count = 0
  #connection: Connection | undefined
  #retry: NodeJS.Timeout | undefined
  #settled: NodeJS.Timeout | undefined

  constructor(gateway: GatewayHandle, onChange: () => void) {
    this.#gateway = gateway
    this.#onChange = onChange
  }

  /** Grows whenever there may be a new run. */
  get count(): number {
    return this.#count
  }

  /** Connects to a ready gateway, unless that is done. */
  connect(): void {
    const { state, token, port } = this.#gateway
    if (state !== 'ready' || token === null) return
    if (this.#connection?.open && this.#connection.token === token) return
    this.#connection?.close()
    const connection = new Connection(port, token, {
      // Covers runs while nobody listened.
      onOpen: () => this.#noted(),
      onEvent: ({ event }) => event === 'cron' && this.#noted(),
      onClose: () => {
        if (this.#connection !== connection) return
        clearTimeout(this.#retry)
        this.#retry = setTimeout(() => this.connect(), RETRY_MS).unref()
      },
    })
    this.#connection = connection
  }

  stop(): void {
    clearTimeout(this.#retry)
    clearTimeout(this.#settled)
    const connection = this.#connection
    this.#connection = undefined
    connection?.close()
  }

  #noted(): void {
    this.#add()
    clearTimeout(this.#settled)
    this.#settled = setTimeout(() => this.#add(), SETTLE_MS).unref()
  }

  #add(): void {
    this.#count++
    this.#onChange()
  }
}

/** A job of the engine, and an entry of its run history. */
interface Job {
  id: string
  name: string
  declarationKey?: string
}
interface Entry {
  jobId: string
  runId?: string
  ts: number
  status?: string
  error?: string
  runAtMs?: number
  durationMs?: number
}

/** `GET /v1/task-runs`. */
export function tasksService({ engine, log }: Agent, watch: TaskWatch): Service {
  const ask = async <T>(method: string, params: Record<string, unknown>): Promise<T> => {
    const answer = await engine.call(method, params, CALL_MS)
    if (!answer.ok) throw new AgentdError('engine', `${method}: ${answer.error.message}`)
    return answer.payload as T
  }

  async function read({ url }: Call): Promise<{ body: TaskRunPage }> {
    const offset = queryNumber(url, 'offset', 0)
    const { jobs } = await ask<{ jobs: Job[] }>('cron.list', { includeDisabled: true, limit: MAX_JOBS })
    const byId = new Map(jobs.map((job) => [job.id, job]))
    const page = { scope: 'all', sortDir: 'desc', limit: PAGE, offset }
    const { entries, hasMore } = await ask<{ entries: Entry[]; hasMore: boolean }>('cron.runs', page)
    const runs = entries
      // The engine and its plugins declare their own jobs, which are not tasks.
      .filter(({ jobId }) => byId.get(jobId)?.declarationKey === undefined)
      .map((entry) => toRun(entry, byId.get(entry.jobId)?.name ?? null))
    return { body: { runs, next: hasMore ? offset + entries.length : null } }
  }

  function toRun(
    { jobId, runId, ts, status, error, runAtMs = ts, durationMs }: Entry,
    name: string | null,
  ): TaskRun {
    return {
      runId: cut(runId ?? `${jobId}@${runAtMs}`, ID_CHARS),
      taskId: cut(jobId, ID_CHARS),
      name: name && cut(log.redact(name), ID_CHARS),
      status: status === 'ok' || status === 'skipped' ? status : 'error',
      startedAt: new Date(runAtMs).toISOString(),
      endedAt: new Date(ts).toISOString(),
      durationMs: durationMs === undefined ? null : Math.max(0, Math.round(durationMs)),
      error: error === undefined ? null : cut(log.redact(error), ERROR_CHARS),
    }
  }

  return {
    routes: [{ method: 'GET', path: '/v1/task-runs', handle: read }],
    async stop() {
      watch.stop()
    },
  }
}

const cut = (text: string, max: number) =>
  text.length > max ? `${text.slice(0, max - 1).toWellFormed()}…` : text
