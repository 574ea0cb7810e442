/** Requests that are sent again under the same Idempotency-Key: the operation of the first one is theirs as well. */
import { createHash } from 'node:crypto'
import type { Queryable } from '../db/pool.ts'
import { ApiError } from '../errors.ts'

/** What a request is, for telling a repeat from another request under the same key. */
export const fingerprintOf = (request: string): Buffer => createHash('sha256').update(request).digest()

/**
 * The operation that a request under this key started, and what it is about; undefined when none did.
 * @throws ApiError 422 when that was another request.
 */
export async function findRepeated(
  db: Queryable,
  { workspaceId, key, fingerprint }: { workspaceId: string; key: string; fingerprint: Buffer },
): Promise<{ operationId: string; targetId: string } | undefined> {
  const { rows } = await db.query(
    'SELECT id, target_id, fingerprint FROM operation WHERE workspace_id = $1 AND idempotency_key = $2',
    [workspaceId, key],
  )
  if (!rows[0]) return undefined
  if (fingerprint.equals(rows[0].fingerprint)) return { operationId: rows[0].id, targetId: rows[0].target_id }
  throw new ApiError(422, 'idempotency_mismatch', 'Idempotency-Key: already used with another request')
}
