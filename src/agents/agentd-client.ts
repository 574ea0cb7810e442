/**
 * The only way from Berth to an agent: HTTP to its agentd, through a tunnel of the `agent-proxy` role. What comes back is
 * untrusted: every answer is bounded in size and time, and no redirect is followed.
 */
import { createHmac } from 'node:crypto'
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type RequestOptions,
  request,
} from 'node:http'
import type { Socket } from 'node:net'
import type { z } from 'zod'
import { EPOCH_HEADER, TUNNEL_UPGRADE } from '../../agentd/protocol.ts'
import { type AgentProxyAddress, askAgentProxy, openTunnel } from '../agent-proxy/tunnel-client.ts'
import { AgentdError, readBounded, readError } from './agentd-answer.ts'

export { AgentdError }

/** An agent's id, and `address:port` of its agentd (null: nowhere). */
export interface AgentdTarget {
  agentId: string
  address: string | null
}

export interface AgentdRequest {
  method?: string
  /** Path and query, as `agentd/protocol.ts` has it. */
  path: string
  /** JSON, or raw bytes. */
  json?: unknown
  body?: Buffer | NodeJS.ReadableStream
  headers?: Record<string, string>
  /** Whether doing it twice is doing it once. Default: by its method. */
  isRepeatable?: boolean
  /** Sent where the request changes the agent: agentd refuses a lower one than it has seen. */
  epoch?: number
  /** Until the answer is complete, or begins where it is a stream; to connect takes 5 s at most. Default 10 s. */
  timeoutMs?: number
  /** Most bytes of the answer. Default 1 MiB. */
  maxBytes?: number
  signal?: AbortSignal | undefined
}

/** The connection that a request needs; `program` is the port behind agentd, where it is not agentd itself. */
type Connecting = RequestOptions & { agentId: string; program?: number | undefined }

/** A connection that speaks WebSocket now. */
export interface Switched {
  response: IncomingMessage
  socket: Socket
  head: Buffer
}

const TIMEOUT_MS = 10_000
/** agentd takes a request within milliseconds; on a busy machine it takes seconds. */
const AWAKE_MS = 10_000
const MAX_BYTES = 1_048_576
/** Unused connections are dropped after this: a tunnel costs two round trips. */
const IDLE_MS = 30_000
/** Shorter than programs keep an unused connection: who sends must be the first to drop it. */
const PROGRAM_IDLE_MS = 2000
/** Informational answers (103) of a program before its answer. */
const MOST_INFORMATIONAL = 16
/** Doing these twice is doing them once (RFC 9110, 9.2.2). */
const IDEMPOTENT = ['GET', 'HEAD', 'PUT', 'DELETE']

export class AgentdClient {
  readonly #proxy: AgentProxyAddress
  /**
   * Connections that are used again, as many as the browsers of a few visitors ask by at once; and those for one request,
   * which could not be repeated if they proved stale.
   */
  readonly #kept = new HttpAgent({ keepAlive: true, maxFreeSockets: 16, timeout: IDLE_MS })
  // Not by `Connection: close`: a server that closes on a body which it does not read resets the connection, and its
  // answer is lost.
  readonly #single = new HttpAgent({ keepAlive: true })
  /** Connections to agents' own programs that are used again. */
  readonly #programs = new HttpAgent({ keepAlive: true, maxFreeSockets: 16, timeout: PROGRAM_IDLE_MS })

