import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { type Config, loadConfig } from '../config.ts'
import { explainOutage } from '../db/database-errors.ts'
import { requireSessions } from '../db/direct.ts'
import { migrate } from '../db/migrate.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { createPrisma, type PrismaClient } from '../db/prisma.ts'
import { requireSchema } from '../db/schema-state.ts'
import { ConfigError, PostgresStartError } from '../errors.ts'
import { AlreadyRunning, acquireLock } from '../lib/process/process-lock.ts'
import { createLogger, type Logger } from '../log.ts'
import { postgresUrl, startPostgres } from '../standalone/postgres.ts'

export interface Database {
  config: Config
  log: Logger
  pool: Pool
  prisma: PrismaClient
}

/**
 * Runs `work` on Berth's database: the one at DATABASE_URL, or the embedded one, which is started for this call if
 * Berth is not running.
 * @param options.creates whether to create the embedded one if there is none.
 * @throws ConfigError
 */
export async function withDatabase<T>(
  work: (database: Database) => Promise<T>,
  {
    schema = 'required',
    creates = schema === 'any',
  }: { schema?: 'required' | 'any'; creates?: boolean } = {},
): Promise<T> {
  const config = loadConfig()
  const log = createLogger('cli', 'silent')
  if (!config.DATABASE_URL && !creates) await requireEmbedded(config.BERTH_DATA_DIR)
  const server = config.DATABASE_URL ? undefined : await reachEmbedded(config, log)
  try {
    const url = config.DATABASE_URL ?? server?.url ?? ''
    const pool = createPool(url, 2, log, { directUrl: config.DATABASE_DIRECT_URL })
    try {
      await pool.query('SELECT 1').catch(explainOutage)
      await requireSessions(pool)
      if (schema !== 'any') {
        // If the embedded database was not running, nobody else uses it, so migrating it is safe.
        if (server?.own) await migrate(pool)
        await requireSchema(pool)
      }
      return await work({ config, log, pool, prisma: createPrisma(pool) })
    } finally {
      await pool.end()
    }
  } finally {
    await server?.close()
  }
}

/** Otherwise a command in the wrong folder would create another Berth there. @throws ConfigError */
async function requireEmbedded(dataDir: string): Promise<void> {
  if ((await postgresUrl(dataDir)) === null)
    throw new ConfigError(
      `there is no Berth in ${dataDir}: set BERTH_DATA_DIR or DATABASE_URL, or start one first`,
    )
}

/** The embedded server of a running Berth, or our own under the same lock. */
async function reachEmbedded(config: Config, log: Logger) {
  const dataDir = config.BERTH_DATA_DIR
  await mkdir(dataDir, { recursive: true, mode: 0o711 })
  try {
    const lock = await acquireLock(join(dataDir, 'berth.lock'))
    try {
      const postgres = await startPostgres({ dataDir, log })
      const close = async () => {
        await postgres.stop()
        await lock.release()
      }
      return { url: postgres.url, own: true, close }
    } catch (error) {
      await lock.release()
      throw error
    }
  } catch (error) {
    if (error instanceof PostgresStartError) throw new ConfigError(error.message)
    if (!(error instanceof AlreadyRunning)) throw error
    const url = await postgresUrl(dataDir)
    if (!url) throw new ConfigError(`Berth is just starting on ${dataDir}; try again in a moment`)
    return { url, own: false, close: async () => {} }
  }
}
