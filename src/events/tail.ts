/**
 * The events of all workspaces as they come, for everybody of one process who follows them: each is read once. Nothing is
 * read while nobody follows.
 */
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import { readEventSpan, readNewEvents } from '../db/statements/events.ts'
import { formatEvent } from '../http/event-stream.ts'
import type { Logger } from '../log.ts'
import { type StoredEvent, toEvent, viewEvent } from './event.ts'

/** What a notification did not tell is found after this. */
const POLL_MS = 1000
const BATCH = 1000

/** An event, and how it stands in every stream: made once for all of them. */
export interface Told {
  event: StoredEvent
  /** Its id. */
  at: bigint
  text: string
}

export const tell = (event: StoredEvent): Told => ({
  event,
  at: BigInt(event.id),
  text: formatEvent(event.type, viewEvent(event), event.id),
})

/** Called with all new events of its workspace that were read together. */
type Listener = (told: Told[]) => void

export class EventTail {
  readonly #pool: Pool
  readonly #log: Logger
  readonly #listeners = new Map<string, Set<Listener>>()
  readonly #closing = new AbortController()
  readonly #forget: () => void
  #position: string | undefined
  #reading: Promise<void> | undefined
  #readAgain = false
  #timer: NodeJS.Timeout | undefined

  constructor({ pool, notifications, log }: { pool: Pool; notifications: Notifications; log: Logger }) {
    this.#pool = pool
    this.#log = log
    this.#forget = notifications.on('berth_event', () => this.#wake())
  }

  /** Fires when the process ends: everybody lets go. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /**
   * Calls a listener with every event of a workspace that is published from now on.
   * @returns where that is: the id behind which the events come; and the end of it.
   */
  async follow(workspaceId: string, listener: Listener): Promise<{ from: string; stop: () => void }> {
    const listeners = this.#listeners.get(workspaceId) ?? new Set()
    this.#listeners.set(workspaceId, listeners.add(listener))
    const stop = () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(workspaceId) === listeners)
        this.#listeners.delete(workspaceId)
      // What comes while nobody follows is nobody's: the next one begins at the end.
      if (this.#listeners.size === 0) this.#position = undefined
    }
    try {
      await this.#read()
      return { from: this.#position as unknown as string, stop }
    } catch (error) {
      stop()
      throw error
    }
  }

  /** The last id that was read: who is not behind has had all up to it. */
  get position(): string | undefined {
    return this.#position
  }

  close(): void {
    this.#closing.abort()
    this.#forget()
    clearTimeout(this.#timer)
  }

  #wake(): void {
    if (this.#listeners.size === 0 || this.closing.aborted) return
    this.#read().catch((error) => this.#log.debug({ err: error }, 'new events are read again soon'))
  }

  /** Reads what is new, now or once more after the read that is under way. */
  #read(): Promise<void> {
    this.#readAgain = true
    this.#reading ??= this.#readAll().finally(() => {
      this.#reading = undefined
      clearTimeout(this.#timer)
      if (this.#listeners.size > 0 && !this.closing.aborted)
        this.#timer = setTimeout(() => this.#wake(), POLL_MS).unref()
    })
    return this.#reading
  }

  async #readAll(): Promise<void> {
    while (this.#readAgain) {
      this.#readAgain = false
      const from = this.#position
      if (from === undefined) {
        this.#position = (await readEventSpan.one(this.#pool)).last
        continue
      }
      const { rows } = await readNewEvents.run(this.#pool, from, BATCH)
      if (this.#position !== from) {
        // Everybody left meanwhile, and somebody may have come.
        this.#readAgain = true
        continue
      }
      const last = rows.at(-1)
      if (!last) continue
      this.#position = last.id
      this.#readAgain ||= rows.length === BATCH
      for (const [workspaceId, events] of Map.groupBy(rows.map(toEvent), (event) => event.workspaceId)) {
        const listeners = this.#listeners.get(workspaceId)
        if (!listeners) continue
        const told = events.map(tell)
        for (const listener of listeners) listener(told)
      }
    }
  }
}
