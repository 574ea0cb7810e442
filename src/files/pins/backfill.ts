import type { Pool } from '../../db/pool.ts'

const BATCH = 1000

/**
 * Shows as `backfilled` (compatibility 1.6) the new pins of every workspace that has `limit` searches
 * running: they wait until one of those ends. A batch at a time, as the dispatcher passes.
 */
export async function markBackfilled(pool: Pool, limit: number): Promise<void> {
  await pool.query({
    name: 'pin-backfilled',
    text: `UPDATE file SET status = 'backfilled' WHERE status = 'prechecking' AND id IN (
      SELECT waiting.target_id FROM (
        SELECT workspace_id FROM operation
        WHERE queue = 'pins' AND state IN ('queued', 'running') AND (attempts > 0 OR handed_over_at IS NOT NULL)
        GROUP BY workspace_id HAVING count(*) >= $1) full_up
      JOIN operation waiting ON waiting.workspace_id = full_up.workspace_id AND waiting.queue = 'pins'
        AND waiting.state = 'queued' AND waiting.attempts = 0 AND waiting.handed_over_at IS NULL
      JOIN file ON file.id = waiting.target_id AND file.status = 'prechecking'
      LIMIT $2)`,
    values: [limit, BATCH],
  })
}
