/** Cancelling operations: at once where they wait, within about a second where they run. */
import type { Queryable } from '../db/pool.ts'

/**
 * Composes the UPDATE that cancels the unfinished operations which `condition` selects, for a statement that does more. It
 * returns their ids; whoever waits for them is told by {@link NOTIFY_CANCELED} over these.
 */
export const cancelOperation = (condition: string): string =>
  `UPDATE operation SET cancel_requested = true, version = version + 1,
     state = CASE state WHEN 'queued' THEN 'canceled' ELSE state END,
     finished_at = CASE state WHEN 'queued' THEN now() END
   WHERE ${condition} AND state IN ('queued', 'running') RETURNING id`

/** Tells whoever waits for the operations of the common table expression `canceled`; an SQL expression, their number. */
export const NOTIFY_CANCELED = `(SELECT count(pg_notify('berth_operation', canceled.id::text)) FROM canceled)`

/**
 * Cancels one operation of a workspace, or all of a subject. A worker that runs one sees the request at its next renewal;
 * what has ended stays as it is.
 */
export async function cancel(
  db: Queryable,
  target: { workspaceId: string; id: string } | { workspaceId: string; subject: `agent:${string}` },
): Promise<void> {
  const [condition, value] =
    'id' in target ? ['id = $2', target.id] : ['concurrency_key = $2', target.subject]
  await db.query(
    `WITH canceled AS (${cancelOperation(`workspace_id = $1 AND ${condition}`)}) SELECT ${NOTIFY_CANCELED} AS told`,
    [target.workspaceId, value],
  )
}
