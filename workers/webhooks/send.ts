/**
 * Sends deliveries to the target of a webhook, signed according to Standard Webhooks 1.0
 * (https://www.standardwebhooks.com). The target is untrusted: the address that is connected to is the one that was
 * checked, redirects are not followed, and the time and the bytes read are bounded.
 */
import { createHmac } from 'node:crypto'
import http from 'node:http'
import https from 'node:https'
import { isIP } from 'node:net'
import type { Duplex } from 'node:stream'
import { connect as openTls } from 'node:tls'
import packageJson from '../../package.json' with { type: 'json' }
import { dial, type Resolve, resolveByDns, resolveBySystem } from '../../src/agent-proxy/dial.ts'
import { withDeadline } from '../../src/lib/signals.ts'
import { mayConnect, type Target } from '../../src/webhooks/target.ts'

/** Time limit of one attempt, from the connection to the end of the response. */
const ATTEMPT_MS = 15_000
const CONNECT_MS = 10_000
/** Bytes of a response that are read and kept. */
const ANSWER_BYTES = 1024
/** Statuses that mean that the target is unhealthy, rather than that it rejects this delivery. */
const UNWELL = new Set([408, 425, 429])

/** The outcome of an attempt. */
export interface Outcome {
  /** Null if there was no response. */
  status: number | null
  /** The beginning of the response. */
  response: string | null
  /** Why it failed; null if it succeeded. */
  error: string | null
  /** True if the target gave no response, or one that means it is unhealthy. */
  isSilent: boolean
  /** The wait that the target asks for (`Retry-After`), in milliseconds; 0 if it does not. */
  retryMs: number
}

/** The longest wait that a target may ask for. */
const MAX_RETRY_MS = 86_400_000

/** Parses `Retry-After`: seconds, or a date (RFC 9110, 10.2.3). Returns 0 for anything else. */
function readRetryAfter(header: string | undefined, now = Date.now()): number {
  const text = header?.trim() ?? ''
  const ms = /^\d{1,9}$/.test(text) ? Number(text) * 1000 : Date.parse(text) - now
  return Number.isNaN(ms) ? 0 : Math.max(0, Math.min(ms, MAX_RETRY_MS))
}

