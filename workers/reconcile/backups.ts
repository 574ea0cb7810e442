/** Backups that Berth makes by itself if BERTH_BACKUP_DIR is set. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { listBackups, timeOf } from '../../src/backup/layout.ts'
import { openStore } from '../../src/backup/open-store.ts'
import type { BackupStore } from '../../src/backup/store.ts'
import type { Config } from '../../src/config.ts'
import { withAdvisoryLock } from '../../src/db/advisory-locks.ts'
import type { Pool } from '../../src/db/pool.ts'
import type { Logger } from '../../src/log.ts'

const CLI = join(import.meta.dirname, '../../bin/berth.mjs')
/** Interval of the check whether a backup is due. */
export const BACKUP_POLL_MS = 60_000
const OUTPUT_BYTES = 4000

export class ScheduledBackups {
  readonly #config: Config
  readonly #dir: string
  #store: Promise<BackupStore> | undefined
  #seen: { atMs: number; newestMs: number | undefined } = {
    atMs: Number.NEGATIVE_INFINITY,
    newestMs: undefined,
  }

  /** @param dir BERTH_BACKUP_DIR. */
  constructor(config: Config, dir: string) {
    this.#config = config
    this.#dir = dir
  }

  /** When the newest backup was made, in ms, as seen at most a minute ago; undefined if none has been seen. */
  async newest(): Promise<number | undefined> {
    if (performance.now() - this.#seen.atMs < BACKUP_POLL_MS) return this.#seen.newestMs
    // If it cannot be checked now, the loop logs the reason.
    return this.#look().catch(() => this.#seen.newestMs)
  }

  async #look(): Promise<number | undefined> {
    this.#store ??= openStore(this.#dir, { pathStyle: this.#config.BERTH_S3_PATH_STYLE })
    const name = (await listBackups(await this.#store)).at(-1)
    const newestMs = name === undefined ? undefined : timeOf(name).getTime()
    this.#seen = { atMs: performance.now(), newestMs }
    return newestMs
  }

  /**
   * Makes a backup if the newest one is older than `backups` of BERTH_INTERVALS, one worker at a time. Runs in a separate
   * process, whose memory is freed with it: it reads all data.
   * @throws Error with its output if it fails; the next check tries again.
   */
  async makeInTurn({ pool, log }: { pool: Pool; log: Logger }, signal: AbortSignal): Promise<void> {
    const { BERTH_INTERVALS, BERTH_BACKUP_KEEP: keep } = this.#config
    const isDue = async () => {
      const ageMs = Date.now() - ((await this.#look()) ?? 0)
      // A backup dated in the future: a new backup reports the problem.
      return ageMs >= BERTH_INTERVALS.backups * 1000 || ageMs < 0
    }
    if (!(await isDue())) return
    await withAdvisoryLock(pool, 'backup', async () => {
      if (!(await isDue())) return
      const withKeys = this.#config.BERTH_BACKUP_PASSPHRASE ? ['--with-keys'] : []
      const args = ['backup', this.#dir, '--keep', keep, ...withKeys]
      const { code, output } = await runCli(args, this.#config, signal)
      if (code !== 0) throw new Error(`the backup failed: ${output}`)
      await this.#look()
      log.info({ dir: this.#dir }, 'a backup was made')
    })
  }
}

function runCli(
  args: string[],
  config: Config,
  signal: AbortSignal,
): Promise<{ code: number; output: string }> {
  const child = spawn(process.execPath, [CLI, ...args], {
    signal,
    env: { ...process.env, DATABASE_URL: config.DATABASE_URL, DATABASE_URL_FILE: '' },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr])
    stream.on('data', (chunk) => {
      output = `${output}${chunk}`.slice(-OUTPUT_BYTES)
    })
  return new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', (code) => resolve({ code: code ?? -1, output: output.trim() }))
  })
}