  constructor(proxy: AgentProxyAddress) {
    this.#proxy = proxy
    // Set afterwards: given as an option, Node takes 0 for not given.
    this.#single.maxFreeSockets = 0
    const opening =
      (open: (to: Connecting) => Promise<Socket>): HttpAgent['createConnection'] =>
      (options, done) => {
        open(options as Connecting).then(
          (socket) => done?.(null, socket),
          (error) => done?.(error, undefined as never),
        )
        return undefined
      }
    const toAgentd = opening(({ host, port }) => this.#open(`${host}:${port}`))
    for (const agent of [this.#kept, this.#single, this.#programs]) {
      // Free connections are told apart by agent as well: an address may be another agent's next.
      agent.getName = (options) => {
        const { agentId, host, port, program } = options as Connecting
        return `${agentId} ${host}:${port} ${program}`
      }
      agent.createConnection = toAgentd
    }
    // Node drops one on which anything comes between two requests, or whose answer was not read to its end.
    this.#programs.createConnection = opening(({ agentId, host, port, program }) =>
      this.#openProgram({ agentId, address: `${host}:${port}` }, program),
    )
  }

  /**
   * Sends a request and reads its whole JSON answer; undefined for an empty one.
   * @param shape of the answer, wherever it is used: agentd is untrusted. @throws AgentdError
   */
  async json<T>(target: AgentdTarget, options: AgentdRequest, shape?: z.ZodType<T>): Promise<T> {
    const { body } = await this.bytes(target, options)
    try {
      const answer = body.length > 0 ? JSON.parse(body.toString('utf8')) : undefined
      return shape ? shape.parse(answer) : answer
    } catch (error) {
      throw new AgentdError('bad_answer', 'agentd answered no JSON of this shape', 0, { cause: error })
    }
  }

  /** Sends a request and reads its whole answer. @throws AgentdError */
  async bytes(
    target: AgentdTarget,
    options: AgentdRequest,
  ): Promise<{ body: Buffer; headers: IncomingMessage['headers'] }> {
    const bound = AbortSignal.timeout(options.timeoutMs ?? TIMEOUT_MS)
    const signal = options.signal ? AbortSignal.any([options.signal, bound]) : bound
    try {
      const response = await this.stream(target, { ...options, signal })
      const body = await readBounded(response, options.maxBytes ?? MAX_BYTES, signal)
      return { body, headers: response.headers }
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason
      if (bound.aborted) throw tooLate({ cause: error, mayRepeat: isRepeatable(options) })
      throw error
    }
  }

  /**
   * Sends a request and resolves to its successful answer, unread; whoever reads it sets the bounds.
   * @throws AgentdError for any other status than 2xx, with agentd's code.
   */
  async stream(target: AgentdTarget, options: AgentdRequest): Promise<IncomingMessage> {
    const response = await this.send(target, options)
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    throw await readError(response)
  }

  /**
   * Sends a request and resolves to its answer, unread and whatever its status: for what is passed on as it is.
   * A kept connection that had died unnoticed costs one more try, where the request may be repeated.
   * @throws AgentdError `unreachable`, `timeout` or `bad_answer`.
   */
  async send(target: AgentdTarget, options: AgentdRequest): Promise<IncomingMessage> {
    if (!target.address) throw noAddress()
    const { body } = options
    if (!isRepeatable(options) || (body && !Buffer.isBuffer(body)))
      return this.#send(target, options, this.#single)
    try {
      return await this.#send(target, options, this.#kept)
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error
      return this.#send(target, options, this.#single)
    }
  }

  /**
   * Sends a request without a body to a port of the agent's own, over a kept connection on which agentd moves bytes alone.
   * Resolves to the program's answer, unread and whatever its status.
   * @param options `headers` as the program gets them, `host` included.
   * @throws AgentdError `timeout` or `bad_answer`; `engine` where the program closed a new connection, or speaks no HTTP;
   *   `unreachable` also where a kept connection had died unnoticed, or agentd opens none. agentd can say what is wrong with
   *   the program: `/v1/port`.
   */
  async sendToProgram(
    target: AgentdTarget,
    port: number,
    options: Pick<AgentdRequest, 'method' | 'path' | 'headers' | 'timeoutMs' | 'signal'>,
  ): Promise<IncomingMessage> {
    if (!target.address) throw noAddress()
    return this.#send(target, options, this.#programs, port)
  }

  /**
   * Asks for a WebSocket, or another protocol, and resolves to the connection once agentd has switched, with what it sent
   * behind its answer. Whoever gets the connection closes it.
   * @throws AgentdError with agentd's code, where it refuses.
   */
  async upgrade(
    target: AgentdTarget,
    options: Pick<AgentdRequest, 'path' | 'headers' | 'signal'>,
    protocol = 'websocket',
  ): Promise<Switched> {
    if (!target.address) throw noAddress()
    const { promise, resolve, reject } = Promise.withResolvers<Switched>()
    const headers = { ...options.headers, connection: 'Upgrade', upgrade: protocol }
    const sent = this.#request(target, { ...options, headers }, this.#single)
    const late = setTimeout(() => sent.destroy(tooLate()), TIMEOUT_MS)
    sent.once('upgrade', (response, duplex, head) => {
      clearTimeout(late)
      const socket = duplex as Socket
      socket.on('error', () => {})
      resolve({ response, socket, head })
    })
    sent.once('response', (response) => resolve(readError(response).then((error) => Promise.reject(error))))
    sent.on('error', (error) => reject(explain(error, sent, options.signal)))
    sent.once('close', () => {
      clearTimeout(late)
      reject(new AgentdError('bad_answer', 'agentd closed the connection'))
    })
    return promise
  }

  /** agentd's token of an agent; agentd itself knows only its hash. */
  token(agentId: string): string {
    return createHmac('sha256', this.#proxy.key).update(`agentd:${agentId}`).digest('base64url')
  }

  /** True where the agent proxy answers. */
  isProxyThere(): Promise<boolean> {
    return askAgentProxy(this.#proxy).then(Boolean, () => false)
  }

  /** Ends everything under way. */
  close(): void {
    this.#kept.destroy()
    this.#single.destroy()
    this.#programs.destroy()
  }

  #open(address: string): Promise<Socket> {
    return openTunnel(this.#proxy, address).catch((error) => {
      throw new AgentdError('unreachable', `agentd cannot be reached: ${error.message}`, 0, { cause: error })
    })
  }

  async #openProgram(agentd: AgentdTarget, port: number | undefined): Promise<Socket> {
    try {
      const { socket, head } = await this.upgrade(agentd, { path: `/v1/tunnel/${port}` }, TUNNEL_UPGRADE)
      if (head.length > 0) socket.unshift(head)
      return socket
    } catch (error) {
      throw new AgentdError('unreachable', `there is no tunnel: ${(error as Error).message}`)
    }
  }

