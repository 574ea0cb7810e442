/**
 * LISTEN on one dedicated connection. Delivery is best effort: anything that waits for a notification also polls, and
 * anything that caches because of notifications checks `connected` first.
 */
import { EventEmitter } from 'node:events'
import pg from 'pg'
import type { Logger } from '../log.ts'

/**
 * `berth_operation` carries an operation's id. `berth_agent` carries the agentId of an agent that was deleted, or whose
 * gateway token, domains or routes changed. `berth_api_key` reports that keys or their users changed; its payload is
 * ignored. `berth_event` reports that events were published, `berth_model_price` that prices of models changed.
 */
const CHANNELS = [
  'berth_operation',
  'berth_api_key',
  'berth_agent',
  'berth_event',
  'berth_model_price',
] as const
export type Channel = (typeof CHANNELS)[number]
const RETRY_MS = 500

export class Notifications {
  readonly #url: string
  readonly #log: Logger
  readonly #events = new EventEmitter().setMaxListeners(0)
  #client: pg.Client | undefined
  #timer: NodeJS.Timeout | undefined
  #stopped = false

  constructor(url: string, log: Logger) {
    this.#url = url
    this.#log = log
  }

  /** True while every sent notification also arrives. */
  get connected(): boolean {
    return this.#client !== undefined
  }

  /** Connects, and reconnects whenever the connection drops, however long that takes. */
  async start(): Promise<void> {
    if (this.#stopped) return
    const client = new pg.Client({
      connectionString: this.#url,
      connectionTimeoutMillis: 10_000,
      keepAlive: true,
      application_name: 'berth-listen',
    })
    let isLost = false
    const lost = (error?: Error) => {
      // A refused connection emits both `end` and `error`: reacting to both would double the attempts with each
      // refusal.
      if (isLost) return
      isLost = true
      client.removeAllListeners()
      client.on('error', () => {})
      client.end().catch(() => {})
      if (this.#client === client) this.#client = undefined
      if (this.#stopped) return
      if (error) this.#log.debug({ err: error }, 'notification connection lost')
      this.#events.emit('lost')
      this.#timer = setTimeout(() => void this.start(), RETRY_MS)
    }
    client.once('error', lost)
    client.once('end', () => lost())
    client.on('notification', ({ channel, payload }) => this.#events.emit(channel, payload ?? ''))
    try {
      await client.connect()
      await client.query(CHANNELS.map((channel) => `LISTEN ${channel}`).join(';'))
      this.#client = client
    } catch (error) {
      lost(error as Error)
    }
  }

  /**
   * Calls `listener` with each payload on `channel`; `lost` fires when notifications may have been missed. Returns a
   * function that removes the listener.
   */
  on(channel: Channel | 'lost', listener: (payload: string) => void): () => void {
    this.#events.on(channel, listener)
    return () => this.#events.off(channel, listener)
  }

  async stop(): Promise<void> {
    this.#stopped = true
    clearTimeout(this.#timer)
    await this.#client?.end().catch(() => {})
  }
}
