/**
 * Reads the new events of all workspaces, once for all streams of a process. Nothing is read while there are no
 * followers.
 */
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import { readEventSpan, readNewEvents } from '../db/statements/events.ts'
import { formatEvent } from '../http/event-stream.ts'
import type { Logger } from '../log.ts'
import { type StoredEvent, toEvent, viewEvent } from './event.ts'

/** The polling interval, as a fallback for lost notifications. */
const POLL_MS = 1000
const BATCH = 1000

/** An event with its text in a stream, which is rendered once for all streams. */
export interface StreamedEvent {
  event: StoredEvent
  id: bigint
  text: string
}

export const toStreamed = (event: StoredEvent): StreamedEvent => ({
  event,
  id: BigInt(event.id),
  text: formatEvent(event.type, viewEvent(event), event.id),
})

/** Called with all new events of its workspace from one read. */
type Listener = (events: StreamedEvent[]) => void

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

  /** Fires when the process shuts down and streams must end. */
  get closing(): AbortSignal {
    return this.#closing.signal
  }

  /**
   * Calls a listener with every event of a workspace that is published from now on.
   * @returns `from`: the id after which its events come; `stop`: ends it.
   */
  async follow(workspaceId: string, listener: Listener): Promise<{ from: string; stop: () => void }> {
    const listeners = this.#listeners.get(workspaceId) ?? new Set()
    this.#listeners.set(workspaceId, listeners.add(listener))
    const stop = () => {
      listeners.delete(listener)
      if (listeners.size === 0 && this.#listeners.get(workspaceId) === listeners)
        this.#listeners.delete(workspaceId)
      // Without listeners, the position is dropped: the next listener begins at the end.
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

  /** The last id that was read; listeners have received all events up to it. */
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
    this.#read().catch((error) => this.#log.debug({ err: error }, 'cannot read new events; trying again'))
  }

  /** Reads new events, now or again after the read in progress. */
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
        // All listeners left during the read, and new ones may have come.
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
        const streamed = events.map(toStreamed)
        for (const listener of listeners) listener(streamed)
      }
    }
  }
}
