/**
 * Berth's only way to an agent: HTTP to its agentd, through a tunnel of the `agent-proxy` role. Responses are
 * untrusted: each is bounded in size and time, and redirects are not followed.
 */
import { createHmac } from 'node:crypto'
import {
  type ClientRequest,
  Agent as HttpAgent,
  type IncomingMessage,
  type OutgoingHttpHeaders,
  type RequestOptions,
  request,
} from 'node:http'
import type { Socket } from 'node:net'
import type { z } from 'zod'
import { EPOCH_HEADER, TUNNEL_UPGRADE } from '../../agentd/protocol.ts'
import { type AgentProxyAddress, askAgentProxy, openTunnel } from '../agent-proxy/tunnel-client.ts'
import { withDeadline } from '../lib/signals.ts'
import { AgentdError, readBounded, readError } from './agentd-answer.ts'

export { AgentdError }

/** An agent's id, and `address:port` of its agentd (null: no address). */
export interface AgentdTarget {
  agentId: string
  address: string | null
}

export interface AgentdRequest {
  method?: string
  /** Path and query, as defined in `agentd/protocol.ts`. */
  path: string
  /** JSON, or raw bytes. */
  json?: unknown
  body?: Buffer | NodeJS.ReadableStream
  headers?: OutgoingHttpHeaders
  /** True if repeating the request has no further effect. Default: depends on its method. */
  isRepeatable?: boolean
  /** Sent with requests that change the agent: agentd refuses epochs lower than the highest it has seen. */
  epoch?: number
  /** Time until the response is complete or, for a stream, begins; connecting takes at most 5 s. Default 10 s. */
  timeoutMs?: number
  /** Maximum bytes of the response. Default 1 MiB. */
  maxBytes?: number
  signal?: AbortSignal | undefined
}

/** The options for connecting; `program` is the port behind agentd, unless the request is for agentd itself. */
type Connecting = RequestOptions & { agentId: string; program?: number | undefined }

/** A connection after switching to WebSocket. */
export interface Switched {
  response: IncomingMessage
  socket: Socket
  head: Buffer
}

const TIMEOUT_MS = 10_000
/** agentd accepts a request within milliseconds, on a busy machine within seconds. */
const AWAKE_MS = 10_000
const MAX_BYTES = 1_048_576
/** Idle time after which connections are dropped: a new tunnel costs two round trips. */
const IDLE_MS = 30_000
/** Shorter than programs keep idle connections, so that the sender closes first. */
const PROGRAM_IDLE_MS = 2000
/** Maximum number of a program's informational responses (103) before its final response. */
const MAX_INFORMATIONAL = 16
/** Methods whose repetition has no further effect (RFC 9110, 9.2.2). */
const IDEMPOTENT = ['GET', 'HEAD', 'PUT', 'DELETE']

export class AgentdClient {
  readonly #proxy: AgentProxyAddress
  /**
   * Keeps connections for reuse, as many as a few visitors' browsers open at once. `#single` serves requests that could
   * not be repeated on a stale connection.
   */
  readonly #kept = new HttpAgent({ keepAlive: true, maxFreeSockets: 16, timeout: IDLE_MS })
  // Does not send `Connection: close`: a server that closes without reading a body resets the connection, and its
  // response is lost.
  readonly #single = new HttpAgent({ keepAlive: true })
  /** Reused connections to agents' own programs. */
  readonly #programs = new HttpAgent({ keepAlive: true, maxFreeSockets: 16, timeout: PROGRAM_IDLE_MS })

