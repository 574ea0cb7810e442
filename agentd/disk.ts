import { execFile } from 'node:child_process'
import { rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { isErrno } from './agentd-errors.ts'
import type { Log } from './logs.ts'
import type { AgentStatus } from './protocol.ts'

const PAUSE_MS = 10_000
/** Measuring takes at most one part in this many of the time: a home with a million files takes seconds. */
const IDLE_SHARE = 50
const DU_MS = 120_000
/** The minimum that a gateway writes when it starts. */
const ROOM_BYTES = 1_048_576

interface DiskOptions {
  home: string
  limitBytes: number
  /** True if the file system refuses writes over the limit. */
  hardLimit: boolean
  log: Log
  onChange(): void
  /**
   * Called if the files take more than the limit and more than last time, so that an agent that frees space is left
   * alone. Not called with a hard limit, which the file system enforces: it is raised for a reset, which must not be
   * cut off.
   */
  onFull(reason: string): void
}

/** Watches the size of the agent's home, with `du`. */
export class DiskWatch {
  readonly #options: DiskOptions
  #usedBytes = 0
  #tookMs = 0
  #timer: NodeJS.Timeout | undefined
  #measuring: Promise<void> | undefined
  #failed = false

  constructor(options: DiskOptions) {
    this.#options = options
  }

  get status(): AgentStatus['disk'] {
    const { limitBytes, hardLimit } = this.#options
    return { usedBytes: this.#usedBytes, limitBytes, hardLimit }
  }

  start(): void {
    const tick = async () => {
      await this.measure()
      this.#timer = setTimeout(tick, Math.max(PAUSE_MS, this.#tookMs * IDLE_SHARE))
    }
    void tick()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  /**
   * Why the agent must not run: its files take too much, even when measured again, or nothing can be written. Null if
   * it may run.
   */
  async refusal(): Promise<string | null> {
    const isFull = await this.#isFull()
    if (isFull || this.#usedBytes > this.#options.limitBytes) await this.measure()
    return isFull || this.#usedBytes > this.#options.limitBytes ? this.#reason() : null
  }

  /** Tries a small write, because a file system counts other bytes than those of its files. */
  async #isFull(): Promise<boolean> {
    const path = join(this.#options.home, '.agentd-room')
    try {
      // The agent may have put anything there.
      await rm(path, { recursive: true, force: true })
      await writeFile(path, Buffer.alloc(ROOM_BYTES), { flag: 'wx' })
      return false
    } catch (error) {
      return isErrno(error, 'ENOSPC', 'EDQUOT')
    } finally {
      await rm(path, { force: true }).catch(() => {})
    }
  }

  /** Measures the home now. */
  measure(): Promise<void> {
    this.#measuring ??= this.#measure().finally(() => {
      this.#measuring = undefined
    })
    return this.#measuring
  }

  async #measure(): Promise<void> {
    const started = performance.now()
    const bytes = await diskUsage(this.#options.home).catch((error) => {
      if (!this.#failed) this.#options.log.warn(`the disk space cannot be measured: ${error.message}`)
      this.#failed = true
      return this.#usedBytes
    })
    this.#tookMs = performance.now() - started
    // Small changes, as of the log or a database, are not reported.
    const news = Math.abs(bytes - this.#usedBytes) > this.#options.limitBytes / 100
    const grown = bytes > this.#usedBytes
    this.#usedBytes = bytes
    if (news) this.#options.onChange()
    const { limitBytes, hardLimit, onFull } = this.#options
    if (grown && bytes > limitBytes && !hardLimit) onFull(this.#reason())
  }

  #reason(): string {
    const { usedBytes, limitBytes } = this.status
    return `disk full: the agent's files take ${mebibytes(usedBytes)} of ${mebibytes(limitBytes)}`
  }
}

/** Bytes that the files below a folder take on disk, each counted once. */
function diskUsage(folder: string): Promise<number> {
  return new Promise((resolve, reject) => {
    const env = { PATH: process.env.PATH, LC_ALL: 'C' }
    execFile('du', ['-skx', folder], { env, timeout: DU_MS, killSignal: 'SIGKILL' }, (error, stdout) => {
      // du also fails if a file vanishes in the meantime, but still counts the others.
      const kibibytes = /^(\d+)\s/.exec(stdout)?.[1]
      if (kibibytes === undefined) reject(error ?? new Error('du said nothing'))
      else resolve(Number(kibibytes) * 1024)
    })
  })
}

function mebibytes(bytes: number): string {
  return `${Math.round(bytes / 1_048_576)} MiB`
}
