/** Calls `web` for sessions, grants, syncs and egress policies, over a few connections that stay open. */
import * as http from 'node:http'
import * as https from 'node:https'
import { readWhole } from '../../lib/read.ts'
import { EGRESS_CONTROL, type EgressAnswer, type EgressRequest } from '../policy/protocol.ts'
import {
  type GrantAnswer,
  type GrantRequest,
  MODEL_CONTROL,
  type SessionAnswer,
  type SessionRequest,
  type SyncAnswer,
  type SyncRequest,
} from './protocol.ts'

const ANSWER_BYTES = 64 * 1024 * 1024
const CONNECTIONS = 8
/** Maximum time of a call. */
const DEADLINE_MS = 5000
/**
 * The same if a request to a model waits for it. On a busy machine the first one takes seconds. The engine waits longer
 * than this for a first byte, but after a 503 it retries for more than a minute.
 */
const WAITED_FOR_MS = 20_000

export interface ControlOptions {
  /** The URL of `web`. */
  url: string
  /** AGENT_PROXY_KEY. */
  key: string
}

/** Every method rejects if `web` does not answer 200 in time. */
export class ControlClient {
  readonly #options: ControlOptions
  readonly #transport: typeof http | typeof https
  readonly #agent: http.Agent

  constructor(options: ControlOptions) {
    this.#options = options
    this.#transport = options.url.startsWith('https:') ? https : http
    this.#agent = new this.#transport.Agent({ keepAlive: true, maxSockets: CONNECTIONS })
  }

  session = (request: SessionRequest) =>
    this.#call<SessionAnswer>(MODEL_CONTROL.session, request, WAITED_FOR_MS)
  grant = (request: GrantRequest) => this.#call<GrantAnswer>(MODEL_CONTROL.grant, request, WAITED_FOR_MS)
  sync = (request: SyncRequest) => this.#call<SyncAnswer>(MODEL_CONTROL.sync, request)
  egress = (request: EgressRequest) => this.#call<EgressAnswer>(EGRESS_CONTROL, request)

  close(): void {
    this.#agent.destroy()
  }

  async #call<Answer>(path: string, body: object, deadlineMs = DEADLINE_MS): Promise<Answer> {
    const json = Buffer.from(JSON.stringify(body))
    const signal = AbortSignal.timeout(deadlineMs)
    const response = await this.#send(path, json, signal)
    const read = await readWhole(response, ANSWER_BYTES, () => new Error(`${path} answers too much`))
    if (response.statusCode !== 200) throw new Error(`web answers ${response.statusCode} to ${path}`)
    return JSON.parse(read.toString())
  }

  #send(path: string, body: Buffer, signal: AbortSignal): Promise<http.IncomingMessage> {
    const { url, key } = this.#options
    return new Promise((resolve, reject) => {
      const req = this.#transport.request(new URL(path, url), {
        method: 'POST',
        agent: this.#agent,
        signal,
        headers: {
          authorization: `Bearer ${key}`,
          'content-type': 'application/json',
          'content-length': body.length,
        },
      })
      req.once('response', resolve)
      req.once('error', (error: NodeJS.ErrnoException) => {
        // The other side may close an idle connection just as it is used.
        if (req.reusedSocket && error.code === 'ECONNRESET')
          this.#send(path, body, signal).then(resolve, reject)
        else reject(error)
      })
      req.end(body)
    })
  }
}
