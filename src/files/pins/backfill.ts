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
      SELECT waiting.id FROM (
        SELECT workspace_id FROM operation
        WHERE queue = 'pins' AND state IN ('queued', 'running') AND (attempts > 0 OR handed_over_at IS NOT NULL)
        GROUP BY workspace_id HAVING count(*) >= $1) full_up,
      LATERAL (
        SELECT id FROM file WHERE workspace_id = full_up.workspace_id AND status = 'prechecking' AND (
          SELECT state = 'queued' AND attempts = 0 AND handed_over_at IS NULL FROM operation
          WHERE target_id = file.id AND queue = 'pins' ORDER BY operation.id DESC LIMIT 1)
        ORDER BY id LIMIT $2) waiting
      LIMIT $2))`,
    values: [limit, BATCH],
  })
}
