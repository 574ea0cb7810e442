import { KEPT_LINES, type LogLine } from './protocol.ts'

/** Longest message kept, in characters. With {@link KEPT_LINES} it bounds the memory: 1000 × 4096 × 2 bytes = 8 MB. */
const MESSAGE_CHARS = 4096
/** Shorter values would match ordinary words. */
const SHORTEST_SECRET = 6
/** Lines of one secret that are redacted one by one: each costs time, and a bundle of certificates has thousands. */
const SECRET_LINES = 100

/** The log of the agent. */
export class Log {
  #lines: LogLine[] = []
  #next = 0
  #secrets: RegExp | undefined
  readonly #listeners = new Set<(line: LogLine) => void>()

  /** Adds a line; values passed to {@link hide} are redacted first. */
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

  /** Calls `listener` with each new line, until the returned function is called. */
  subscribe(listener: (line: LogLine) => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  get followers(): number {
    return this.#listeners.size
  }

  /** From now on keeps these values out of the log; values of several lines are hidden line by line. */
  hide(values: Iterable<string>): void {
    const parts = new Set([...values].flatMap((value) => [value, ...value.split(/\r?\n/, SECRET_LINES)]))
    const escaped = [...parts]
      .filter((part) => part.length >= SHORTEST_SECRET)
      // Longest first, because one value may begin with another.
      .sort((a, b) => b.length - a.length)
      .map((part) => part.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&'))
    this.#secrets = escaped.length > 0 ? new RegExp(escaped.join('|'), 'g') : undefined
  }

  /** A text without the hidden values. */
  redact(text: string): string {
    return this.#secrets ? text.replace(this.#secrets, '[redacted]') : text
  }
}
