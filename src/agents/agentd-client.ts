/**
 * The only way from Berth to an agent: HTTP to its agentd, through a tunnel of the `host` role. What comes back is
 * untrusted: every answer is bounded in size and time, and no redirect is followed.
 */
import { createHmac } from 'node:crypto'
import { type ClientRequest, Agent as HttpAgent, type IncomingMessage, request } from 'node:http'
import { connect, type Socket } from 'node:net'
import { EPOCH_HEADER } from '../../agentd/protocol.ts'

/** agentd did not do what it was asked to; `code` is its own, or one of ours. */
export class AgentdError extends Error {
  override name = 'AgentdError'
  /** `unreachable` and `timeout`: nobody answers; `bad_answer`: not what was agreed; else agentd's code. */
  readonly code: string
  readonly status: number

  constructor(code: string, message: string, status = 0, options?: ErrorOptions) {
    super(message, options)
    this.code = code
    this.status = status
  }
}

/** Where an agent is: its id, and `address:port` of its agentd (null: nowhere). */
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
  /** Sent where the request changes the agent: agentd refuses a lower one than it has seen. */
  epoch?: number
  /** Until the answer is complete; the connection alone gets 5 s. Default 10 s. */
  timeoutMs?: number
  /** Most bytes of the answer. Default 1 MiB. */
  maxBytes?: number
  signal?: AbortSignal
}

const CONNECT_MS = 5000
const TIMEOUT_MS = 10_000
const MAX_BYTES = 1_048_576

export class AgentdClient {
  readonly #host: { hostname: string; port: number }
  readonly #hostKey: string
  readonly #agents = new Map<string, HttpAgent>()

  /** @param options.hostUrl the way in of the host role; @param options.hostKey opens it. */
  constructor(options: { hostUrl: string; hostKey: string }) {
    const { hostname, port } = new URL(options.hostUrl)
    this.#host = { hostname: hostname.replace(/^\[|\]$/g, ''), port: Number(port || 80) }
    this.#hostKey = options.hostKey
  }

  /**
   * Sends a request and reads its whole JSON answer; undefined for an empty one.
   * @throws AgentdError
   */
  async json<T>(target: AgentdTarget, options: AgentdRequest): Promise<T> {
    const { body } = await this.bytes(target, options)
    if (body.length === 0) return undefined as T
    try {
      return JSON.parse(body.toString('utf8'))
    } catch (error) {
      throw new AgentdError('bad_answer', 'agentd answered no JSON', 0, { cause: error })
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
      return {
        body: await readBounded(response, options.maxBytes ?? MAX_BYTES, signal),
        headers: response.headers,
      }
    } catch (error) {
      if (options.signal?.aborted) throw options.signal.reason
      if (bound.aborted)
        throw new AgentdError('timeout', 'agentd did not answer in time', 0, { cause: error })
      throw error
    }
  }

  /**
   * Sends a request and resolves to its successful answer, unread; whoever reads it sets the bounds.
   * @throws AgentdError for any other status than 2xx, with agentd's code.
   */
  async stream(target: AgentdTarget, options: AgentdRequest): Promise<IncomingMessage> {
    const response = await this.#send(target, options)
    const status = response.statusCode ?? 0
    if (status >= 200 && status < 300) return response
    const text = await readBounded(response, 65_536, AbortSignal.timeout(CONNECT_MS)).catch(() => Buffer.of())
    const { error = 'bad_answer', message = `status ${status}` } = parseError(text)
    throw new AgentdError(error, message, status)
  }

