/**
 * One request to a model server: retries and fallbacks until a response begins, then the response, byte by byte, and
 * what it cost.
 */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Json } from '../../../agentd/json.ts'
import { parseJson, readEach, readWhole } from '../../lib/read.ts'
import type { Logger } from '../../log.ts'
import type { Dialect } from '../../model-providers.ts'
import { EventReader } from './events.ts'
import type { KnownSession, Reservation } from './ledger.ts'
import type { Memory } from './memory.ts'
import type { Price, Provider, Refusal } from './protocol.ts'
import { answerRefusal, errorEvents, FAILED, RefusalError, refused } from './refusal.ts'
import type { Need } from './reserve.ts'
import { type Upstream, UpstreamError } from './upstream.ts'
import { costOf, estimate, Meter, NO_USAGE, type Usage } from './usage.ts'

const LIMITS = {
  /** Calls of one provider. */
  attempts: 2,
  retryMs: 250,
  errorBytes: 1024 * 1024,
  /** No server sends so many bytes of text per token, and for the names of a few tools. */
  tokenBytes: 64,
  nameBytes: 16 * 1024,
}
/** How fast a model is assumed to think before its first word, in tokens. */
const THOUGHT_PER_SECOND = 100
/** The stream of a server that ignores the limit of the request. */
const TOO_LONG: Refusal = {
  status: 429,
  code: 'budget_exceeded',
  message: 'Usage limit: the model writes more than the request allows. Under a budget, that is its quota.',
}
const RETRIED = [502, 503, 504, 529]
const EVENT_STREAM = /^text\/event-stream\b/i
/** Headers of responses that agents get. */
const PASSED = [
  'content-type',
  'request-id',
  'x-request-id',
  'retry-after',
  'retry-after-ms',
  'x-should-retry',
]

/** A provider that may serve the request, and what it gets. */
export interface Target {
  provider: Provider
  /** The model as the provider names it. */
  model: string
  price: Price | undefined
  path: string
  body: Buffer
}

export interface ExchangeOptions {
  upstream: Upstream
  memory: Memory
  log: Logger
  res: ServerResponse
  known: KnownSession
  dialect: Dialect
  isResponses: boolean
  /** True if the agent asked for events. */
  isStream: boolean
  /** True if the usage was asked for in its name; the event with it is removed again. */
  addsUsage: boolean
  /** True for requests that cost nothing. */
  isFree: boolean
  /** The headers of the request to the server: names and values in turn. */
  headers: string[]
  /** At least one, in order. */
  targets: readonly Target[]
  session: string
  need: Need
  reservation: Reservation
  /** `performance.now()` when the request arrived. */
  began: number
}

/** How an exchange ended. */
export interface Ended {
  status: number
  usd: number
}

export class Exchange {
  readonly #options: ExchangeOptions
  readonly #abort = new AbortController()
  readonly #meter: Meter
  #target: Target
  #isSent = false
  /** True while nobody reads the response, which is read for its usage. */
  #isLeft = false
  /** True if the whole reservation is charged, because the response was too large to read. */
  #isUnread = false
  #isCut = false
  /** True once the agent gets events. */
  #isEvents = false
  #status = 0
  #lastByte: number
  #sentAt = 0
  /** When the model wrote its first word. */
  #wroteAt: number | undefined
  #firstByteMs: number | undefined

  constructor(options: ExchangeOptions) {
    this.#options = options
    this.#meter = new Meter(options.dialect)
    this.#target = options.targets[0] as Target
    this.#lastByte = options.began
  }

  /** Answers the agent, and settles. Never rejects. */
  async run(): Promise<Ended> {
    const { res, known, isStream } = this.#options
    const cut = (refusal: Refusal) => this.#abort.abort(new RefusalError(refusal))
    const leave = () => {
      // A response that is not a stream costs the same, whether somebody reads it or not.
      if (isStream) this.#abort.abort(new Error('the agent has left'))
      else this.#isLeft = true
    }
    known.cuts.add(cut)
    res.once('close', leave)
    try {
      if (res.destroyed) leave()
      this.#abort.signal.throwIfAborted()
      await this.#pass(await this.#open())
    } catch (error) {
      this.#refuse(error)
    } finally {
      res.off('close', leave)
      known.cuts.delete(cut)
    }
    return this.#settle()
  }

