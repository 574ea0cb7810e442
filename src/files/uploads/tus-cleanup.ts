import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Pool } from '../../db/pool.ts'

const BATCH = 500
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

/**
 * Removes uploads and signed URLs whose time is over, and files in `dir` that belong to no unfinished upload:
 * a process died between a row and its file. Any number of processes may do it at once.
 */
export async function removeAbandonedUploads(pool: Pool, dir: string, signal: AbortSignal): Promise<void> {
  await deleteInBatches(pool, 'signed_upload', 'true', signal)
  // One that is being written or imported right now comes next time.
  await deleteInBatches(pool, 'upload', '(lease_until IS NULL OR lease_until < now())', signal)
  // A row is there before its file, so a file that was listed before its row was missed has none any more.
  const files = (await readdir(dir)).filter((name) => UUID.test(name))
  for (let i = 0; i < files.length; i += BATCH) {
    signal.throwIfAborted()
    const batch = files.slice(i, i + BATCH)
    const { rows } = await pool.query(
      'SELECT id FROM upload WHERE id = ANY($1::uuid[]) AND cid IS NULL AND refusal IS NULL',
      [batch],
    )
    const unfinished = new Set(rows.map(({ id }) => id))
    for (const id of batch) if (!unfinished.has(id)) await rm(join(dir, id), { force: true })
  }
}

async function deleteInBatches(
  pool: Pool,
  table: 'upload' | 'signed_upload',
  condition: string,
  signal: AbortSignal,
): Promise<void> {
  let deleted: number | null
  do {
    signal.throwIfAborted()
    const { rowCount } = await pool.query(
      `DELETE FROM ${table} WHERE id IN (
         SELECT id FROM ${table} WHERE expires_at <= now() AND ${condition} LIMIT ${BATCH})`,
    )
    deleted = rowCount
  } while (deleted === BATCH)
}
