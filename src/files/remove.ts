import { uuidv7 } from 'uuidv7'
import type { Queryable } from '../db/pool.ts'
import { catalog } from '../operations/catalog.ts'
import { PENDING } from './pins/schema.ts'

const CONDITIONS = {
  pinned: `status = 'pinned'`,
  expired: `status = 'pinned' AND expires_at <= now()`,
  unpinned: `status <> 'pinned'`,
  any: 'true',
  pending: `status IN (${PENDING.map((status) => `'${status}'`)})`,
}

/**
 * Accepts the deletion of a file or the withdrawal of a pin request: it is gone for readers at once,
 * a retrieval under way is cancelled, and an operation releases the content unless something else
 * keeps it. One statement; it locks the file's row before its operations, as every writer does.
 * @param only which it must be: `pinned`, `expired` (pinned, and its time has come), `unpinned`, `pending`,
 *   which is neither pinned nor failed, or `any` of these.
 * @param successor the file that takes its place: what is pinned is released after that one's retrieval has
 *   ended, so that blocks which both have are not collected before they are pinned again.
 * @returns the operation's id, or undefined when the workspace has no such file.
 */
export async function removeFile(
  db: Queryable,
  {
    workspaceId,
    network,
    id,
    only,
    successor = null,
  }: {
    workspaceId: string
    network: string
    id: string
    only: keyof typeof CONDITIONS
    successor?: string | null
  },
): Promise<string | undefined> {
  const { rows } = await db.query(
    `WITH gone AS (
       UPDATE file SET removed_at = now()
       WHERE id = $1 AND workspace_id = $2 AND network = $3 AND removed_at IS NULL AND ${CONDITIONS[only]}
       RETURNING id, workspace_id, status
     ), canceled AS (
       UPDATE operation SET cancel_requested = true, version = version + 1,
         state = CASE state WHEN 'queued' THEN 'canceled' ELSE state END,
         finished_at = CASE state WHEN 'queued' THEN now() END
       WHERE target_id = (SELECT id FROM gone) AND state IN ('queued', 'running') RETURNING id
     ), removal AS (
       INSERT INTO operation (id, workspace_id, kind, queue, target_id, exclusive_key)
       SELECT $4, workspace_id, 'pin.remove', $5, id,
         'file:' || CASE status WHEN 'pinned' THEN coalesce($6::uuid, id) ELSE id END
       FROM gone RETURNING id
     )
     SELECT removal.id, (SELECT count(pg_notify('berth_operation', canceled.id::text)) FROM canceled) FROM removal`,
    [id, workspaceId, network, uuidv7(), catalog['pin.remove'].queue, successor],
  )
  return rows[0]?.id
}
