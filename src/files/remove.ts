import { uuidv7 } from 'uuidv7'
import type { Pool, Queryable } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import type { Context, RouteResponse } from '../http/route.ts'
import { cancelOperation, NOTIFY_CANCELED } from '../operations/cancel.ts'
import { insertOperation } from '../operations/enqueue.ts'
import type { Operations } from '../operations/operations.ts'
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

export interface RemovalServices {
  pool: Pool
  operations: Operations
}

/**
 * The handler of both DELETE routes: a file, or a request that is not pinned yet. Only a file's path has a network.
 * @param missing what a 404 says.
 */
export function removal({ pool, operations }: RemovalServices, only: 'pinned' | 'unpinned', missing: string) {
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