  /** Calls the targets in order until one gives a response to pass on. */
  async #open(): Promise<IncomingMessage> {
    const { upstream, headers } = this.#options
    const targets = upstream.inOrder(this.#options.targets)
    const { signal } = this.#abort
    let failure: unknown
    for (const [i, target] of targets.entries()) {
      this.#target = target
      const isLast = i === targets.length - 1
      for (let attempt = 1; attempt <= LIMITS.attempts; attempt++) {
        if (attempt > 1) await sleep(LIMITS.retryMs, undefined, { signal })
        try {
          const { provider, path, body } = target
          this.#isSent = true
          this.#sentAt = performance.now()
          const response = await upstream.send(provider, { method: 'POST', path, headers, body, signal })
          const status = response.statusCode ?? 0
          const isFinal = isLast && attempt === LIMITS.attempts
          if (status === 429 ? isLast : isFinal || !RETRIED.includes(status)) return response
          response.resume()
          if (status === 429) break
        } catch (error) {
          if (!(error instanceof UpstreamError)) throw error
          failure = refused(502, 'unavailable', error.message)
          if (!error.isUnsent) throw failure
          // The server is down: the next target is a better second try.
          if (!isLast) break
        }
        this.#isSent = false
      }
    }
    throw failure
  }

  async #pass(response: IncomingMessage): Promise<void> {
    const { provider } = this.#target
    const status = response.statusCode ?? 502
    const { 'content-encoding': encoding = 'identity', 'content-type': type = '' } = response.headers
    // Nobody charges for them.
    if (status >= 300) this.#isSent = false
    this.#isEvents ||= status < 300 && EVENT_STREAM.test(type)
    try {
      if (status < 200 || (status >= 300 && status < 400) || encoding !== 'identity')
        throw refused(502, 'unavailable', `${provider.id} sent a response that Berth does not pass on`)
      if (status >= 400) await this.#passError(response, status)
      else if (this.#isEvents) await this.#passEvents(response)
      else await this.#passWhole(response)
    } catch (error) {
      this.#abort.signal.throwIfAborted()
      if (error instanceof RefusalError) throw error
      throw refused(502, 'unavailable', `${provider.id} broke off: ${(error as Error).message}`)
    } finally {
      if (!response.complete) response.destroy()
    }
  }

  async #passError(response: IncomingMessage, status: number): Promise<void> {
    const { res } = this.#options
    const { id, key } = this.#target.provider
    if (status === 401 || status === 403) {
      response.resume()
      // Providers quote a part of the key.
      throw refused(status, 'provider_key', `${id} refused the key that Berth has for it (${status})`)
    }
    const tooLarge = () => refused(502, 'unavailable', `${id} sent an error that is too long`)
    const text = (await readWhole(response, LIMITS.errorBytes, tooLarge)).toString()
    const body = key ? text.replaceAll(key, '…') : text
    if (res.headersSent)
      throw refused(status, 'provider_error', messageOf(body) ?? `${id} answered ${status}`)
    this.#begin(response)
    if (!this.#isLeft) res.end(body)
  }

  async #passEvents(response: IncomingMessage): Promise<void> {
    const { addsUsage } = this.#options
    const reader = new EventReader((value) => {
      this.#read(value)
      return addsUsage && isUsageAlone(value)
    })
    await readEach(response, (chunk) => this.#write(response, reader.push(chunk)))
    this.#end(response, reader.end())
  }

