/** Waiting for an operation to change: by notification, with a poll behind it for those that get lost. */
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import { isFinished } from './catalog.ts'
import { findOperation, type Versioned } from './store.ts'

const POLL_MS = 1000

export class Waiter {
  readonly #pool: Pool
  readonly #notifications: Notifications

  constructor(pool: Pool, notifications: Notifications) {
    this.#pool = pool
    this.#notifications = notifications
  }

  /**
   * Yields the operation now and after every change, until it has finished or `signal` fires. The
   * generator ends early when the operation is not (or no longer) there.
   */
  async *changes(workspaceId: string, id: string, signal: AbortSignal): AsyncGenerator<Versioned> {
    let wake = () => {}
    const unsubscribe = this.#notifications.on('berth_operation', (changed) => {
      if (changed === id) wake()
    })
    const onAbort = () => wake()
    signal.addEventListener('abort', onAbort)
    try {
      let seen = -1
      while (!signal.aborted) {
        let timer: NodeJS.Timeout | undefined
        // Armed before the read, so that a change right after the read is not missed.
        const changed = new Promise<void>((resolve) => {
          wake = resolve
          timer = setTimeout(resolve, POLL_MS)
        })
        const operation = await findOperation(this.#pool, workspaceId, id)
        if (!operation) return clearTimeout(timer)
        if (operation.version !== seen) {
          seen = operation.version
          yield operation
        }
        if (isFinished(operation.state)) return clearTimeout(timer)
        if (!signal.aborted) await changed
        clearTimeout(timer)
      }
    } finally {
      unsubscribe()
      signal.removeEventListener('abort', onAbort)
    }
  }

  /** The operation as soon as it has finished, or as it is after `ms`; undefined when it is not there. */
  async finished(
    workspaceId: string,
    id: string,
    ms: number,
    signal: AbortSignal,
  ): Promise<Versioned | undefined> {
    let latest: Versioned | undefined
    const bound = AbortSignal.any([signal, AbortSignal.timeout(ms)])
    for await (const operation of this.changes(workspaceId, id, bound)) latest = operation
    return latest
  }
}
