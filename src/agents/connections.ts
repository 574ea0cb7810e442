/**
 * Tracks open connections between clients and agents in this process: WebSockets, log streams and unfinished responses.
 * `OpenCalls` ends them when the credential that opened them becomes invalid.
 */
import type { ServerResponse } from 'node:http'
import type { Response } from 'express'
import { Gauge, type Registry } from 'prom-client'
import type { Pool } from '../db/pool.ts'
import { readFingerprints } from '../db/statements/agents.ts'
import { type ApiError, messages, unauthorized, unavailable } from '../errors.ts'
import { abortOnDisconnect } from '../http/disconnect.ts'
import { byCaller, type Ground, type OpenCall, type OpenCalls } from '../http/open-calls.ts'
import type { Principal } from '../http/principal.ts'
import { CLOSE, type CloseCode } from '../lib/net/websocket.ts'
import { tokenFingerprint } from './access.ts'
import type { Agent } from './agent.ts'

const CLOSING_MS = 1500

/**
 * A {@link AgentConnections.changeCount} for callers that cannot know it: the key was checked before the handler ran,
 * so it is checked again.
 */
export const SINCE_UNKNOWN = -1

const NO_LONGER_GOOD = 'The token or key is no longer valid'

/** An open connection of a client. */
export interface Connection {
  agentId: string
  /** Closes the connection. */
  end(code: CloseCode, reason: string): void
}

/** A WebSocket of a client. */
export interface HeldSocket extends Pick<Connection, 'end'> {
  /** Resolves when it has ended. */
  closed: Promise<void>
}

/** Tracks a connection until the returned function is called, as {@link AgentConnections.add} does. */
type Track = (end: Connection['end']) => () => void

/** A domain or a route at the time when a connection was opened through it. */
export interface PortBinding {
  /** `DOMAIN_FINGERPRINT` or `ROUTE_FINGERPRINT` of its row; changes when it leads elsewhere. */
  fingerprint: string
  protected: boolean
}

export class AgentConnections {
  readonly #calls: OpenCalls
  readonly #open = new Set<Connection>()
  #closed = false

  constructor({ calls, registry }: { calls: OpenCalls; registry: Registry }) {
    this.#calls = calls
    const count = () => this.#open.size
    new Gauge({
      name: 'berth_agent_connections',
      help: 'Open requests and WebSockets between clients and agents in this process.',
      registers: [registry],
      collect() {
        this.set(count())
      },
    })
  }

  /**
   * How many changes this process has been notified of. Read it before checking the key, and pass it to {@link add},
   * which checks again if it has grown.
   */
  get changeCount(): number {
    return this.#calls.changeCount
  }

  /**
   * Tracks a connection until the returned function is called.
   * @param since {@link changeCount} from before the key was checked, so that no change in between is missed.
   * @throws ApiError 503 after {@link close}.
   */
  add(
    { agentId, gatewayToken }: Agent,
    principal: Principal,
    since: number,
    end: Connection['end'],
  ): () => void {
    const grounds = [byCaller(principal), byAgent(agentId, gatewayToken)]
    const { expiresAt } = principal
    return this.#keep({ agentId, end }, { grounds, expiresAt, since })
  }

  /** Tracks a connection that has yet to authenticate, as {@link add} does. */
  addStranger({ agentId }: Agent, since: number, end: Connection['end']): () => void {
    return this.#keep({ agentId, end }, { grounds: [byAgent(agentId)], since })
  }

  /**
   * Tracks a visitor's connection through a domain or a route, as {@link add} does.
   * @param agent with the gateway token that the visitor gave, if the binding is protected.
   */
  addVisit(agent: Agent, binding: PortBinding, since: number, end: Connection['end']): () => void {
    const { agentId, gatewayToken } = agent
    const grounds = [
      byAgent(agentId, binding.protected ? gatewayToken : undefined),
      byBinding(agentId, binding.fingerprint),
    ]
    return this.#keep({ agentId, end }, { grounds, since })
  }

  /** Ends all connections, and refuses new ones. Resolves when they are gone, or soon after. */
  async close(): Promise<void> {
    this.#closed = true
    for (const { end } of this.#open) end(CLOSE.goingAway, 'Berth is stopping')
    const deadline = performance.now() + CLOSING_MS
    while (this.#open.size > 0 && performance.now() < deadline)
      await new Promise((resolve) => setTimeout(resolve, 20))
  }

  #keep(connection: Connection, call: Omit<OpenCall, 'end'>): () => void {
    if (this.#closed) throw unavailable('Berth is stopping')
    this.#open.add(connection)
    const forget = this.#calls.add({
      ...call,
      end: () => connection.end(CLOSE.policyViolation, NO_LONGER_GOOD),
    })
    return () => {
      forget()
      this.#open.delete(connection)
    }
  }
}

/** Runs a request until its client disconnects, or its token, key or binding is no longer valid. */
export async function holdRequest(
  res: ServerResponse,
  track: Track,
  run: (signal: AbortSignal) => Promise<void>,
): Promise<void> {
  const gone = abortOnDisconnect(res)
  const forget = track((code) => {
    // On shutdown, the server lets responses finish.
    if (code !== CLOSE.goingAway) gone.abort(closeError(code))
  })
  try {
    await run(gone.signal)
  } finally {
    forget()
  }
}

/** Opens a WebSocket, and holds it as {@link holdRequest} does, but not during a shutdown. */
export async function holdSocket(
  res: Response,
  track: Track,
  open: (signal: AbortSignal) => Promise<HeldSocket | undefined>,
): Promise<void> {
  const start = performance.now()
  const gone = abortOnDisconnect(res)
  let socket: HeldSocket | undefined
  let ended: Parameters<Connection['end']> | undefined
  const forget = track((...why) => {
    ended = why
    if (socket) socket.end(...why)
    else gone.abort(closeError(why[0]))
  })
  try {
    socket = await open(gone.signal)
    if (ended) socket?.end(...ended)
    await socket?.closed
  } finally {
    forget()
    const ms = Math.round(performance.now() - start)
    res.req.log.debug({ host: res.req.host, ms }, 'WebSocket closed')
  }
}

/** Holds while the agent is not deleted and, if `gatewayToken` is given, still has this token. */
const byAgent = (agentId: string, gatewayToken?: string): Ground => ({
  of: 'agent',
  id: agentId,
  fingerprint: gatewayToken === undefined ? agentId : `${agentId}:${tokenFingerprint(gatewayToken)}`,
})

/** Holds while a domain or a route of an agent leads to the same place. */
const byBinding = (agentId: string, fingerprint: string): Ground => ({
  of: 'binding',
  id: agentId,
  fingerprint,
})

/** The fingerprints of the grounds that still hold. */
export async function readValidFingerprints(pool: Pool, grounds: Ground[]): Promise<Set<string>> {
  const ids = (of: Ground['of']) => [
    ...new Set(grounds.flatMap((ground) => (ground.of === of ? ground.id : []))),
  ]
  const { rows } = await readFingerprints.run(pool, ids('key'), ids('agent'), ids('binding'))
  return new Set(rows.map(({ fingerprint }) => fingerprint))
}

/** The error for an unanswered request whose connection Berth has ended. */
export const closeError = (code: CloseCode): ApiError =>
  code === CLOSE.goingAway ? unavailable('Berth is stopping') : unauthorized(messages.badToken, 'bad_token')
