import type { Response } from 'express'
import type { Pool } from '../../db/pool.ts'
import { findSignature } from '../../db/statements/gateways.ts'
import { canonicalCid } from '../../files/cid.ts'
import type { Gateway } from '../../files/gateways/gateways.ts'
import type { Network } from '../../storage/port.ts'
import type { KeptContent } from './content.ts'

/** Adds the signature of the content, where it has one; below a root it is the root's. */
export async function showSignature(
  pool: Pool,
  { workspaceId }: Gateway,
  network: Network,
  { cid }: KeptContent,
  res: Response,
): Promise<void> {
  const found = await findSignature.first(pool, workspaceId, network, canonicalCid(cid))
  if (found) res.set('Pinata-Signature', found.signature)
}
