/** A client of an agent's own host: `fetch` cannot set the Host header, and names below `localhost` do not resolve. */
import { type IncomingHttpHeaders, type IncomingMessage, request } from 'node:http'
import { type ClientOptions, WebSocket } from 'ws'

const TIMEOUT_MS = 60_000

export interface HostAnswer {
  status: number
  headers: IncomingHttpHeaders
  text: string
  /** The body, if it is JSON. */
  body: any
}

export interface HostRequest {
  headers?: Record<string, string>
  /** Sent as JSON. */
  json?: unknown
}

export class AgentHost {
  readonly #url: URL
  /** `<agentId>.<domain>:<port>`. */
  readonly host: string
  readonly #headers: Record<string, string>

  /**
   * @param url of the web process.
   * @param token sent in the Authorization header with every request; none if it is not given.
   */
  constructor(url: string, agentId: string, token?: string, domain = 'agents.localhost') {
    this.#url = new URL(url)
    this.host = `${agentId}.${domain}:${this.#url.port}`
    this.#headers = { host: this.host, ...(token && { authorization: `Bearer ${token}` }) }
  }

  /** Resolves to the complete response. */
  async ask(method: string, path: string, options: HostRequest = {}): Promise<HostAnswer> {
    const response = await this.stream(method, path, options)
    const chunks: Buffer[] = []
    for await (const chunk of response) chunks.push(chunk)
    const text = Buffer.concat(chunks).toString('utf8')
    const isJson = response.headers['content-type']?.startsWith('application/json')
    const { statusCode: status = 0, headers } = response
    return { status, headers, text, body: isJson ? JSON.parse(text) : undefined }
  }

  get = (path: string, headers: Record<string, string> = {}) => this.ask('GET', path, { headers })
  post = (path: string, json: unknown, headers: Record<string, string> = {}) =>
    this.ask('POST', path, { json, headers })

  /** Resolves to the response once it begins. */
  stream(method: string, path: string, { headers, json }: HostRequest = {}): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const { hostname, port } = this.#url
      const body = json === undefined ? undefined : JSON.stringify(json)
      const sent = request({
        hostname,
        port,
        method,
        path,
        agent: false,
        headers: { ...this.#headers, ...(body && { 'content-type': 'application/json' }), ...headers },
      })
      sent.setTimeout(TIMEOUT_MS, () => sent.destroy(new Error(`no answer within ${TIMEOUT_MS} ms`)))
      sent.once('response', resolve).once('error', reject)
      sent.end(body)
    })
  }

  /** A WebSocket, opened or refused. */
  socket(path: string, headers: Record<string, string> = {}, options: ClientOptions = {}): AgentSocket {
    const { hostname, port } = this.#url
    const all = { ...options, headers: { ...this.#headers, ...headers } }
    return new AgentSocket(new WebSocket(`ws://${hostname}:${port}${path}`, all))
  }
}

/** A WebSocket whose messages are JSON. */
export class AgentSocket {
  readonly raw: WebSocket
  /** All messages so far. */
  readonly messages: any[] = []
  /** Resolves when it is open; rejects with the response if the upgrade was refused. */
  readonly opened: Promise<void>
  /** Resolves to the code and the reason of its close. */
  readonly closed: Promise<{ code: number; reason: string }>

  constructor(raw: WebSocket) {
    this.raw = raw
    raw.on('message', (data) => this.messages.push(JSON.parse(String(data))))
    this.closed = new Promise((resolve) => {
      raw.once('close', (code, reason) => resolve({ code, reason: String(reason) }))
    })
    this.opened = new Promise((resolve, reject) => {
      raw.once('open', resolve)
      raw.once('unexpected-response', (_request, response) => {
        reject(new Refused(response.statusCode ?? 0))
        response.destroy()
      })
      raw.on('error', reject)
    })
    // A caller who waits only for the end must not fail because of this.
    this.opened.catch(() => {})
  }

  /** The status with which the upgrade was refused. */
  async refused(): Promise<number> {
    try {
      await this.opened
    } catch (error) {
      if (error instanceof Refused) return error.status
      throw error
    }
    this.raw.terminate()
    throw new Error('the upgrade was taken')
  }

  send(message: unknown): void {
    this.raw.send(JSON.stringify(message))
  }
}

class Refused extends Error {
  readonly status: number
  constructor(status: number) {
    super(`refused with ${status}`)
    this.status = status
  }
}
