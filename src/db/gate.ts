import { orAborted } from '../lib/until-aborted.ts'
import { isAwaited, lockSession, shareSession } from './advisory-locks.ts'
import { isHeldUp } from './database-errors.ts'
import type { Queryable } from './pool.ts'
import { withSession } from './session.ts'

type Name = Parameters<typeof shareSession>[1]

const SESSION = { name: 'berth-gate', connectMs: 10_000 }

/** One session by which this process shares the lock, for all who are inside. */
interface Pass {
  inside: number
  /** Once the lock is taken. */
  session: Promise<Queryable>
  leave(): void
  /** Once the session has ended. */
  closed: Promise<void>
}

/**
 * Keeps two kinds of work apart, over all processes on one database: any number of the one side by side, or one of the
 * other. Who waits to be alone is let in before those who come later. A process that dies leaves.
 */
export class Gate {
  readonly #url: string
  readonly #name: Name
  readonly #shareMs: number
  #pass: Pass | undefined

  /** @param shareMs how long `share` waits for who is alone, or waits to be. */
  constructor(url: string, name: Name, shareMs = 60_000) {
    this.#url = url
    this.#name = name
    this.#shareMs = shareMs
  }

  /** Runs `work` beside others who share. @throws what `isHeldUp` tells after `shareMs`, the signal's reason. */
  async share<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const pass = await this.#enter(signal)
    try {
      return await work()
    } finally {
      this.#leave(pass)
    }
  }

  /**
   * Runs `work` while nobody shares, and nobody else is alone. Those who come meanwhile wait.
   * @returns what it gives; undefined where it was not run, as others were still inside after `waitMs`.
   */
  alone<T>(waitMs: number, work: () => Promise<T>): Promise<T | undefined> {
    return withSession(this.#url, SESSION, async (session) => {
      await session.query(`SET lock_timeout = ${waitMs}`)
      try {
        await lockSession(session, this.#name)
      } catch (error) {
        if (isHeldUp(error)) return undefined
        throw error
      }
      return work()
    })
  }

  async #enter(signal: AbortSignal): Promise<Pass> {
    const late = AbortSignal.timeout(this.#shareMs)
    for (;;) {
      const isNew = !this.#pass
      this.#pass ??= this.#open()
      const pass = this.#pass
      pass.inside++
      try {
        const session = await orAborted(pass.session, signal)
        // This process has the lock already, so PostgreSQL would not have it wait behind who wants to be alone.
        if (isNew || late.aborted || !(await isAwaited(session, this.#name))) return pass
      } catch (error) {
        // Nobody else joins a session that is lost; those inside go on.
        if (!signal.aborted && this.#pass === pass) this.#pass = undefined
        this.#leave(pass)
        if (isNew || signal.aborted) throw error
        continue
      }
      this.#leave(pass)
      await orAborted(pass.closed, AbortSignal.any([signal, late])).catch(() => signal.throwIfAborted())
    }
  }

  #leave(pass: Pass): void {
    if (--pass.inside > 0) return
    if (this.#pass === pass) this.#pass = undefined
    pass.leave()
  }

  #open(): Pass {
    const left = Promise.withResolvers<void>()
    const taken = Promise.withResolvers<Queryable>()
    const closed = withSession(this.#url, SESSION, async (session) => {
      await session.query(`SET lock_timeout = ${this.#shareMs}`)
      await shareSession(session, this.#name)
      taken.resolve(session)
      await left.promise
    }).catch(taken.reject)
    taken.promise.catch(() => {})
    return { inside: 0, session: taken.promise, leave: left.resolve, closed }
  }
}
