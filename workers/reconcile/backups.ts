/** Backups that Berth makes by itself, where BERTH_BACKUP_DIR is set. */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { listBackups, timeOf } from '../../src/backup/folder.ts'
import type { Config } from '../../src/config.ts'
import { withAdvisoryLock } from '../../src/db/advisory-locks.ts'
import type { Pool } from '../../src/db/pool.ts'
import type { Logger } from '../../src/log.ts'

const CLI = join(import.meta.dirname, '../../bin/berth.mjs')
/** Interval of the look whether a backup is due. */
export const BACKUP_LOOK_MS = 60_000
const OUTPUT_BYTES = 4000

/** When the newest backup of the folder was made, in ms; undefined where there is none. */
export async function newestBackup(dir: string): Promise<number | undefined> {
  const name = (await listBackups(dir)).at(-1)
  return name === undefined ? undefined : timeOf(name).getTime()
}

/**
 * Makes a backup where the newest one is older than BERTH_BACKUP_SECONDS, one worker at a time. In a process of its own:
 * it reads all that there is, and takes its memory with it.
 * @throws Error with what it said, where it fails; the next look tries again.
 */
export async function backUpInTurn(
  config: Config,
  { pool, log }: { pool: Pool; log: Logger },
  signal: AbortSignal,
): Promise<void> {
  const { BERTH_BACKUP_DIR: dir, BERTH_BACKUP_SECONDS: interval, BERTH_BACKUP_KEEP: keep } = config
  if (!dir) return
  const isDue = async () => Date.now() - ((await newestBackup(dir)) ?? 0) >= interval * 1000
  if (!(await isDue())) return
  await withAdvisoryLock(pool, 'backup', async () => {
    if (!(await isDue())) return
    const args = ['backup', dir, '--keep', keep, ...(config.BERTH_BACKUP_PASSPHRASE ? ['--with-keys'] : [])]
    const { code, output } = await runCli(args, config, signal)
    if (code !== 0) throw new Error(`the backup failed: ${output}`)
    log.info({ dir }, 'a backup is made')
  })
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
