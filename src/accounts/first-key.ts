import type { Config } from '../config.ts'
import type { Pool } from '../db/pool.ts'
import { createPrisma } from '../db/prisma.ts'
import { KeyService } from './keys.ts'
import { loadSigningKey } from './tokens.ts'
import { insertWorkspace } from './workspaces.ts'

/** The name of the workspace that the first start makes. */
const FIRST_WORKSPACE = 'default'

/**
 * Makes the first workspace, on plan `unlimited`, and a key that may do everything in it.
 * Both or neither: a workspace without a key would pass for one whose key was shown.
 * @returns the key's token, or undefined where a workspace was there already.
 */
export async function findOrCreateFirstKey(pool: Pool, config: Config): Promise<string | undefined> {
  const prisma = createPrisma(pool)
  if ((await prisma.workspace.count()) > 0) return undefined
  const keys = new KeyService(prisma, loadSigningKey(config.JWT_KEY, config.BERTH_DATA_DIR))
  const workspace = { name: FIRST_WORKSPACE, plan: 'unlimited', owner: 'owner' }
  const { token } = await prisma.$transaction(async (tx) => {
    const { id: workspaceId, ownerId: userId } = await insertWorkspace(tx, workspace)
    return keys.create({ workspaceId, userId, name: 'first key', scopes: ['admin'] }, tx)
  })
  return token
}