  /** @throws RefusalError if a budget limits the agent, and the reply has become longer than what was reserved. */
  #read(event: unknown): void {
    const { need, known } = this.#options
    const { usd, tokens } = known.session.limits
    this.#meter.push(event)
    const { textBytes, hasWords } = this.#meter
    if (hasWords) this.#wroteAt ??= performance.now()
    const most = need.output * LIMITS.tokenBytes + LIMITS.nameBytes
    if ((usd || tokens) && textBytes > most) throw new RefusalError(TOO_LONG)
  }

  async #passWhole(response: IncomingMessage): Promise<void> {
    const { memory, known } = this.#options
    using copy = memory.open(known.key)
    /** Sent with the end: then a short response is one write, or a refusal if it breaks off. */
    let last: Buffer = Buffer.alloc(0)
    await readEach(response, (chunk) => {
      if (!this.#isUnread && copy.take(chunk.length)) copy.chunks.push(chunk)
      else {
        this.#isUnread = true
        copy.release()
      }
      this.#write(response, last)
      last = chunk
    })
    this.#end(response, last)
    if (!this.#isUnread) this.#meter.push(parseJson(Buffer.concat(copy.chunks).toString()))
  }

  #begin(response: IncomingMessage): void {
    const { res } = this.#options
    if (res.headersSent || this.#isLeft) return
    const headers = PASSED.flatMap((name) => {
      const value = response.headers[name]
      return value === undefined ? [] : [name, `${value}`]
    })
    if (this.#isEvents) headers.push('cache-control', 'no-cache')
    this.#status = response.statusCode ?? 502
    res.writeHead(this.#status, headers)
  }

  #write(response: IncomingMessage, bytes: Buffer): void {
    const { res } = this.#options
    if (bytes.length === 0 || this.#isLeft) return
    this.#begin(response)
    this.#lastByte = performance.now()
    this.#firstByteMs ??= this.#lastByte - this.#options.began
    // Without this, Node would send the bytes in a tick of their own.
    const { socket } = res
    socket?.cork()
    const isTaken = res.write(bytes)
    socket?.uncork()
    if (!isTaken) holdUntilDrained(response, res)
  }

  /** Sends the last bytes. */
  #end(response: IncomingMessage, bytes: Buffer): void {
    // Node drops the rest of a response that was aborted, and it may look complete.
    this.#abort.signal.throwIfAborted()
    if (!response.complete) throw refused(502, 'unavailable', `${this.#target.provider.id} broke off`)
    this.#begin(response)
    this.#firstByteMs ??= performance.now() - this.#options.began
    if (!this.#isLeft) this.#options.res.end(bytes)
  }

  /** Sends a comment in a stream, at which clients do not look, if nothing was sent for some time. */
  breakSilence(quietMs: number): void {
    const { res } = this.#options
    const now = performance.now()
    if (now - this.#lastByte < quietMs || res.writableNeedDrain || res.writableEnded || res.destroyed) return
    if (!res.headersSent) {
      this.#status = 200
      this.#isEvents = true
      res.writeHead(200, { 'content-type': 'text/event-stream; charset=utf-8', 'cache-control': 'no-cache' })
    }
    this.#lastByte = now
    res.write(': berth waits for the model\n\n')
  }

  /** Ends an exchange that failed or was cut: by a response, or by an event if one has begun. */
  #refuse(error: unknown): void {
    const { res, dialect, isResponses, log } = this.#options
    const { aborted, reason } = this.#abort.signal
    this.#isCut = true
    const cause = aborted ? reason : error
    if (!aborted && !(cause instanceof RefusalError)) log.error({ err: cause }, 'the model gateway failed')
    const refusal = cause instanceof RefusalError ? cause.refusal : FAILED
    if (res.destroyed || this.#isLeft) return
    if (!res.headersSent) {
      this.#status = refusal.status
      answerRefusal(res, dialect, refusal)
    } else if (this.#isEvents) res.end(errorEvents(dialect, isResponses, refusal))
    // A truncated response must not look complete.
    else res.destroy()
  }

  #settle(): Ended {
    const { need, reservation, session, began } = this.#options
    const { provider, model, price, body } = this.#target
    const { usage, isEstimated } = this.#used(body)
    const usd = this.#isUnread ? need.amounts.usd : price ? costOf(usage, price) : 0
    const { hourWrite: _hourWrite, ...tokens } = usage
    const totalMs = Math.round(performance.now() - began)
    reservation.settle({
      provider: provider.id,
      model,
      session,
      usd,
      ...tokens,
      estimated: isEstimated,
      // 499, as other proxies have it, for an agent that left before a response began.
      status: this.#status || 499,
      firstByteMs: Math.round(this.#firstByteMs ?? totalMs),
      totalMs,
    })
    return { status: this.#status || 499, usd }
  }

  #used(request: Buffer): { usage: Usage; isEstimated: boolean } {
    const { isFree, need } = this.#options
    if (isFree || !this.#isSent) return { usage: NO_USAGE, isEstimated: false }
    const reported = this.#meter.usage
    const isReported = reported !== undefined && reported.input + reported.output > 0
    if (isReported && !this.#isCut) return { usage: reported, isEstimated: false }
    const guess = estimate(request, need.references, this.#meter.textTokens)
    if (this.#isUnread) return { usage: { ...guess, output: need.output }, isEstimated: true }
    const usage = isReported ? reported : guess
    // The last report of a stream that was cut may be older than what was sent.
    const output = Math.max(usage.output, guess.output, this.#abort.signal.aborted ? this.#thought() : 0)
    return { usage: { ...usage, output }, isEstimated: true }
  }

  /** The tokens that the model may have thought: a stream that is cut often does not report them. */
  #thought(): number {
    const seconds = Math.floor(((this.#wroteAt ?? performance.now()) - this.#sentAt) / 1000)
    return Math.min(seconds * THOUGHT_PER_SECOND, this.#options.need.output)
  }
}

/** True for the event of a chat that contains only the usage. */
function isUsageAlone(value: unknown): boolean {
  const { choices, usage } = value as Json
  return Array.isArray(choices) && choices.length === 0 && typeof usage === 'object' && usage !== null
}

/** The message of a provider's error. */
function messageOf(body: string): string | undefined {
  const { error } = (parseJson(body) ?? {}) as { error?: { message?: unknown } }
  return typeof error?.message === 'string' ? error.message.slice(0, 1000) : undefined
}

/** Reads no more of a response until the agent has taken what it got, or has left. */
function holdUntilDrained(response: IncomingMessage, res: ServerResponse): void {
  const resume = () => {
    res.off('drain', resume)
    res.off('close', resume)
    response.resume()
  }
  response.pause()
  res.once('drain', resume)
  res.once('close', resume)
}