/** `webhook-signature`: one signature per secret. @param body exactly as sent. */
function sign(id: string, timestamp: number, body: string, secrets: readonly string[]): string {
  return secrets
    .map((secret) => {
      const key = Buffer.from(secret.replace(/^whsec_/, ''), 'base64')
      return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`
    })
    .join(' ')
}

/** A target during one round of deliveries, which reuse its connections. */
export class OpenTarget {
  readonly #target: Target
  readonly #secrets: readonly string[]
  readonly #agent: http.Agent
  readonly #attemptMs: number
  readonly #resolve: Resolve
  /** All open sockets, including those that the agent has not received yet. */
  readonly #sockets = new Set<Duplex>()
  #isClosed = false

  /**
   * @param options.atOnce maximum connections. @param options.resolve the addresses of names that the operator has not
   *   allowed.
   */
  constructor(
    target: Target,
    options: { secrets: readonly string[]; atOnce: number; attemptMs?: number; resolve?: Resolve },
  ) {
    this.#target = target
    this.#secrets = options.secrets
    this.#attemptMs = options.attemptMs ?? ATTEMPT_MS
    this.#resolve = options.resolve ?? resolveByDns
    const isTls = target.url.protocol === 'https:'
    const kept = { keepAlive: true, maxSockets: options.atOnce }
    this.#agent = isTls ? new https.Agent(kept) : new http.Agent(kept)
    this.#agent.createConnection = (_options, connected) => {
      this.#connect().then(
        (socket) => connected?.(null, socket),
        (error) => connected?.(error, undefined as unknown as Duplex),
      )
      return undefined
    }
  }

  close(): void {
    this.#isClosed = true
    this.#agent.destroy()
    for (const socket of this.#sockets) socket.destroy()
  }

  /** Makes one attempt at a delivery. Rejects only when `signal` fires. */
  async send({ id, body }: { id: string; body: string }, signal: AbortSignal): Promise<Outcome> {
    const ms = this.#attemptMs
    const late = () => new Error(`no answer within ${ms / 1000} s`)
    try {
      const answer = await withDeadline({ ms, signal, late }, (either) => this.#post(id, body, either))
      const { status, response, retryMs } = answer
      if (status >= 200 && status < 300) return { status, response, error: null, isSilent: false, retryMs: 0 }
      const isRedirect = status >= 300 && status < 400
      const error = isRedirect ? `${status}: redirects are not followed` : `the target answered ${status}`
      return { status, response, error, isSilent: status >= 500 || UNWELL.has(status), retryMs }
    } catch (error) {
      signal.throwIfAborted()
      const { code, message } = error as NodeJS.ErrnoException
      const why = code ? `${code}: ${message}` : message
      return { status: null, response: null, error: why.slice(0, 500), isSilent: true, retryMs: 0 }
    }
  }

  #post(
    id: string,
    body: string,
    signal: AbortSignal,
  ): Promise<{ status: number; response: string; retryMs: number }> {
    const { url } = this.#target
    const timestamp = Math.floor(Date.now() / 1000)
    const webhookId = `msg_${id}`
    const bytes = Buffer.from(body)
    const headers = {
      'Content-Type': 'application/json',
      'Content-Length': bytes.length,
      'User-Agent': `Berth/${packageJson.version}`,
      'webhook-id': webhookId,
      'webhook-timestamp': timestamp,
      'webhook-signature': sign(webhookId, timestamp, body, this.#secrets),
    }
    const { request } = url.protocol === 'https:' ? https : http
    return new Promise((resolve, reject) => {
      const sent = request(url, { method: 'POST', agent: this.#agent, headers, signal })
      sent.once('error', reject)
      // Node reports an abort to a request only once that has a connection, which may never come.
      signal.addEventListener('abort', () => reject(signal.reason), { once: true })
      sent.once('response', (answer) => {
        const chunks: Buffer[] = []
        let length = 0
        const done = () => {
          // Text that PostgreSQL can store.
          const response = Buffer.concat(chunks).subarray(0, ANSWER_BYTES).toString().replaceAll('\0', '')
          const retryMs = readRetryAfter(answer.headers['retry-after'])
          resolve({ status: answer.statusCode ?? 0, response, retryMs })
        }
        answer.on('data', (chunk: Buffer) => {
          chunks.push(chunk)
          length += chunk.length
          if (length < ANSWER_BYTES) return
          done()
          answer.destroy()
        })
        answer.once('end', done)
        answer.once('error', reject)
      })
      sent.end(bytes)
    })
  }

  async #connect(): Promise<Duplex> {
    const { url, destination, isAllowed } = this.#target
    if (!mayConnect(this.#target)) throw new Error('http is no longer allowed to this target')
    const resolve = isAllowed ? resolveBySystem : this.#resolve
    const socket = this.#hold(await dial(destination, { isAllowed, connectMs: CONNECT_MS, resolve }))
    if (url.protocol === 'http:') return socket
    const servername = isIP(destination.host) ? '' : destination.host
    const tls = openTls({ socket, servername, host: destination.host, ALPNProtocols: ['http/1.1'] })
    return new Promise((done, fail) => {
      tls.once('secureConnect', () => done(tls))
      tls.once('error', fail)
      // A target may accept a connection and never continue it.
      socket.once('close', () => fail(new Error('the connection was closed')))
    })
  }

  /** Ends a connection with the round at the latest. */
  #hold<S extends Duplex>(socket: S): S {
    if (this.#isClosed) socket.destroy()
    this.#sockets.add(socket)
    socket.once('close', () => this.#sockets.delete(socket))
    return socket
  }
}
