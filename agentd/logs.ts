import type { ServerResponse } from 'node:http'
import { AgentdError } from './errors.ts'
import type { LogLine } from './protocol.ts'
import type { Service } from './server.ts'

/** Lines kept in memory: of the gateway, of scripts and of agentd itself. They outlive every run of the gateway. */
const KEPT_LINES = 1000
/** Longest message kept, in characters. With {@link KEPT_LINES} it bounds the memory: 1000 × 4 KiB × 2 bytes = 8 MB. */
const MESSAGE_CHARS = 4096
/** A follower that reads too slowly loses lines beyond this many bytes that wait for it. */
const FOLLOWER_BYTES = 262_144
const FOLLOWERS = 16
/** Shorter values would hit ordinary words. */
const SHORTEST_SECRET = 6
/** Of a value with more lines (a bundle of certificates), only the first are hidden one by one: each costs time. */
const SECRET_LINES = 100

/** The log of the agent. */
export class Log {
  #lines: LogLine[] = []
  #next = 0
  #secrets: RegExp | undefined
  readonly #listeners = new Set<(line: LogLine) => void>()

  /** Adds a line; what {@link hide} was told is blotted out first. */
  add(line: Omit<LogLine, 'timestamp'> & { timestamp?: string }): void {
    const kept: LogLine = {
      timestamp: line.timestamp ?? new Date().toISOString(),
      level: line.level,
      source: line.source,
      message: this.redact(line.message).slice(0, MESSAGE_CHARS),
    }
    this.#lines[this.#next] = kept
    this.#next = (this.#next + 1) % KEPT_LINES
    for (const listener of this.#listeners) listener(kept)
  }

  info(message: string): void {
    this.add({ level: 'INFO', source: 'agentd', message })
  }

  warn(message: string): void {
    this.add({ level: 'WARN', source: 'agentd', message })
  }

  error(message: string): void {
    this.add({ level: 'ERROR', source: 'agentd', message })
  }

  /** The last `count` lines, oldest first. */
  lines(count: number): LogLine[] {
    const lines = [...this.#lines.slice(this.#next), ...this.#lines.slice(0, this.#next)]
    return lines.slice(Math.max(0, lines.length - count))
  }

  /** Calls `listener` with each new line, until the function that it returns is called. */
  subscribe(listener: (line: LogLine) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  get followers(): number {
    return this.#listeners.size
  }

  /** From now on none of these values gets into the log; values of several lines are hidden line by line. */
  hide(values: Iterable<string>): void {
    const parts = new Set([...values].flatMap((value) => [value, ...value.split(/\r?\n/, SECRET_LINES)]))
    const escaped = [...parts]
      .filter((part) => part.length >= SHORTEST_SECRET)
      // The longest first: one value may begin with another.
      .sort((a, b) => b.length - a.length)
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    this.#secrets = escaped.length > 0 ? new RegExp(escaped.join('|'), 'g') : undefined
  }

  /** A text without the values that are to be hidden. */
  redact(text: string): string {
    return this.#secrets ? text.replace(this.#secrets, '[redacted]') : text
  }
}

/** `GET /v1/logs?lines=N` (default 100) and `GET /v1/logs/stream?lines=N` (default 0): the last lines, then each new one. */
export function logService({ log }: { log: Log }): Service {
  return {
    routes: [
      {
        method: 'GET',
        path: '/v1/logs',
        handle: async ({ url }) => ({ body: { lines: log.lines(lineCount(url, 100)) } }),
      },
      {
        method: 'GET',
        path: '/v1/logs/stream',
        handle: async ({ url, res, signal }) => {
          if (log.followers >= FOLLOWERS) throw new AgentdError('busy', `${FOLLOWERS} follow the log already`)
          res.writeHead(200, { 'content-type': 'application/x-ndjson' })
          follow(log, res, { lines: lineCount(url, 0), signal })
          return undefined
        },
      },
    ],
  }
}

/** Writes lines as they come. A reader that is too slow loses some, and is told how many, instead of filling the memory. */
function follow(log: Log, res: ServerResponse, options: { lines: number; signal: AbortSignal }): void {
  let dropped = 0
  const send = (line: LogLine) => res.write(`${JSON.stringify(line)}\n`)
  const onLine = (line: LogLine) => {
    if (res.writableLength > FOLLOWER_BYTES) dropped++
    else send(line)
  }
  const onDrain = () => {
    if (dropped === 0) return
    const message = `${dropped} lines were left out: the reader is too slow`
    dropped = 0
    send({ timestamp: new Date().toISOString(), level: 'WARN', source: 'agentd', message })
  }
  for (const line of options.lines > 0 ? log.lines(options.lines) : []) send(line)
  // The head goes out now, even when no line comes for a while.
  res.flushHeaders()
  res.on('drain', onDrain)
  const unsubscribe = log.subscribe(onLine)
  const end = () => {
    unsubscribe()
    res.off('drain', onDrain)
    res.end()
  }
  if (options.signal.aborted) end()
  else options.signal.addEventListener('abort', end, { once: true })
}

function lineCount(url: URL, fallback: number): number {
  const lines = Number(url.searchParams.get('lines') ?? fallback)
  if (!Number.isInteger(lines) || lines < 0 || lines > KEPT_LINES)
    throw new AgentdError('bad_request', `lines must be 0 to ${KEPT_LINES}`)
  return lines
}
