/** Cancels operations: immediately if they wait, within about a second if they run. */
import type { Queryable } from '../db/pool.ts'

/**
 * Composes the UPDATE that cancels the unfinished operations selected by `condition`, for a statement that does more.
 * It returns their ids; {@link NOTIFY_CANCELED} notifies waiting callers.
 */
export const cancelOperation = (condition: string): string =>
  `UPDATE operation SET cancel_requested = true, version = version + 1,
     state = CASE state WHEN 'queued' THEN 'canceled' ELSE state END,
     finished_at = CASE state WHEN 'queued' THEN now() END
   WHERE ${condition} AND state IN ('queued', 'running') RETURNING id`

/**
 * Notifies callers that wait for the operations in the common table expression `canceled`; an SQL expression whose
 * value is their number.
 */
export const NOTIFY_CANCELED = `(SELECT count(pg_notify('berth_operation', canceled.id::text)) FROM canceled)`

/**
 * Cancels one operation of a workspace, or all operations of a subject. A worker that is running one notices at its
 * next renewal; ended operations stay unchanged.
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
