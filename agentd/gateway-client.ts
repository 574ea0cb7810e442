import { AgentdError } from './agentd-errors.ts'
import type { RpcRequest, RpcResponse } from './protocol.ts'
import type { Agent, EngineClient, GatewayHandle, Service } from './server.ts'

/** Time limit for the gateway's hello, which takes 40 ms. */
const HELLO_MS = 10_000
/** An idle connection costs the gateway work for every event that it sends its clients. */
const IDLE_MS = 60_000
const AT_ONCE = 64
/** The engine's protocol (2026.9). */
const PROTOCOL = 4
const RESUME = 'gateway.suspend.resume'
const SCOPES = ['read', 'write', 'admin', 'approvals', 'pairing'].map((name) => `operator.${name}`)

/**
 * Calls methods of the gateway over its WebSocket, on one connection that is kept while it is used. The gateway gives a
 * client on loopback without a device all scopes. Unlike its admin RPC over HTTP, the WebSocket offers every method,
 * and responds in 4 ms.
 */
export class GatewayClient implements EngineClient {
  readonly #gateway: GatewayHandle
  #connection: Connection | undefined
  #calls = 0
  #idle: NodeJS.Timeout | undefined

  constructor(gateway: GatewayHandle) {
    this.#gateway = gateway
  }

