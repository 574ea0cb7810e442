/**
 * What is open between clients and agents in this process: WebSockets, log streams and answers under way. Each ends
 * at once when that which opened it is no longer good: the gateway token was rotated, the agent deleted, the key revoked.
 */
import { Gauge, type Registry } from 'prom-client'
import type { Principal } from '../../accounts/authenticator.ts'
import type { Agent } from '../../agents/agent.ts'
import type { Notifications } from '../../db/notifications.ts'
import type { Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import { CLOSE, type CloseCode } from '../../net/websocket.ts'

/** Side by side, of one agent in one process: browsers, command lines and bots of its owner. */
const MOST_OF_AN_AGENT = 128
const MOST = 4096
/** How long a notification that was missed, or a check that failed, leaves connections open at most. */
const RECHECK_MS = 1000
const CLOSING_MS = 1500
/** The longest that a timer takes; no connection lasts as long. */
const MAX_TIMER_MS = 2 ** 31 - 1

const NO_LONGER_GOOD = 'The token or key is no longer good'

/** Something that is open. */
export interface Connection {
  agentId: string
  /** The agent's gateway token when it was opened. */
  gatewayToken: string
  /** The API key that opened it; undefined where a token of the agent's own did. */
  keyId: string | undefined
  /** Ends it. */
  end(code: CloseCode, reason: string): void
}

export class AgentConnections {
  readonly #pool: Pool
  readonly #notifications: Notifications
  readonly #log: Logger
  readonly #open = new Set<Connection>()
  readonly #stopListening: (() => void)[]
  #timer: NodeJS.Timeout | undefined
  #changes = 0
  #closed = false

  constructor(options: { pool: Pool; notifications: Notifications; registry: Registry; log: Logger }) {
    const { pool, notifications, registry, log } = options
    this.#pool = pool
    this.#notifications = notifications
    this.#log = log
    const check = () => this.#check()
    this.#stopListening = (['berth_agent', 'berth_api_key', 'lost'] as const).map((channel) =>
      notifications.on(channel, check),
    )
    const count = () => this.#open.size
    new Gauge({
      name: 'berth_agent_connections',
      help: 'Requests and WebSockets between clients and agents that are open in this process.',
      registers: [registry],
      collect() {
        this.set(count())
      },
    })
  }

  /** A mark of now, to be taken before the key is checked and given to {@link add}. */
  get changes(): number {
    return this.#changes
  }

  /**
   * Keeps a connection until the function that it returns is called.
   * @param since {@link changes} as they were before the key was checked: a change in between is not missed.
   * @throws ApiError 503 where there are too many already.
   */
  add(
    { agentId, gatewayToken }: Agent,
    principal: Principal,
    since: number,
    end: Connection['end'],
  ): () => void {
    const ofAgent = [...this.#open].filter((connection) => connection.agentId === agentId).length
    if (this.#closed || ofAgent >= MOST_OF_AN_AGENT || this.#open.size >= MOST) {
      throw new ApiError(503, 'too_many_connections', 'Too many connections to this agent', {
        headers: { 'retry-after': '5' },
      })
    }
    const connection = { agentId, gatewayToken, keyId: principal.agent ? undefined : principal.keyId, end }
    this.#open.add(connection)
    if (this.#changes !== since) this.#check()
    const expiry = principal.expiresAt && this.#endAt(principal.expiresAt, connection)
    return () => {
      clearTimeout(expiry ?? undefined)
      this.#open.delete(connection)
    }
  }

  /** Ends all of them, and takes no more. Resolves when they are gone, or soon after. */
  async close(): Promise<void> {
    this.#closed = true
    clearTimeout(this.#timer)
    for (const stop of this.#stopListening) stop()
    for (const { end } of this.#open) end(CLOSE.goingAway, 'Berth stops')
    const deadline = performance.now() + CLOSING_MS
    while (this.#open.size > 0 && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 20))
  }

  /** A key that expires tells nobody. */
  #endAt(time: Date, { end }: Connection): NodeJS.Timeout {
    const ms = Math.min(time.getTime() - Date.now(), MAX_TIMER_MS)
    return setTimeout(() => end(CLOSE.policyViolation, NO_LONGER_GOOD), ms).unref()
  }

  #check(): void {
    this.#changes++
    void this.#endStale().catch((error) => {
      this.#log.debug({ err: error }, 'connections to agents are checked again soon')
      this.#checkLater()
    })
  }

  #checkLater(): void {
    clearTimeout(this.#timer)
    if (!this.#closed) this.#timer = setTimeout(() => this.#check(), RECHECK_MS).unref()
  }

  async #endStale(): Promise<void> {
    // As long as notifications may be missed, time takes their place.
    if (!this.#notifications.connected) this.#checkLater()
    const open = [...this.#open]
    if (open.length === 0) return
    const agents = await this.#pool.query<{ id: string; token: string }>(
      `SELECT agent_id AS id, gateway_token AS token FROM agent
       WHERE agent_id = ANY($1) AND deleted_at IS NULL`,
      [open.map(({ agentId }) => agentId)],
    )
    const keys = await this.#pool.query<{ id: string }>(
      `SELECT k.id FROM api_key k
       JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id
       WHERE k.id = ANY($1) AND k.revoked_at IS NULL`,
      [open.flatMap(({ keyId }) => keyId ?? [])],
    )
    const tokens = new Map(agents.rows.map(({ id, token }) => [id, token]))
    const goodKeys = new Set(keys.rows.map(({ id }) => id))
    for (const { agentId, gatewayToken, keyId, end } of open) {
      const isGood = tokens.get(agentId) === gatewayToken && (keyId === undefined || goodKeys.has(keyId))
      if (!isGood) end(CLOSE.policyViolation, NO_LONGER_GOOD)
    }
  }
}
