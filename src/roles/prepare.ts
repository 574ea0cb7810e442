import { KeyService } from '../accounts/keys.ts'
import { insertWorkspace } from '../accounts/workspaces.ts'
import type { Config } from '../config.ts'
import { explainOutage } from '../db/database-errors.ts'
import { requireSessions } from '../db/direct.ts'
import { migrate } from '../db/migrate.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { loadSigningKey } from '../lib/signing-keys.ts'
import type { Logger } from '../log.ts'

/** The output of `prepare`, as JSON. */
export interface Prepared {
  /** The first API key, if there was no workspace yet. */
  key?: string | undefined
  /** The name of the oldest gateway, if there is one. */
  gateway?: string | undefined
}

/** Brings the schema up to date, and creates the first workspace if there is none. */
export async function prepare(config: Config, log: Logger): Promise<Prepared> {
  const pool = createPool(config.DATABASE_URL ?? '', 2, log, { directUrl: config.DATABASE_DIRECT_URL })
  try {
    await requireSessions(pool).catch(explainOutage)
    await migrate(pool).catch(explainOutage)
    const key = await findOrCreateFirstKey(pool, config)
    const { rows } = await pool.query<{ domain: string }>('SELECT domain FROM gateway ORDER BY id LIMIT 1')
    return { key, gateway: rows[0]?.domain }
  } finally {
    await pool.end()
  }
}

/** The name of the workspace that the first start creates. */
const FIRST_WORKSPACE = 'default'

/**
 * Creates the first workspace, on plan `unlimited`, and a key with all permissions in it. Both are written, or neither:
 * a workspace without a key would look as if its key had been shown.
 * @returns the key's token, or undefined if a workspace already existed.
 */
export async function findOrCreateFirstKey(pool: Pool, config: Config): Promise<string | undefined> {
  const { rowCount } = await pool.query('SELECT FROM workspace LIMIT 1')
  if (rowCount) return undefined
  // Loaded only for the first start: every later start would otherwise load Prisma just to count.
  const { createPrisma } = await import('../db/prisma.ts')
  const prisma = createPrisma(pool)
  const keys = new KeyService(prisma, loadSigningKey(config.JWT_KEY, config.BERTH_DATA_DIR))
  const workspace = { name: FIRST_WORKSPACE, plan: 'unlimited', owner: 'owner' }
  const { token } = await prisma.$transaction(async (tx) => {
    const { id: workspaceId, ownerId: userId } = await insertWorkspace(tx, workspace)
    await tx.user.update({ where: { id: userId }, data: { isAdmin: true } })
    return keys.create({ workspaceId, userId, name: 'first key', scopes: ['admin'] }, tx)
  })
  return token
}