  #send(to: AgentdTarget, options: AgentdRequest, agent: HttpAgent, program?: number) {
    const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>()
    const sent = this.#request(to, options, agent, program)
    const ms = options.timeoutMs ?? TIMEOUT_MS
    const late = setTimeout(() => sent.destroy(tooLate({ mayRepeat: isRepeatable(options) })), ms)
    const silent = sent.hasHeader('expect') ? setTimeout(() => sent.destroy(isSilent()), AWAKE_MS) : undefined
    sent.once('continue', () => clearTimeout(silent))
    let isAnswered = false
    sent.once('response', (response) => {
      isAnswered = true
      clearTimeout(late)
      clearTimeout(silent)
      const { statusCode = 0 } = response
      if (statusCode < 200 || statusCode > 599) {
        reject(new AgentdError('bad_answer', `agentd answered status ${statusCode}`))
        return void sent.destroy()
      }
      // Said before all was sent, it may be the last word: nobody waits for the rest.
      response.once('close', () => {
        if (!sent.writableFinished) sent.destroy()
      })
      resolve(response)
    })
    sent.once('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new AgentdError('bad_answer', 'agentd switched protocols unasked'))
    })
    sent.on('error', (error) => reject(explain(error, sent, options.signal, program)))
    // Not every end of a connection is an error to Node.
    sent.once('close', () => {
      clearTimeout(late)
      clearTimeout(silent)
      if (!isAnswered) reject(new AgentdError('bad_answer', 'agentd closed the connection'))
    })
    return promise
  }

  #request(to: AgentdTarget, options: AgentdRequest, agent: HttpAgent, program?: number): ClientRequest {
    const { agentId, address } = to
    const { hostname, port } = new URL(`http://${address}`)
    const json = options.json === undefined ? undefined : Buffer.from(JSON.stringify(options.json))
    const body = json ?? options.body
    // Where agentd has stopped, as in a container that is paused, its kernel would still take the request.
    const isHeldBack = body !== undefined
    const sent = request({
      agent,
      agentId,
      program,
      host: hostname,
      port: port || 80,
      method: options.method ?? 'GET',
      path: options.path,
      headers: {
        // A program must not see agentd's token.
        ...(program === undefined && { host: 'agentd', authorization: `Bearer ${this.token(agentId)}` }),
        ...(json && { 'content-type': 'application/json' }),
        ...(Buffer.isBuffer(body) && { 'content-length': body.length }),
        ...(isHeldBack && { expect: '100-continue' }),
        ...(options.epoch !== undefined && { [EPOCH_HEADER]: String(options.epoch) }),
        ...options.headers,
      },
    } satisfies Connecting as Connecting)
    endWith(options.signal, sent)
    // Berth asks for one informational answer at most, and each costs time: they could come without an end.
    let informational = program === undefined ? MOST_INFORMATIONAL - (isHeldBack ? 1 : 0) : 0
    sent.on('information', () => {
      if (++informational > MOST_INFORMATIONAL)
        sent.destroy(new AgentdError('bad_answer', 'agentd answers in parts'))
    })
    const send = () => {
      if (body === undefined || Buffer.isBuffer(body)) sent.end(body)
      else body.pipe(sent)
    }
    if (body && !Buffer.isBuffer(body)) body.on('error', (error: Error) => sent.destroy(error))
    if (isHeldBack) sent.once('continue', send)
    else send()
    return sent
  }
}

/** Ends a request with a signal; Node's own option for that costs several times as much. */
function endWith(signal: AbortSignal | undefined, sent: ClientRequest): void {
  if (!signal) return
  const abort = () => void sent.destroy(new Error('aborted'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  sent.once('close', () => signal.removeEventListener('abort', abort))
}

/** A connection that was used before broke before it brought anything. */
class StaleConnection extends AgentdError {}

function explain(error: NodeJS.ErrnoException, sent: ClientRequest, signal?: AbortSignal, program?: number) {
  if (signal?.aborted) return signal.reason
  if (error instanceof AgentdError) return error
  const options = { cause: error }
  if (program !== undefined && !sent.reusedSocket)
    return new AgentdError('engine', `port ${program} did not answer: ${error.message}`, 0, options)
  // Node's parser did not take the answer for HTTP.
  if (error.code?.startsWith('HPE_'))
    return new AgentdError('bad_answer', 'agentd answered no HTTP', 0, options)
  const kind = sent.reusedSocket ? StaleConnection : AgentdError
  return new kind('unreachable', `agentd cannot be reached: ${error.message}`, 0, options)
}

const noAddress = () => new AgentdError('unreachable', 'the agent has no address')
const isSilent = () =>
  new AgentdError('unreachable', 'agentd takes no requests: it hangs, or its container is paused')
const tooLate = (options: ErrorOptions & { mayRepeat?: boolean } = {}) =>
  new AgentdError('timeout', 'agentd did not answer in time', 0, options)
const isRepeatable = ({ method = 'GET', isRepeatable }: AgentdRequest) =>
  isRepeatable ?? IDEMPOTENT.includes(method)