  /** A raw connection to agentd: for WebSocket upgrades, and bodies that are passed on as they come. @throws AgentdError */
  connect({ address }: AgentdTarget, signal?: AbortSignal): Promise<Socket> {
    if (!address) return Promise.reject(new AgentdError('unreachable', 'the agent has no address'))
    return openTunnel(this.#host, { address, hostKey: this.#hostKey, signal })
  }

  /** agentd's token of an agent; agentd itself knows only its hash. */
  token(agentId: string): string {
    return createHmac('sha256', this.#hostKey).update(`agentd:${agentId}`).digest('base64url')
  }

  close(): void {
    for (const agent of this.#agents.values()) agent.destroy()
    this.#agents.clear()
  }

  /** Keeps connections to one agent open for a while: a tunnel costs two round trips. */
  agentFor(target: AgentdTarget): HttpAgent {
    const key = target.address ?? ''
    let agent = this.#agents.get(key)
    if (!agent) {
      if (this.#agents.size >= 1000) this.close()
      agent = new HttpAgent({ keepAlive: true, maxFreeSockets: 4, timeout: 30_000 })
      // Node's own connection goes to the host role, which opens the rest of the way.
      agent.createConnection = (_options, done) => {
        this.connect(target).then(
          (socket) => done?.(null, socket),
          (error) => done?.(error, undefined as never),
        )
        return undefined
      }
      this.#agents.set(key, agent)
    }
    return agent
  }

  #send(target: AgentdTarget, options: AgentdRequest): Promise<IncomingMessage> {
    if (!target.address) return Promise.reject(new AgentdError('unreachable', 'the agent has no address'))
    const json = options.json === undefined ? undefined : Buffer.from(JSON.stringify(options.json))
    const body = json ?? options.body
    return new Promise((resolve, reject) => {
      const sent: ClientRequest = request({
        agent: this.agentFor(target),
        method: options.method ?? 'GET',
        path: options.path,
        signal: options.signal,
        headers: {
          host: 'agentd',
          authorization: `Bearer ${this.token(target.agentId)}`,
          ...(json && { 'content-type': 'application/json' }),
          ...(Buffer.isBuffer(body) && { 'content-length': body.length }),
          ...(options.epoch !== undefined && { [EPOCH_HEADER]: String(options.epoch) }),
          ...options.headers,
        },
      })
      sent.once('response', resolve)
      sent.once('error', (error) => {
        if (options.signal?.aborted) return reject(options.signal.reason)
        if (error instanceof AgentdError) return reject(error)
        reject(
          new AgentdError('unreachable', `agentd cannot be reached: ${error.message}`, 0, { cause: error }),
        )
      })
      if (body === undefined || Buffer.isBuffer(body)) sent.end(body)
      else body.on('error', (error: Error) => sent.destroy(error)).pipe(sent)
    })
  }
}

/** Asks the host role for a tunnel to agentd (`CONNECT`), and resolves to it once it is open. */
function openTunnel(
  host: { hostname: string; port: number },
  { address, hostKey, signal }: { address: string; hostKey: string; signal: AbortSignal | undefined },
): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const sent = request({
      agent: false,
      host: host.hostname,
      port: host.port,
      method: 'CONNECT',
      path: address,
      headers: { host: address, 'proxy-authorization': `Bearer ${hostKey}` },
      signal,
      createConnection: () => connect({ host: host.hostname, port: host.port, noDelay: true }),
    })
    const timer = setTimeout(() => sent.destroy(new Error('no tunnel in time')), CONNECT_MS)
    sent.once('connect', (response, socket, head) => {
      clearTimeout(timer)
      if (response.statusCode === 200) {
        if (head.length > 0) socket.unshift(head)
        return resolve(socket as Socket)
      }
      socket.destroy()
      reject(new AgentdError('unreachable', `the host role answered ${response.statusCode}`))
    })
    sent.once('response', (response) => {
      clearTimeout(timer)
      sent.destroy()
      reject(new AgentdError('unreachable', `the host role answered ${response.statusCode}`))
    })
    sent.once('error', (error) => {
      clearTimeout(timer)
      reject(
        new AgentdError('unreachable', `the host role cannot be reached: ${error.message}`, 0, {
          cause: error,
        }),
      )
    })
    sent.end()
  })
}

async function readBounded(
  response: IncomingMessage,
  maxBytes: number,
  signal: AbortSignal,
): Promise<Buffer> {
  const chunks: Buffer[] = []
  let size = 0
  const abort = () => response.destroy(new Error('aborted'))
  signal.addEventListener('abort', abort, { once: true })
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      size += chunk.length
      if (size > maxBytes) throw new AgentdError('too_large', `agentd answered more than ${maxBytes} bytes`)
      chunks.push(chunk)
    }
  } catch (error) {
    if (error instanceof AgentdError) throw error
    throw new AgentdError('bad_answer', `agentd's answer broke off: ${(error as Error).message}`, 0, {
      cause: error,
    })
  } finally {
    signal.removeEventListener('abort', abort)
    response.destroy()
  }
  return Buffer.concat(chunks)
}

function parseError(body: Buffer): { error?: string; message?: string } {
  try {
    const { error, message } = JSON.parse(body.toString('utf8'))
    return { error: String(error).slice(0, 100), message: String(message).slice(0, 2000) }
  } catch {
    return {}
  }
}
