import type { Pool } from '../../db/pool.ts'

const BATCH = 1000

/**
 * Shows as `backfilled` (compatibility 1.6) the new pins of every workspace that has `limit` searches
 * running: they wait until one of those ends. A batch at a time, as the dispatcher passes.
 */
export async function markBackfilled(pool: Pool, limit: number): Promise<void> {
  await pool.query({
    name: 'pin-backfilled',
    text: `UPDATE file SET status = 'backfilled' WHERE status = 'prechecking' AND id = ANY (ARRAY(
      SELECT file.id FROM file
      JOIN operation waiting ON waiting.target_id = file.id AND waiting.queue = 'pins'
        AND waiting.state = 'queued' AND waiting.attempts = 0 AND waiting.handed_over_at IS NULL
      WHERE file.status = 'prechecking' AND file.workspace_id IN (
        SELECT workspace_id FROM operation
        WHERE queue = 'pins' AND state IN ('queued', 'running') AND (attempts > 0 OR handed_over_at IS NOT NULL)
        GROUP BY workspace_id HAVING count(*) >= $1)
      LIMIT $2))`,
    values: [limit, BATCH],
  })
}
