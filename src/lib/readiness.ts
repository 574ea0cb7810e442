/** How a process is, part by part: for `/readyz`, for `/metrics`, and for the row of a worker. */

import type { Logger } from '../log.ts'
import { shared } from './shared.ts'

export type Status = 'ok' | 'degraded' | 'down'

/** A part as anybody may see it: `detail` names no address and no secret. */
export interface Part {
  status: Status
  detail?: string
}

/** The same, with what only the operator reads, in the log and from `berth doctor`. */
export interface Finding extends Part {
  cause?: string
  advice?: string
  /** Nothing is wrong, as where a process is told to stop: it is not logged. */
  isExpected?: boolean
}

/** A part that has not answered by then does not answer. */
const CHECK_MS = 2000
const LOOK_AGAIN = 'Look again: a busy machine answers late. Else check that it runs, and can be reached.'
const CACHE_MS = 2000

export interface Check {
  /** May throw: then the part does not answer. */
  find(): Promise<Finding> | Finding
  /** The process cannot do its work without the part. */
  essential?: boolean
}

export interface Report<P = Part> {
  status: Status
  parts: Record<string, P>
}

export interface ReadinessOptions {
  checks: Record<string, Check>
  /** Parts that others have reported. Never rejects. */
  observe?(): Promise<Record<string, Finding>>
  log: Logger
}

/** Runs the checks of one process; all who ask within 2 s share one run. */
export class Readiness {
  /** `down` without an essential part, `degraded` while any part is not ok. Never rejects; takes 2 s at most. */
  readonly explain: () => Promise<Report<Finding>>
  readonly #options: ReadinessOptions
  /** Checks that have not answered yet: a part that hangs is not asked once more with every look. */
  readonly #pending = new Map<string, Promise<Finding>>()
  /** The state of each part at the last look, and the state that the log has said last. */
  readonly #before = new Map<string, { seen: Status; said: Status }>()

  constructor(options: ReadinessOptions) {
    this.#options = options
    this.explain = shared(CACHE_MS, () => this.#read())
  }

  /** The same without what only the operator reads. */
  async read(): Promise<Report> {
    const { status, parts } = await this.explain()
    const shown = Object.entries(parts).map(([name, { status, detail }]) => [
      name,
      detail ? { status, detail } : { status },
    ])
    return { status, parts: Object.fromEntries(shown) }
  }

  async #read(): Promise<Report<Finding>> {
    const { checks, observe } = this.#options
    const own = Object.entries(checks).map(
      async ([name, { find }]): Promise<[string, Finding]> => [
        name,
        await look(() => this.#once(name, find)),
      ],
    )
    const [observed = {}, ...found] = await Promise.all([observe?.(), ...own])
    const findings = [...found, ...Object.entries(observed)]
    for (const [name, finding] of findings) this.#logChange(name, finding)
    const isDown = findings.some(([name, { status }]) => status === 'down' && checks[name]?.essential)
    const isWhole = findings.every(([, { status }]) => status === 'ok')
    return {
      status: isDown ? 'down' : isWhole ? 'ok' : 'degraded',
      parts: Object.fromEntries(findings),
    }
  }

  #once(name: string, find: Check['find']): Promise<Finding> {
    const pending = this.#pending.get(name)
    if (pending !== undefined) return pending
    const asked = Promise.try(find)
    this.#pending.set(name, asked)
    const done = () => this.#pending.delete(name)
    asked.then(done, done)
    return asked
  }

  #logChange(part: string, { status, detail, cause, advice, isExpected }: Finding): void {
    if (isExpected) return
    const { seen, said } = this.#before.get(part) ?? { seen: 'ok', said: 'ok' }
    // At the second look: while all start at once, parts are away for a moment.
    const isNews = status === seen && status !== said
    this.#before.set(part, { seen: status, said: isNews ? status : said })
    if (!isNews) return
    if (status === 'ok') this.#options.log.info({ part }, 'a part is well again')
    else this.#options.log.warn({ part, status, detail, cause, advice }, 'a part is not well')
  }
}

/** Runs one check. Never rejects, and takes 2 s at most. */
export async function look(find: Check['find']): Promise<Finding> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(reject, CHECK_MS, new Error(`no answer within ${CHECK_MS / 1000} s`))
  })
  try {
    return await Promise.race([find(), late])
  } catch (error) {
    return { status: 'down', detail: 'does not answer', cause: reasonOf(error), advice: LOOK_AGAIN }
  } finally {
    clearTimeout(timer)
  }
}

/** The reason in one line; a name with several addresses fails once for each, and its error has no message of its own. */
export function reasonOf(error: unknown): string {
  const { message, errors, code } = error as { message?: string; errors?: Error[]; code?: string }
  return message || errors?.[0]?.message || code || String(error)
}
