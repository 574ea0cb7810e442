/** Pins as the Pinning Service API makes, replaces and removes them. */
import type { Principal } from '../../accounts/authenticator.ts'
import { type Pool, transaction } from '../../db/pool.ts'
import { notFound } from '../../errors.ts'
import { insertPin, type NewPin } from '../pins/service.ts'
import { removeFile } from '../remove.ts'

const NETWORK = 'public'
const missing = () => notFound('There is no such pin request')

/**
 * Puts a new pin in the place of another, in one transaction: nobody sees both or neither. What the old one
 * kept is released after the new one's retrieval has ended.
 * @returns the new pin's id.
 * @throws ApiError 404 for a request that is not there.
 */
export async function replacePin(pool: Pool, caller: Principal, id: string, pin: NewPin): Promise<string> {
  const { workspaceId } = caller
  return transaction(pool, async (client) => {
    const accepted = await insertPin(client, caller, pin)
    if (!accepted) throw new Error('A pin without a group and without an idempotency key was refused')
    const successor = accepted.record.id
    const operation = await removeFile(client, { workspaceId, network: NETWORK, id, only: 'any', successor })
    if (!operation) throw missing()
    return successor
  })
}

/** Removes a pin, whatever its status. @throws ApiError 404 for a request that is not there. */
export async function removePin(pool: Pool, workspaceId: string, id: string): Promise<void> {
  if (!(await removeFile(pool, { workspaceId, network: NETWORK, id, only: 'any' }))) throw missing()
}