  async call(method: string, params: Record<string, unknown>, timeoutMs: number): Promise<RpcResponse> {
    const { state, token, port } = this.#gateway
    // A suspended gateway counts as not ready, but can still be asked to resume.
    const isAsked = state === 'ready' || (state === 'starting' && method === RESUME)
    if (!isAsked || token === null) throw new AgentdError('not_ready', 'the gateway is not ready')
    if (!this.#connection?.open || this.#connection.token !== token) {
      this.#connection?.close()
      this.#connection = new Connection(port, token)
    }
    this.#calls++
    clearTimeout(this.#idle)
    try {
      return await this.#connection.call(method, params, timeoutMs)
    } finally {
      this.#calls--
      if (this.#calls === 0) this.#idle = setTimeout(() => this.close(), IDLE_MS).unref()
    }
  }

  close(): void {
    clearTimeout(this.#idle)
    this.#connection?.close()
  }
}

/** A frame that the gateway sends. */
export interface Frame {
  type: 'event' | 'res'
  event?: string
  id?: string
  ok?: boolean
  payload?: unknown
  error?: { code?: unknown; message?: unknown; details?: { code?: unknown } }
}

interface Waiting {
  resolve(frame: Frame): void
  reject(error: AgentdError): void
}

export interface ConnectionOptions {
  /** Called after the gateway's hello, when its events begin. */
  onOpen?(): void
  /** Called with each event of the gateway. */
  onEvent?(frame: Frame): void
  /** Called once when the connection is over. @param reason completes a sentence that begins with "the gateway". */
  onClose?(reason: string): void
}

/** A connection to the gateway's WebSocket, open until one side closes it. */
export class Connection {
  readonly token: string
  open = true
  readonly #socket: WebSocket
  readonly #hello: Promise<unknown>
  readonly #waiting = new Map<string, Waiting>()
  #lastId = 0
  #calls = 0

  constructor(port: number, token: string, { onOpen, onEvent, onClose }: ConnectionOptions = {}) {
    this.token = token
    this.#socket = new WebSocket(`ws://127.0.0.1:${port}/`)
    const challenged = Promise.withResolvers<void>()
    this.#socket.onmessage = ({ data }) => {
      const frame = parseFrame(data)
      if (frame?.type === 'res') this.#waiting.get(frame.id ?? '')?.resolve(frame)
      else if (frame?.event === 'connect.challenge') challenged.resolve()
      else if (frame?.event) onEvent?.(frame)
    }
    // It also follows each error.
    this.#socket.onclose = ({ code, reason }) => {
      this.open = false
      onClose?.(closeReason(code, reason))
      challenged.reject(new Error('the gateway accepts no connection'))
      for (const waiting of this.#waiting.values())
        waiting.reject(new AgentdError('engine', 'the gateway disconnected before it responded'))
    }
    this.#socket.onerror = () => {}
    this.#hello = within(HELLO_MS, challenged.promise, 'not_ready')
      .then(() => this.#greet())
      .catch((error) => {
        this.close()
        throw new AgentdError('not_ready', error.message, { cause: error })
      })
    this.#hello.then(onOpen, () => {})
  }

  async call(method: string, params: Record<string, unknown>, timeoutMs: number): Promise<RpcResponse> {
    if (this.#calls >= AT_ONCE) throw new AgentdError('busy', `${AT_ONCE} calls are already running`)
    this.#calls++
    try {
      await within(timeoutMs, this.#hello, 'not_ready')
      // The connection may have closed while this call waited for its turn: nothing was sent, so the call may be
      // repeated.
      if (!this.open) throw new AgentdError('not_ready', 'the gateway accepts no connection')
      return answerOf(await this.#request(method, params, timeoutMs))
    } finally {
      this.#calls--
    }
  }

  close(): void {
    this.open = false
    this.#socket.close()
  }

  async #greet(): Promise<void> {
    const hello = await this.#request(
      'connect',
      {
        minProtocol: PROTOCOL,
        maxProtocol: PROTOCOL,
        client: { id: 'gateway-client', version: '1', platform: 'linux', mode: 'backend' },
        role: 'operator',
        scopes: SCOPES,
        caps: [],
        auth: { token: this.token },
      },
      HELLO_MS,
    )
    if (!hello.ok) throw new Error(`the gateway refuses agentd: ${hello.error?.message}`)
  }

  #request(method: string, params: Record<string, unknown>, timeoutMs: number): Promise<Frame> {
    const id = String(++this.#lastId)
    const answered = new Promise<Frame>((resolve, reject) => {
      this.#waiting.set(id, { resolve, reject })
      this.#socket.send(JSON.stringify({ type: 'req', id, method, params }))
    })
    return within(timeoutMs, answered, 'engine').finally(() => this.#waiting.delete(id))
  }
}

async function within<T>(ms: number, promise: Promise<T>, code: 'engine' | 'not_ready'): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(
    () => late.reject(new AgentdError(code, `the gateway did not answer within ${ms} ms`)),
    ms,
  )
  try {
    return await Promise.race([promise, late.promise])
  } finally {
    clearTimeout(timer)
  }
}

/** @param code of RFC 6455; 1006 if there was no Close frame. */
function closeReason(code: number, reason: string): string {
  if (code === 1006) return 'broke off the connection'
  return `closed the connection: ${reason || 'it gave no reason'} (${code})`
}

function answerOf({ ok, payload, error }: Frame): RpcResponse {
  if (ok) return { ok, payload: payload ?? null }
  const code = error?.details?.code ?? error?.code
  return { ok: false, error: { code: String(code), message: String(error?.message) } }
}

function parseFrame(data: unknown): Frame | undefined {
  try {
    return JSON.parse(String(data))
  } catch {
    return undefined
  }
}

const MAX_TIMEOUT_MS = 600_000
/** Large enough for a task's text or a configuration; the gateway accepts frames of 26 MB. */
const REQUEST_BYTES = 8_388_608

/** `POST /v1/rpc`: any method of the gateway. A refusal of the engine is a response (`ok: false`) with status 200. */
export function rpcService({ engine }: Agent): Service {
  return {
    routes: [
      {
        method: 'POST',
        path: '/v1/rpc',
        async handle(call) {
          const { method, params, timeoutMs } = check(await call.json<RpcRequest>(REQUEST_BYTES))
          return { body: await engine.call(method, params, timeoutMs) }
        },
      },
    ],
    stop: async () => engine.close(),
  }
}

function check(request: RpcRequest): RpcRequest {
  const { method, params, timeoutMs } = request ?? {}
  if (typeof method !== 'string' || method === '' || method === 'connect')
    throw new AgentdError('bad_request', 'method: must be a method of the gateway')
  if (typeof params !== 'object' || params === null || Array.isArray(params))
    throw new AgentdError('bad_request', 'params: must be an object')
  if (!Number.isInteger(timeoutMs) || timeoutMs < 1 || timeoutMs > MAX_TIMEOUT_MS)
    throw new AgentdError('bad_request', `timeoutMs: must be 1 to ${MAX_TIMEOUT_MS}`)
  return request
}
