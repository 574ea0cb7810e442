import { setTimeout as delay } from 'node:timers/promises'
import { crashPoint } from '../src/lib/crash-point.ts'
import type { Run } from '../src/operations/handler.ts'
import type { PinProgress } from '../src/storage/port.ts'

const REPORT_MS = 500

/** Writes the latest progress to the row, at most twice a second, one write at a time. */
export class ProgressReport {
  readonly #run: Run
  readonly #onFirstBlock: () => Promise<void> | undefined
  #latest: PinProgress | undefined
  #writing: Promise<void> | undefined
  #retrieving = false
  readonly #closed = new AbortController()

  constructor(run: Run, onFirstBlock: () => Promise<void> | undefined) {
    this.#run = run
    this.#onFirstBlock = onFirstBlock
  }

  update(progress: PinProgress): void {
    this.#latest = progress
    if (!this.#closed.signal.aborted)
      this.#writing ??= this.#write().finally(() => (this.#writing = undefined))
  }

  /** Writes the rest, and resolves when no write is in progress. */
  async close(): Promise<void> {
    this.#closed.abort()
    await this.#writing
    await this.#flush()
  }

  async #write(): Promise<void> {
    while (this.#latest && !this.#closed.signal.aborted) {
      await this.#flush()
      await delay(REPORT_MS, undefined, { signal: this.#closed.signal }).catch(() => {})
    }
  }

  async #flush(): Promise<void> {
    const latest = this.#latest
    this.#latest = undefined
    if (!latest) return
    try {
      if (latest.phase === 'retrieving' && !this.#retrieving) {
        this.#retrieving = true
        await this.#onFirstBlock()
        crashPoint('mid-retrieval')
      }
      const { phase, blocks, bytes, totalBytes, replicas } = latest
      await this.#run.report(phase, { blocks, bytes, total_bytes: totalBytes, replicas })
    } catch (error) {
      // Progress is only informative: a lost lease ends the run elsewhere, and an outage passes.
      this.#run.log.debug({ err: error }, 'progress not written')
    }
  }
}
