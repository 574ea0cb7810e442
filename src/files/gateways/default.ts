import type { Prisma } from '../../db/prisma.ts'
import { domainFault } from './domain.ts'

/** Shorter than a label may be: long enough for a name, and looks like one. */
const MAX_NAME = 50

/**
 * The gateway that every workspace has from its creation, named after it where that makes a name that is free.
 * The migration 0004 does the same for workspaces that were there before.
 * @param tx the transaction that creates the workspace.
 */
export async function createDefaultGateway(
  tx: Prisma.TransactionClient,
  workspace: { id: string; name: string },
): Promise<void> {
  const name = workspace.name.toLowerCase().replace(/[^a-z0-9]+/g, '-')
  const named = name.slice(0, MAX_NAME).replace(/^-|-$/g, '')
  const numbered = `gateway-${workspace.id.slice(-12)}`
  for (const domain of [named, numbered]) {
    if (domainFault(domain)) continue
    // A name that is taken is skipped: an error would end the transaction.
    const { count } = await tx.gateway.createMany({
      data: { workspaceId: workspace.id, domain },
      skipDuplicates: true,
    })
    if (count === 1) return
  }
  throw new Error(`no name is free for the gateway of workspace ${workspace.id}`)
}
