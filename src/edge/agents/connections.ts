/**
 * What is open between clients and agents in this process: WebSockets, log streams and answers under way. Each ends
 * at once when that which opened it is no longer good: the gateway token was rotated, the agent deleted, the key revoked,
 * the domain or the route gone.
 */
import { Gauge, type Registry } from 'prom-client'
import type { Principal } from '../../accounts/authenticator.ts'
import type { Agent } from '../../agents/agent.ts'
import type { Notifications } from '../../db/notifications.ts'
import type { Pool } from '../../db/pool.ts'
import { ApiError } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import { CLOSE, type CloseCode } from '../../net/websocket.ts'

/**
 * Most at a time, of one agent and of all, in one process. Its owner's browsers, command lines and bots, and visitors
 * of its pages, are counted apart: visitors never lock the owner out.
 */
const MOST = { owner: { ofAgent: 128, ofAll: 4096 }, page: { ofAgent: 512, ofAll: 4096 } }
type Kind = keyof typeof MOST
/** How long a notification that was missed, or a check that failed, leaves connections open at most. */
const RECHECK_MS = 1000
const CLOSING_MS = 1500
/** The longest that a timer takes; no connection lasts as long. */
const MAX_TIMER_MS = 2 ** 31 - 1

const NO_LONGER_GOOD = 'The token or key is no longer good'

/** Something that is open. */
export interface Connection {
  kind: Kind
  agentId: string
  /** The agent's gateway token when it was opened; undefined where none was asked for. */
  gatewayToken: string | undefined
  /** The API key that opened it; undefined where a token of the agent's own did. */
  keyId: string | undefined
  /** The way to a port that it goes; see {@link Way}. */
  way: string | undefined
  /** Ends it. */
  end(code: CloseCode, reason: string): void
}

/** A domain or a route, as it was when something was opened by it. */
export interface Way {
  /** {@link DOMAIN_MARK} or {@link ROUTE_MARK} of its row: another one when it leads elsewhere. */
  mark: string
  protected: boolean
}

/** What of a row of `domain` decides what may be open by it. */
export const DOMAIN_MARK = `domain.id || ':' || domain.target_port || ':' || domain.protected::text`
/** The same of a row of `agent_route`. */
export const ROUTE_MARK = `agent_route.agent_id || agent_route.path_prefix || ':' || agent_route.port || ':' ||
  agent_route.protected::text`

export class AgentConnections {
  readonly #pool: Pool
  readonly #notifications: Notifications
  readonly #log: Logger
  readonly #open = new Set<Connection>()
  /** How many of a kind there are, by agent; of all agents under the empty name. */
  readonly #counts = { owner: new Map<string, number>(), page: new Map<string, number>() }
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
    const keyId = principal.agent ? undefined : principal.keyId
    const connection = { kind: 'owner', agentId, gatewayToken, keyId, way: undefined, end } as const
    const forget = this.#keep(connection, since)
    const expiry = principal.expiresAt && this.#endAt(principal.expiresAt, connection)
    return () => {
      clearTimeout(expiry ?? undefined)
      forget()
    }
  }

  /**
   * Keeps what a visitor has open by a domain or a route, as {@link add} does.
   * @param agent with the gateway token that the visitor gave, where the way is protected.
   */
  addVisit(agent: Agent, way: Way, since: number, end: Connection['end']): () => void {
    const gatewayToken = way.protected ? agent.gatewayToken : undefined
    const { agentId } = agent
    return this.#keep({ kind: 'page', agentId, gatewayToken, keyId: undefined, way: way.mark, end }, since)
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

  #keep(connection: Connection, since: number): () => void {
    const { kind, agentId } = connection
    const counts = this.#counts[kind]
    const [ofAgent, ofAll] = [counts.get(agentId) ?? 0, counts.get('') ?? 0]
    if (this.#closed || ofAgent >= MOST[kind].ofAgent || ofAll >= MOST[kind].ofAll) {
      throw new ApiError(503, 'too_many_connections', 'Too many connections to this agent', {
        headers: { 'retry-after': '5' },
      })
    }
    const count = (by: 1 | -1) => {
      for (const name of [agentId, '']) {
        const now = (counts.get(name) ?? 0) + by
        if (now > 0) counts.set(name, now)
        else counts.delete(name)
      }
    }
    count(1)
    this.#open.add(connection)
    if (this.#changes !== since) this.#check()
    return () => {
      if (this.#open.delete(connection)) count(-1)
    }
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
    const ways = await this.#findWays(open.flatMap(({ way, agentId }) => (way === undefined ? [] : agentId)))
    const tokens = new Map(agents.rows.map(({ id, token }) => [id, token]))
    const goodKeys = new Set(keys.rows.map(({ id }) => id))
    for (const { agentId, gatewayToken, keyId, way, end } of open) {
      const token = tokens.get(agentId)
      const isGood =
        token !== undefined &&
        (gatewayToken === undefined || gatewayToken === token) &&
        (keyId === undefined || goodKeys.has(keyId)) &&
        (way === undefined || ways.has(way))
      if (!isGood) end(CLOSE.policyViolation, NO_LONGER_GOOD)
    }
  }

  /** The ways to the ports of some agents, as they are now. */
  async #findWays(agentIds: string[]): Promise<Set<string>> {
    if (agentIds.length === 0) return new Set()
    const { rows } = await this.#pool.query<{ mark: string }>(
      `SELECT ${DOMAIN_MARK} AS mark FROM domain JOIN agent ON agent.id = domain.agent_id
       WHERE agent.agent_id = ANY($1) AND domain.status = 'verified'
       UNION ALL
       SELECT ${ROUTE_MARK} FROM agent_route JOIN agent ON agent.id = agent_route.agent_id
       WHERE agent.agent_id = ANY($1)`,
      [agentIds],
    )
    return new Set(rows.map(({ mark }) => mark))
  }
}
