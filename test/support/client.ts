/** A client of the API that compares every response with the OpenAPI document. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import type { Document, DocumentCheck, HttpResponse } from './openapi.ts'
import { recordTokens } from './token-record.ts'

type Json = Record<string, unknown>

export interface RequestOptions {
  query?: string | Record<string, string> | undefined
  /** Sent as JSON. */
  json?: unknown
  /** Sent unchanged, instead of `json`. */
  body?: string | Uint8Array<ArrayBuffer> | undefined
  headers?: Record<string, string> | undefined
}

/** A reply whose body may be any JSON. */
export type Reply = Omit<HttpResponse, 'body'> & { body: any }

/** No response takes longer than the longest wait of the suite. */
const TIMEOUT_MS = 180_000

export class Client {
  readonly url: string
  readonly key: string | undefined
  readonly #document: DocumentCheck

  constructor(url: string, document: DocumentCheck, key?: string) {
    this.url = url
    this.key = key
    this.#document = document
  }

  get document(): Document {
    return this.#document.document
  }

  /** The same API as another caller. */
  as(key: string | undefined): Client {
    return new Client(this.url, this.#document, key)
  }

  /** The same caller at another process of the same Berth. */
  at(url: string): Client {
    return new Client(url, this.#document, this.key)
  }

  async request(method: string, path: string, options: RequestOptions = {}): Promise<Reply> {
    const { query, json, headers } = options
    const url = `${this.url}${path}${query ? `?${new URLSearchParams(query)}` : ''}`
    const body = json === undefined ? (options.body ?? null) : JSON.stringify(json)
    const response = await fetch(url, {
      method,
      body,
      redirect: 'manual',
      signal: AbortSignal.timeout(TIMEOUT_MS),
      headers: {
        ...(this.key && { authorization: `Bearer ${this.key}` }),
        ...(json !== undefined && { 'content-type': 'application/json' }),
        ...headers,
      },
    })
    const text = await response.text()
    const isJson = text !== '' && response.headers.get('content-type')?.startsWith('application/json')
    const reply = {
      status: response.status,
      headers: response.headers,
      body: isJson ? JSON.parse(text) : text,
    }
    this.#document.check(method, new URL(url).pathname, reply)
    // A key that does not work is not recorded as a token: tests try ids and other words as keys.
    recordTokens(path, reply.status !== 401 && this.key, json, isJson && reply.body)
    return reply
  }

  get = (path: string, query?: RequestOptions['query'], headers?: Record<string, string>) =>
    this.request('GET', path, { query, headers })
  delete = (path: string, headers?: Record<string, string>) => this.request('DELETE', path, { headers })
  post = (path: string, json: unknown, headers?: Record<string, string>) =>
    this.request('POST', path, { json, headers })
  put = (path: string, json?: unknown) => this.request('PUT', path, { json })

  /** Requests a pin; `wait` is how many seconds to wait for its end. */
  async pin(pin: Json, { wait = 0 } = {}): Promise<{ record: Json & { id: string }; operation: string }> {
    const reply = await this.post('/v3/files/public/pin_by_cid', pin, wait ? { prefer: `wait=${wait}` } : {})
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return { record: reply.body.data, operation: reply.headers.get('operation-id') ?? '' }
  }

  /** The operation once it has ended. */
  async finished(operation: string): Promise<Json> {
    const { status, body } = await this.get(`/v0/operations/${operation}`, { wait: '120' })
    assert.equal(status, 200)
    assert.ok(body.data.finished_at, `still ${body.data.state}: ${JSON.stringify(body.data)}`)
    return body.data
  }

  /** The pin request as the list returns it; undefined if it is not (or no longer) listed. */
  async queued(id: string): Promise<Json | undefined> {
    const { body } = await this.get('/v3/files/public/pin_by_cid', { limit: '250' })
    return body.data.jobs.find((job: Json) => job.id === id)
  }
}

/** A prefix that a message repeats, as in `cwd: cwd: there is no such folder`. */
const DOUBLED = /(^|[\s:])([^\s:]+): \2: /

/**
 * Asserts an error: its status and its whole message, or a pattern that the message matches. No message and no
 * `Error-Detail` repeats a prefix.
 */
export function assertError(reply: Reply, status: number, message: string | RegExp): void {
  assert.equal(reply.status, status, JSON.stringify(reply.body))
  // Below `/psa` the message is `details`, as the Pinning Service API requires.
  const { error } = reply.body
  const text = error.details ?? error
  if (typeof message === 'string') assert.equal(text, message)
  else assert.match(text, message)
  for (const said of [text, reply.headers.get('error-detail') ?? '']) assert.doesNotMatch(said, DOUBLED)
}

const SOON = { ms: 3000, tries: 20, pauseMs: 25 }

/**
 * The first reply that `accept` accepts. For a change by another process: a notification reports it to this one, long
 * before the five seconds after which cached keys are read again. Even a machine that stalls for longer than that gets
 * as many tries.
 */
export async function soon(ask: () => Promise<Reply>, accept: (reply: Reply) => boolean): Promise<Reply> {
  const deadline = performance.now() + SOON.ms
  for (let tries = 0; tries < SOON.tries || performance.now() < deadline; tries++) {
    const reply = await ask()
    if (accept(reply)) return reply
    await delay(SOON.pauseMs)
  }
  throw new Error('the change is not noticed soon')
}
