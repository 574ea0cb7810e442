import type { Pool } from '../../src/db/pool.ts'
import { removeFile } from '../../src/files/remove.ts'

const BATCH = 500

/** Removes the files whose time has come, as if their owners had deleted them. Resolves to how many. */
export async function removeExpiredFiles(pool: Pool, signal: AbortSignal): Promise<number> {
  let removed = 0
  for (;;) {
    signal.throwIfAborted()
    const { rows } = await pool.query(
      `SELECT id, workspace_id AS "workspaceId", network FROM file
       WHERE expires_at <= now() AND removed_at IS NULL AND status = 'pinned' LIMIT $1`,
      [BATCH],
    )
    for (const file of rows) if (await removeFile(pool, { ...file, only: 'expired' })) removed++
    if (rows.length < BATCH) return removed
  }
}