  constructor(proxy: AgentProxyAddress) {
    this.#proxy = proxy
    // Set afterwards, because Node treats the option 0 as not given.
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
      // Free connections are also kept apart by agent, because an address may belong to another agent next.
      agent.getName = (options) => {
        const { agentId, host, port, program } = options as Connecting
        return `${agentId} ${host}:${port} ${program}`
      }
      agent.createConnection = toAgentd
    }
    // Node drops a connection if anything arrives between two requests, or if its response was not read completely.
    this.#programs.createConnection = opening(({ agentId, host, port, program }) =>
      this.#openProgram({ agentId, address: `${host}:${port}` }, program),
    )
  }

  /**
   * Sends a request and reads its complete JSON response; undefined for an empty one.
   * @param shape the expected response; required if the response is used, because agentd is untrusted. @throws
   *   AgentdError
   */
  async json<T>(target: AgentdTarget, options: AgentdRequest, shape?: z.ZodType<T>): Promise<T> {
    const { body } = await this.bytes(target, options)
    try {
      const answer = body.length > 0 ? JSON.parse(body.toString('utf8')) : undefined
      return shape ? shape.parse(answer) : answer
    } catch (error) {
      throw new AgentdError('bad_answer', 'agentd sent no JSON of this shape', { cause: error })
    }
  }

  /** Sends a request and reads its complete response. @throws AgentdError */
  async bytes(
    target: AgentdTarget,
    options: AgentdRequest,
  ): Promise<{ body: Buffer; headers: IncomingMessage['headers'] }> {
    const { timeoutMs: ms = TIMEOUT_MS, maxBytes = MAX_BYTES } = options
    const late = () => tooLate({ mayRepeat: isRepeatable(options) })
    return withDeadline({ ms, signal: options.signal, late }, async (signal) => {
      const response = await this.stream(target, { ...options, signal })
      const body = await readBounded(response, maxBytes, signal)
      return { body, headers: response.headers }
    })
  }

  /**
   * Sends a request and resolves to its successful response, unread; the reader sets the limits.
   * @throws AgentdError with agentd's code for any status other than 2xx.
   */
  async stream(target: AgentdTarget, options: AgentdRequest): Promise<IncomingMessage> {
    const response = await this.send(target, options)
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    throw await readError(response)
  }

  /**
   * Sends a request and resolves to its response, unread and whatever its status, to be passed on verbatim. If a kept
   * connection turns out to be dead, tries once more, provided that the request may be repeated.
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
   * Sends a request without a body to one of the agent's own ports, over a kept connection on which agentd only relays
   * bytes. Resolves to the program's response, unread and whatever its status.
   * @param options `headers` as the program receives them, including `host`.
   * @throws AgentdError `timeout` or `bad_answer`; `engine` if the program closed a new connection, or does not speak
   *   HTTP; `unreachable` if agentd cannot be reached or opens no connection, or if a kept connection turned out to be
   *   dead. `/v1/port` of agentd then explains what is wrong with the program.
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
   * Asks for a WebSocket, or another protocol. Resolves once agentd has switched, to the connection and the bytes that
   * followed the response. The caller closes the connection.
   * @throws AgentdError with agentd's code if it refuses.
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

  /** agentd's token for an agent; agentd itself knows only its hash. */
  token(agentId: string): string {
    return createHmac('sha256', this.#proxy.key).update(`agentd:${agentId}`).digest('base64url')
  }

  /** True if the agent proxy responds. */
  isProxyThere(): Promise<boolean> {
    return askAgentProxy(this.#proxy).then(Boolean, () => false)
  }

  /** Ends all active requests. */
  close(): void {
    this.#kept.destroy()
    this.#single.destroy()
    this.#programs.destroy()
  }

  #open(address: string): Promise<Socket> {
    return openTunnel(this.#proxy, address).catch((error) => {
      throw new AgentdError('unreachable', `agentd cannot be reached: ${error.message}`, { cause: error })
    })
  }

  async #openProgram(agentd: AgentdTarget, port: number | undefined): Promise<Socket> {
    try {
      const { socket, head } = await this.upgrade(agentd, { path: `/v1/tunnel/${port}` }, TUNNEL_UPGRADE)
      if (head.length > 0) socket.unshift(head)
      return socket
    } catch (error) {
      throw new AgentdError('unreachable', `cannot open a tunnel: ${(error as Error).message}`)
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
        reject(new AgentdError('bad_answer', `agentd sent status ${statusCode}`))
        return void sent.destroy()
      }
      // A response before the request was sent completely may be final, so the rest of the request is dropped.
      response.once('close', () => {
        if (!sent.writableFinished) sent.destroy()
      })
      resolve(response)
    })
    sent.once('upgrade', (_response, socket) => {
      socket.destroy()
      reject(new AgentdError('bad_answer', 'agentd switched protocols without being asked'))
    })
    sent.on('error', (error) => reject(explain(error, sent, options.signal, program)))
    // Node does not report every end of a connection as an error.
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
    // If agentd is stopped, for example in a paused container, its kernel would still accept the request.
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
    // Berth asks for at most one informational response. Each costs time, and an agent could send them endlessly.
    let informational = program === undefined ? MAX_INFORMATIONAL - (isHeldBack ? 1 : 0) : 0
    sent.on('information', () => {
      if (++informational > MAX_INFORMATIONAL)
        sent.destroy(new AgentdError('bad_answer', 'agentd sent too many informational responses'))
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

/** Ends a request on a signal; Node's own option costs several times as much. */
function endWith(signal: AbortSignal | undefined, sent: ClientRequest): void {
  if (!signal) return
  const abort = () => void sent.destroy(new Error('aborted'))
  if (signal.aborted) abort()
  signal.addEventListener('abort', abort, { once: true })
  sent.once('close', () => signal.removeEventListener('abort', abort))
}

/** A reused connection broke before it returned anything. */
class StaleConnection extends AgentdError {}

function explain(error: NodeJS.ErrnoException, sent: ClientRequest, signal?: AbortSignal, program?: number) {
  if (signal?.aborted) return signal.reason
  if (error instanceof AgentdError) return error
  const options = { cause: error }
  if (program !== undefined && !sent.reusedSocket)
    return new AgentdError('engine', `port ${program} did not answer: ${error.message}`, options)
  // Node's parser did not accept the response as HTTP.
  if (error.code?.startsWith('HPE_'))
    return new AgentdError('bad_answer', 'agentd sent no valid HTTP', options)
  const kind = sent.reusedSocket ? StaleConnection : AgentdError
  return new kind('unreachable', `agentd cannot be reached: ${error.message}`, options)
}

const noAddress = () => new AgentdError('unreachable', 'the agent has no address')
const isSilent = () =>
  new AgentdError('unreachable', 'agentd takes no requests: it hangs, or its container is paused')
const tooLate = (options: { mayRepeat?: boolean } = {}) =>
  new AgentdError('timeout', 'agentd did not answer in time', options)
const isRepeatable = ({ method = 'GET', isRepeatable }: AgentdRequest) =>
  isRepeatable ?? IDEMPOTENT.includes(method)
