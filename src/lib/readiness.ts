/** The health of a process, by component: for `/readyz`, for `/metrics`, and for a worker's row. */

import type { Logger } from '../log.ts'
import { coalesce } from './coalesce.ts'
import { orAborted, withDeadline } from './signals.ts'

export type Status = 'ok' | 'degraded' | 'down'

/** A component's public state: `detail` contains no address and no secret. */
export interface Part {
  status: Status
  detail?: string
}

/** The same, with fields only for the operator, in the log and from `berth doctor`. */
export interface Finding extends Part {
  cause?: string
  advice?: string
  /** Not a problem, such as while a process is stopping: it is not logged. */
  isExpected?: boolean
}

/** A component that has not responded within this time counts as not responding. */
const CHECK_MS = 2000
const LOOK_AGAIN = 'Check again: a busy machine responds late. Otherwise check that it runs and is reachable.'
const CACHE_MS = 2000

export interface Check {
  /** May throw, which means that the component does not respond. */
  find(): Promise<Finding> | Finding
  /** The process cannot do its work without the component. */
  essential?: boolean
}

export interface Report<P = Part> {
  status: Status
  parts: Record<string, P>
}

export interface ReadinessOptions {
  checks: Record<string, Check>
  /** Components that others have reported. Never rejects. */
  observe?(): Promise<Record<string, Finding>>
  log: Logger
}

/** Runs the checks of one process; all callers within 2 s share one run. */
export class Readiness {
  /**
   * `down` without an essential component, `degraded` while any component is not ok. Never rejects; takes 2 s at most.
   */
  readonly explain: () => Promise<Report<Finding>>
  readonly #options: ReadinessOptions
  /** Checks without a response yet: a hanging component is not queried again by every run. */
  readonly #pending = new Map<string, Promise<Finding>>()
  /** The last seen state of each component, and the state last logged. */
  readonly #before = new Map<string, { seen: Status; said: Status }>()

  constructor(options: ReadinessOptions) {
    this.#options = options
    this.explain = coalesce(CACHE_MS, () => this.#read())
  }

  /** The same without the operator's fields. */
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
    // Logged only at the second sighting: while everything starts at once, components are briefly unavailable.
    const isNews = status === seen && status !== said
    this.#before.set(part, { seen: status, said: isNews ? status : said })
    if (!isNews) return
    if (status === 'ok') this.#options.log.info({ part }, 'a part is well again')
    else this.#options.log.warn({ part, status, detail, cause, advice }, 'a part is not well')
  }
}

/** Runs one check. Never rejects, and takes 2 s at most. */
export async function look(find: Check['find']): Promise<Finding> {
  const late = () => new Error(`no answer within ${CHECK_MS / 1000} s`)
  try {
    return await withDeadline({ ms: CHECK_MS, late }, (signal) => orAborted(Promise.try(find), signal))
  } catch (error) {
    return { status: 'down', detail: 'does not answer', cause: reasonOf(error), advice: LOOK_AGAIN }
  }
}

/**
 * The reason in one line; a name with several addresses fails once per address, and its error has no message of its
 * own.
 */
export function reasonOf(error: unknown): string {
  const { message, errors, code } = error as { message?: string; errors?: Error[]; code?: string }
  return message || errors?.[0]?.message || code || String(error)
}
