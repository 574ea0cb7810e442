/**
 * LISTEN on one dedicated connection. Delivery is best effort: whoever waits for a notification also
 * polls, and whoever caches because of them asks `connected` first.
 */
import { EventEmitter } from 'node:events'
import pg from 'pg'
import type { Logger } from '../log.ts'

/**
 * `berth_operation` carries an operation's id, `berth_agent` the agentId of an agent whose gateway token, domains or
 * routes changed, or that was deleted; `berth_api_key` says that keys or their users changed, and what it carries is for
 * nobody; `berth_event` says that events were published.
 */
export type Channel = 'berth_operation' | 'berth_api_key' | 'berth_agent' | 'berth_event'
const CHANNELS: Channel[] = ['berth_operation', 'berth_api_key', 'berth_agent', 'berth_event']
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

  /** True while every notification that is sent also arrives. */
  get connected(): boolean {
    return this.#client !== undefined
  }

  /** Connects, and reconnects for as long as it takes whenever the connection drops. */
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
      // A connection that is refused ends and fails: two attempts in place of it would double with each refusal.
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

  /** Calls `listener` with each payload on `channel`; `lost` fires when some may have been missed. Returns its end. */
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
