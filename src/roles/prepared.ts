/** Finds out whether an earlier start has prepared everything, so that this one needs no process for it. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import bullmq from 'bullmq/package.json' with { type: 'json' }
import { createPool } from '../db/pool.ts'
import { schemaState } from '../db/schema-state.ts'
import { replaceFile } from '../lib/files.ts'
import type { Logger } from '../log.ts'
import type { Prepared } from './prepare.ts'

/** Berth's own migrations are in the database; those of BullMQ are told by the version that made them. */
const recordOf = (dataDir: string) => join(dataDir, 'bullmq-version')

/**
 * The answer of `prepare` on the embedded database of a data folder, where it has nothing left to do; undefined where
 * it has to run.
 */
export async function findPrepared(
  dataDir: string,
  databaseUrl: string,
  log: Logger,
): Promise<Prepared | undefined> {
  const version = await readFile(recordOf(dataDir), 'utf8').catch(() => '')
  if (version !== bullmq.version) return undefined
  const pool = createPool(databaseUrl, 2, log)
  try {
    if ((await schemaState(pool)) !== 'current') return undefined
    const { rows } = await pool.query<{ gateway: string | null }>(
      `SELECT (SELECT domain FROM gateway ORDER BY id LIMIT 1) AS gateway
       WHERE EXISTS (SELECT FROM workspace) AND to_regnamespace('bullmq') IS NOT NULL`,
    )
    return rows[0] && { gateway: rows[0].gateway ?? undefined }
  } finally {
    await pool.end()
  }
}

/** Remembers that `prepare` has run. */
export async function notePrepared(dataDir: string): Promise<void> {
  await replaceFile(recordOf(dataDir), bullmq.version, 0o600)
}
