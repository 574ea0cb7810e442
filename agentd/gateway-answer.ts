/** Forwards the gateway's HTTP responses: adds the reasons of failures, and keeps silent streams open. */
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Transform, type TransformCallback } from 'node:stream'
import { text } from 'node:stream/consumers'
import { AgentdError } from './agentd-errors.ts'
import { isObject } from './json.ts'
import type { Log } from './logs.ts'
import { explainFailure } from './model.ts'
import { NO_MODEL } from './protocol.ts'
import { endToEnd, passBody } from './relay.ts'

/** Silence after which a comment is sent: proxies close idle connections, some after a minute. */
const KEEP_ALIVE_MS = 15_000
const COMMENT = ': keep-alive\n\n'
const EVENT_END = '\n\n'
const ERROR_EVENT = 'data: {"error"'
/** The engine's events take kilobytes; longer ones are not held back. */
const EVENT_BYTES = 1_048_576
const ERROR_BYTES = 65_536
/** 401 would blame the client's own token. */
const NO_MODEL_STATUS = 409

/** Forwards a response. @param since when the request came. */
export async function passGatewayAnswer(
  answer: IncomingMessage,
  res: ServerResponse,
  { log, since }: { log: Log; since: number },
): Promise<void> {
  const { statusCode = 0, headers } = answer
  const explain = (message: string) => explainFailure(message, log, since)
  const type = headers['content-type'] ?? ''
  if (type.startsWith('text/event-stream')) {
    // A tool may run for longer than a connection may be silent; a gateway that ends closes the connection.
    answer.setTimeout(0)
    res.writeHead(statusCode, endToEnd(headers))
    return passBody(answer, res, { through: new EventStreamPass(explain) })
  }
  const isError = statusCode >= 400 && type.startsWith('application/json')
  if (!isError || !(Number(headers['content-length']) <= ERROR_BYTES)) {
    res.writeHead(statusCode, endToEnd(headers))
    return passBody(answer, res)
  }
  const body = await text(answer).catch((error) => {
    throw new AgentdError('engine', `the gateway broke off its answer: ${error.message}`, { cause: error })
  })
  const explained = await explainError(body, explain)
  const status = explained.isKeyless ? NO_MODEL_STATUS : statusCode
  res.writeHead(status, { ...endToEnd(headers), 'content-length': Buffer.byteLength(explained.text) })
  res.end(explained.text)
}

/** Adds the reason to an error in OpenAI's format; leaves any other text unchanged. */
async function explainError(
  json: string,
  explain: (message: string) => Promise<string>,
): Promise<{ text: string; isKeyless: boolean }> {
  const same = { text: json, isKeyless: false }
  let parsed: unknown
  try {
    parsed = JSON.parse(json)
  } catch {
    return same
  }
  if (!isObject(parsed) || !isObject(parsed.error) || typeof parsed.error.message !== 'string') return same
  const message = await explain(parsed.error.message)
  if (message === parsed.error.message) return same
  const isKeyless = message === NO_MODEL
  const error = {
    ...parsed.error,
    message,
    ...(isKeyless && { type: 'invalid_request_error', code: 'no_model' }),
  }
  return { text: JSON.stringify({ ...parsed, error }), isKeyless }
}

/** Passes complete server-sent events, and breaks silence with comments. */
export class EventStreamPass extends Transform {
  readonly #explain: (message: string) => Promise<string>
  readonly #timer: NodeJS.Timeout
  /** An incomplete event. */
  #begun = Buffer.alloc(0)

  /** @param explain returns the reason for an error's message. */
  constructor(explain: (message: string) => Promise<string>) {
    super()
    this.#explain = explain
    this.#timer = setInterval(() => {
      const isSilent = this.#begun.length === 0 && this.readableLength === 0
      if (isSilent && !this.writableEnded) this.push(COMMENT)
    }, KEEP_ALIVE_MS)
  }

  override _transform(chunk: Buffer, _encoding: BufferEncoding, done: TransformCallback): void {
    this.#timer.refresh()
    const bytes = Buffer.concat([this.#begun, chunk])
    const end = bytes.lastIndexOf(EVENT_END) + EVENT_END.length
    const whole = bytes.length > EVENT_BYTES ? bytes.length : end < EVENT_END.length ? 0 : end
    this.#begun = bytes.subarray(whole)
    const events = bytes.subarray(0, whole)
    if (!events.includes(ERROR_EVENT)) done(null, events)
    else this.#explainEvents(events.toString()).then((text) => done(null, text), done)
  }

  override _flush(done: TransformCallback): void {
    done(null, this.#begun)
  }

  override _destroy(error: Error | null, done: (error: Error | null) => void): void {
    clearInterval(this.#timer)
    done(error)
  }

  async #explainEvents(text: string): Promise<string> {
    const events: string[] = []
    for (const event of text.split(EVENT_END)) {
      const isError = event.startsWith(ERROR_EVENT)
      const explained = isError && (await explainError(event.slice('data: '.length), this.#explain))
      events.push(explained ? `data: ${explained.text}` : event)
    }
    return events.join(EVENT_END)
  }
}
