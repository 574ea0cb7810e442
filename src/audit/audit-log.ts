/** Writes audit entries. Entries that arrive during a statement share the next one. */
import { setImmediate } from 'node:timers/promises'
import { isRefusedValue } from '../db/database-errors.ts'
import type { Pool } from '../db/pool.ts'
import { type AuditRow, writeAudit } from '../db/statements/audit.ts'
import type { AuditSink } from '../http/audit.ts'
import type { Logger } from '../log.ts'

/** Maximum number of entries per statement. */
const MOST = 500
/** Maximum number of entries kept in memory while the database is unavailable. */
const MAX_LATE = 10_000

interface Waiting {
  row: AuditRow
  /** Whether the row may be written later if the database is unavailable. */
  mayBeLate: boolean
  resolve(): void
  reject(error: unknown): void
}

/** Writes the audit entries of a process. */
export class AuditLog implements AuditSink {
  readonly #pool: Pool
  readonly #log: Logger
  readonly #waiting: Waiting[] = []
  readonly #late: AuditRow[] = []
  #isWriting = false

  constructor(pool: Pool, log: Logger) {
    this.#pool = pool
    this.#log = log
  }

  /**
   * Resolves when the entry is in the database.
   * @throws the database's error; a later {@link flush} then writes the entry, if this process is still running.
   */
  write(row: AuditRow): Promise<void> {
    return this.#add(row, true)
  }

  /** Resolves when the entry of a request that begins is in the database. @throws the database's error. */
  begin(row: AuditRow): Promise<void> {
    return this.#add(row, false)
  }

  /** Writes the entries that could not be written before. */
  async flush(): Promise<void> {
    while (this.#late.length > 0) {
      const rows = this.#late.slice(0, MOST)
      await writeAudit(this.#pool, rows)
      this.#late.splice(0, rows.length)
    }
  }

  #add(row: AuditRow, mayBeLate: boolean): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#waiting.push({ row, mayBeLate, resolve, reject })
      if (!this.#isWriting) void this.#writeWaiting()
    })
  }

  async #writeWaiting(): Promise<void> {
    this.#isWriting = true
    // Entries from one turn of the event loop are written together.
    await setImmediate()
    while (this.#waiting.length > 0) await this.#write(this.#waiting.splice(0, MOST))
    this.#isWriting = false
  }

  async #write(waiting: Waiting[]): Promise<void> {
    try {
      await writeAudit(
        this.#pool,
        waiting.map(({ row }) => row),
      )
      for (const { resolve } of waiting) resolve()
    } catch (error) {
      const isRefused = isRefusedValue(error)
      // PostgreSQL rejects the whole statement because of one row, so each row is written separately and only the bad
      // one is lost.
      if (isRefused && waiting.length > 1) {
        for (const one of waiting) await this.#write([one])
        return
      }
      const room = isRefused ? 0 : MAX_LATE - this.#late.length
      const ended = waiting.filter(({ mayBeLate }) => mayBeLate)
      this.#late.push(...ended.slice(0, room).map(({ row }) => row))
      const lost = Math.max(0, ended.length - room)
      this.#log.warn(
        { err: error, entries: waiting.length, lost },
        'entries of the audit are not written yet',
      )
      for (const { reject } of waiting) reject(error)
    }
  }
}
