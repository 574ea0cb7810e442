/**
 * Retrieves content that another feature needs and that is missing here: it is pinned from the public network, as pin
 * by CID does.
 */

import type { Pool } from '../db/pool.ts'
import { findPinUnderWay } from '../db/statements/pins.ts'
import { badRequest, forbidden, messages } from '../errors.ts'
import { grants, type Principal } from '../http/principal.ts'
import type { Asked, Operations, Started } from '../operations/operations.ts'
import { insertPin } from './pins/pin-inserts.ts'

/**
 * Pins a CID for the caller's workspace, or finds its pin in progress, and waits for it as `Prefer` requests. The
 * pinned content becomes a file of the workspace.
 * @param content its CID in canonical form, the name of the file, and the field of the request, for messages.
 * @returns the pin's operation, which is finished if the content is here.
 * @throws ApiError 403 if the plan or the key does not allow pinning by CID, 400 if the content is unavailable.
 */
export async function retrieveContent(
  { pool, operations }: { pool: Pool; operations: Operations },
  caller: Principal,
  content: { cid: string; name: string; field: string },
  asked: Omit<Asked, 'principal'>,
): Promise<Started<'pin.add'>> {
  const started = await startPin(pool, caller, content)
  const pin = await operations.started('pin.add', started.operationId, { principal: caller, ...asked })
  if (pin.finished && pin.state !== 'succeeded') {
    const reason = pin.finished?.state === 'failed' ? pin.finished.error : 'the pin was withdrawn'
    throw badRequest(`${content.field}: its content could not be retrieved: ${reason}`)
  }
  return pin
}

async function startPin(
  pool: Pool,
  caller: Principal,
  { cid, name }: { cid: string; name: string },
): Promise<{ operationId: string; fileId: string }> {
  const underWay = await findPinUnderWay.first(pool, caller.workspaceId, cid)
  if (underWay) return underWay
  if (!caller.plan.pinByCid) throw forbidden(messages.pinByCidPlan, 'plan')
  if (!grants(caller.scopes, 'org:files:write'))
    throw forbidden('Missing scope: org:files:write, to pin content that is not here yet', 'missing_scope')
  const pin = { cid, canonical: cid, name, groupId: null, keyvalues: {}, hostNodes: [] }
  const accepted = await insertPin(pool, caller, pin)
  if (!accepted) throw new Error('a pin without a group and a key was not accepted')
  return { operationId: accepted.operationId, fileId: accepted.record.id }
}
