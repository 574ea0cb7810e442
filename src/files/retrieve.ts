/**
 * Retrieves content that another feature needs and that is missing here: it is pinned from the public network, as pin
 * by CID does.
 */

import type { Pool } from '../db/pool.ts'
import { findPinUnderWay } from '../db/statements/pins.ts'
import { forbidden, messages } from '../errors.ts'
import { grants, type Principal } from '../http/principal.ts'
import { insertPin } from './pins/pin-inserts.ts'

/**
 * Pins a CID for the caller's workspace, or finds its pin in progress. The pinned content becomes a file of the
 * workspace.
 * @param pin its CID in canonical form, and the name of the file.
 * @returns the id of the pin's operation.
 * @throws ApiError 403 if the plan or the key does not allow pinning by CID.
 */
export async function startPin(
  pool: Pool,
  caller: Principal,
  { cid, name }: { cid: string; name: string },
): Promise<string> {
  const underWay = await findPinUnderWay.first(pool, caller.workspaceId, cid)
  if (underWay) return underWay.operationId
  if (!caller.plan.pinByCid) throw forbidden(messages.pinByCidPlan, 'plan')
  if (!grants(caller.scopes, 'org:files:write'))
    throw forbidden('Missing scope: org:files:write, to pin content that is not here yet', 'missing_scope')
  const pin = { cid, canonical: cid, name, groupId: null, keyvalues: {}, hostNodes: [] }
  const accepted = await insertPin(pool, caller, pin)
  if (!accepted) throw new Error('a pin without a group and a key was not accepted')
  return accepted.operationId
}
