/** Content of a skill that is not here: it is pinned from the public network, as pin by CID does. */
import type { Principal } from '../../accounts/authenticator.ts'
import { grants } from '../../accounts/scopes.ts'
import type { Pool } from '../../db/pool.ts'
import { badRequest, forbidden, messages } from '../../errors.ts'
import { insertPin } from '../../files/pins/service.ts'
import type { Prefer } from '../../http/prefer.ts'
import type { AgentOperations, Started } from '../operate.ts'

/**
 * Pins a CID for the caller's workspace, or finds its pin that is under way, and waits for it as `Prefer` says. What
 * was pinned is a file of the workspace.
 * @param skill its CID in canonical form, and the name of the file.
 * @returns the pin's operation: finished when the content is here.
 * @throws ApiError 403 where the plan or the key does not allow to pin by CID, 400 when the content cannot be had.
 */
export async function retrieveSkill(
  { pool, operations }: { pool: Pool; operations: AgentOperations },
  caller: Principal,
  skill: { cid: string; name: string },
  wait: { prefer: Prefer; signal: AbortSignal },
): Promise<Started> {
  const started = await startPin(pool, caller, skill)
  const pin = await operations.wait(caller.workspaceId, started.operationId, wait)
  if (pin.finished && pin.state !== 'succeeded') {
    const { rows } = await pool.query<{ status: string }>('SELECT status FROM file WHERE id = $1', [
      started.fileId,
    ])
    throw badRequest(
      `skillCid: its content could not be retrieved: ${rows[0]?.status ?? 'the pin was withdrawn'}`,
    )
  }
  return pin
}

async function startPin(
  pool: Pool,
  caller: Principal,
  { cid, name }: { cid: string; name: string },
): Promise<{ operationId: string; fileId: string }> {
  const { rows } = await pool.query(
    `SELECT f.id AS "fileId", o.id AS "operationId" FROM file f
       JOIN operation o ON o.target_id = f.id AND o.kind = 'pin.add' AND o.state IN ('queued', 'running')
     WHERE f.workspace_id = $1 AND f.network = 'public' AND f.cid_v1 = $2 AND f.removed_at IS NULL
     ORDER BY f.id LIMIT 1`,
    [caller.workspaceId, cid],
  )
  if (rows[0]) return rows[0]
  if (!caller.plan.pinByCid) throw forbidden(messages.pinByCidPlan, 'plan')
  if (!grants(caller.scopes, 'org:files:write'))
    throw forbidden('Missing scope: org:files:write, to pin content that is not here yet', 'missing_scope')
  const pin = { cid, canonical: cid, name, groupId: null, keyvalues: {}, hostNodes: [] }
  const accepted = await insertPin(pool, caller, pin)
  if (!accepted) throw new Error('a pin without a group and a key was not accepted')
  return { operationId: accepted.operationId, fileId: accepted.record.id }
}
