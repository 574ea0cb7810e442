import { orAborted } from '../lib/signals.ts'
import { isAwaited, lockSession, shareSession } from './advisory-locks.ts'
import { isContention } from './database-errors.ts'
import type { Queryable } from './pool.ts'
import { withSession } from './session.ts'

type Name = Parameters<typeof isAwaited>[1]

const SESSION = { name: 'berth-shared-lock', connectMs: 10_000 }

/** The single session with which this process shares the lock, for all its holders. */
interface LockSession {
  holders: number
  /** Resolves once the lock is taken. */
  session: Promise<Queryable>
  leave(): void
  /** Resolves once the session has ended. */
  closed: Promise<void>
}

/**
 * A shared and exclusive lock over all processes on one database: any number of holders share it, or one holds it
 * exclusively. A waiting exclusive holder goes before sharers that arrive later. If a process dies, its lock is
 * released.
 */
export class SharedLock {
  readonly #url: string
  readonly #name: Name
  readonly #shareMs: number
  #shared: LockSession | undefined

  /** @param shareMs how long `share` waits for an exclusive holder, or for an exclusive waiter ahead of it. */
  constructor(url: string, name: Name, shareMs = 60_000) {
    this.#url = url
    this.#name = name
    this.#shareMs = shareMs
  }

  /**
   * Runs `work` together with other sharers. @throws an error that `isContention` recognises after `shareMs`; the signal's
   * reason.
   */
  async share<T>(signal: AbortSignal, work: () => Promise<T>): Promise<T> {
    const shared = await this.#enter(signal)
    try {
      return await work()
    } finally {
      this.#leave(shared)
    }
  }

  /**
   * Runs `work` while no other process holds the lock; sharers that arrive in the meantime wait.
   * @returns the result of `work`; undefined if others still held the lock after `waitMs`, and `work` did not run.
   */
  exclusively<T>(waitMs: number, work: () => Promise<T>): Promise<T | undefined> {
    return withSession(this.#url, SESSION, async (session) => {
      await session.query(`SET lock_timeout = ${waitMs}`)
      try {
        await lockSession(session, this.#name)
      } catch (error) {
        if (isContention(error)) return undefined
        throw error
      }
      return work()
    })
  }

  async #enter(signal: AbortSignal): Promise<LockSession> {
    const late = AbortSignal.timeout(this.#shareMs)
    for (;;) {
      const isNew = !this.#shared
      this.#shared ??= this.#open()
      const shared = this.#shared
      shared.holders++
      try {
        const session = await orAborted(shared.session, signal)
        // This process already has the lock, so PostgreSQL would not make it wait behind an exclusive waiter.
        if (isNew || late.aborted || !(await isAwaited(session, this.#name))) return shared
      } catch (error) {
        // New holders do not join a lost session; its other holders continue.
        if (!signal.aborted && this.#shared === shared) this.#shared = undefined
        this.#leave(shared)
        if (isNew || signal.aborted) throw error
        continue
      }
      this.#leave(shared)
      await orAborted(shared.closed, AbortSignal.any([signal, late])).catch(() => signal.throwIfAborted())
    }
  }

  #leave(shared: LockSession): void {
    if (--shared.holders > 0) return
    if (this.#shared === shared) this.#shared = undefined
    shared.leave()
  }

  #open(): LockSession {
    const left = Promise.withResolvers<void>()
    const taken = Promise.withResolvers<Queryable>()
    const closed = withSession(this.#url, SESSION, async (session) => {
      await session.query(`SET lock_timeout = ${this.#shareMs}`)
      await shareSession(session, this.#name)
      taken.resolve(session)
      await left.promise
    }).catch(taken.reject)
    taken.promise.catch(() => {})
    return { holders: 0, session: taken.promise, leave: left.resolve, closed }
  }
}
