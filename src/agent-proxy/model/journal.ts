/**
 * Keeps the amounts that requests may have spent since `web` last answered a report, in a file that outlives a killed
 * process. The next process reports them. A write takes microseconds and survives a SIGKILL, not a power failure.
 */
import { closeSync, mkdirSync, openSync, readFileSync, renameSync, writeSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Logger } from '../../log.ts'

/** A lease, and the most that its requests may have spent without a report. */
export interface AtRisk {
  id: string
  /** SHA-256 (hex) of the virtual key. */
  key: string
  /** Number of the lease's last report. */
  seq: number
  usd: number
  tokens: number
}

/** Above this size, the file is replaced by one with only the amounts that still count. */
const MAX_BYTES = 1_048_576

export class Journal {
  readonly #path: string
  readonly #log: Logger
  readonly #atRisk = new Map<string, AtRisk>()
  /** Undefined if the folder cannot be written: then a killed process's last second is not charged. */
  #file: number | undefined
  #bytes = 0

  /** Reads what an earlier process left. */
  constructor(path: string, log: Logger) {
    this.#path = path
    this.#log = log
    for (const lease of readLines(path)) this.#keep(lease)
    this.#rewrite()
  }

  /** The leases with an amount at risk. */
  get leases(): AtRisk[] {
    return [...this.#atRisk.values()]
  }

  /** Replaces a lease's amount; nothing at risk removes it. */
  note(lease: AtRisk): void {
    this.#keep(lease)
    if (this.#file === undefined) return
    if (this.#bytes > MAX_BYTES) this.#rewrite()
    else this.#try(() => this.#append(lease))
  }

  #keep(lease: AtRisk): void {
    if (lease.usd > 0 || lease.tokens > 0) this.#atRisk.set(lease.id, lease)
    else this.#atRisk.delete(lease.id)
  }

  #append(lease: AtRisk): void {
    this.#bytes += writeSync(this.#file as number, `${JSON.stringify(lease)}\n`)
  }

  /** Replaces the file at once, so that a kill leaves the old or the new one. */
  #rewrite(): void {
    const former = this.#file
    this.#file = undefined
    this.#try(() => {
      mkdirSync(dirname(this.#path), { recursive: true })
      this.#file = openSync(`${this.#path}.new`, 'w', 0o600)
      this.#bytes = 0
      for (const lease of this.#atRisk.values()) this.#append(lease)
      renameSync(`${this.#path}.new`, this.#path)
    })
    if (former !== undefined) closeSync(former)
  }

  #try(write: () => void): void {
    try {
      write()
    } catch (error) {
      this.#file = undefined
      this.#log.warn({ err: error, path: this.#path }, 'the journal of model calls cannot be written')
    }
  }
}

/** A line that a kill has cut off is left out: its request was not sent. */
function readLines(path: string): AtRisk[] {
  try {
    return readFileSync(path, 'utf8')
      .split('\n')
      .flatMap((line) => parse(line) ?? [])
  } catch {
    return []
  }
}

function parse(line: string): AtRisk | undefined {
  try {
    return JSON.parse(line)
  } catch {
    return undefined
  }
}
