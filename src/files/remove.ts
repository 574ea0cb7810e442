import { uuidv7 } from 'uuidv7'
import type { Core } from '../core.ts'
import type { Queryable } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import type { Context, RouteResponse } from '../http/route.ts'
import { cancelOperation, NOTIFY_CANCELED } from '../operations/cancel.ts'
import { insertOperation } from '../operations/enqueue.ts'
import type { Network } from '../storage/port.ts'
import { PENDING } from './pins/pin-record.ts'

const CONDITIONS = {
  pinned: `status = 'pinned'`,
  expired: `status = 'pinned' AND expires_at <= now()`,
  unpinned: `status <> 'pinned'`,
  any: 'true',
  pending: `status IN (${PENDING.map((status) => `'${status}'`)})`,
}

/**
 * Accepts the deletion of a file or the withdrawal of a pin request. Readers no longer see it, a retrieval in progress
 * is cancelled, and an operation releases the content unless something else keeps it. This is one statement; it locks
 * the file's row before its operations, as every writer does.
 * @param only the required status: `pinned`, `expired` (pinned, with its expiry reached), `unpinned`, `pending`
 *   (neither pinned nor failed), or `any` of these.
 * @param successor the file that replaces it: pinned content is released after the successor's retrieval has ended, so
 *   that shared blocks are not collected before they are pinned again.
 * @returns the operation's id, or undefined if the workspace has no such file.
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
  const { rows } = await db.query<{ id: string }>(
    `WITH gone AS (
       UPDATE file SET removed_at = now()
       WHERE id = $1 AND workspace_id = $2 AND network = $3 AND removed_at IS NULL AND ${CONDITIONS[only]}
       RETURNING id, workspace_id, status
     ), canceled AS (
       ${cancelOperation('target_id = (SELECT id FROM gone)')}
     ), removal AS (
       ${insertOperation('pin.remove', {
         id: '$4',
         workspaceId: 'workspace_id',
         targetId: 'id',
         inLineWith: `CASE status WHEN 'pinned' THEN coalesce($5::uuid, id) ELSE id END`,
         from: 'FROM gone',
       })}
     )
     SELECT removal.id, ${NOTIFY_CANCELED} FROM removal`,
    [id, workspaceId, network, uuidv7(), successor],
  )
  return rows[0]?.id
}

/**
 * The handler of both DELETE routes: for a file, or for a request that is not pinned yet. Only a file's path has a
 * network.
 * @param missing the message of a 404.
 */
export function removal({ pool, operations }: Core, only: 'pinned' | 'unpinned', missing: string) {
  return async ({
    params,
    ...asked
  }: Context<{ id: string; network?: Network }, unknown, unknown>): Promise<RouteResponse> => {
    const { workspaceId } = asked.principal
    const { id, network = 'public' } = params
    const operationId = await removeFile(pool, { workspaceId, network, id, only })
    if (!operationId) throw notFound(missing)
    const { headers } = await operations.started('pin.remove', operationId, { ...asked, waitMs: 0 })
    return { headers, body: { data: null } }
  }
}
