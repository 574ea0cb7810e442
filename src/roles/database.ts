import type { Config } from '../config.ts'
import { explainOutage } from '../db/database-errors.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { requireSchema } from '../db/schema-state.ts'
import { ConfigError } from '../errors.ts'
import type { Closers } from '../lib/closers.ts'
import type { Logger } from '../log.ts'
import { inspectRedis } from '../operations/redis.ts'

/**
 * Opens PostgreSQL and checks Redis, for the roles that use them.
 * @throws ConfigError if the schema is older or needs a newer version, or if Redis would lose jobs or rejects the
 *   password; DatabaseAwayError if PostgreSQL cannot be reached.
 */
export async function openDatabase(
  config: Config,
  log: Logger,
  parts: Closers,
): Promise<{ databaseUrl: string; pool: Pool }> {
  const databaseUrl = config.DATABASE_URL
  if (!databaseUrl) {
    throw new ConfigError('DATABASE_URL: not set; only `npm start` has its own database')
  }
  const pool = createPool(databaseUrl, config.BERTH_DATABASE_POOL, log)
  parts.add('database', () => pool.end())
  const unknown = await requireSchema(pool).catch(explainOutage)
  if (unknown.length > 0)
    log.warn(
      { migrations: unknown },
      'the schema is newer than this version of Berth, which continues to use it',
    )
  if (config.REDIS_URL) await lookAtRedis(config.REDIS_URL, log)
  return { databaseUrl, pool }
}

/** If Redis is unavailable, Berth waits for it, as at any later time. */
async function lookAtRedis(url: string, log: Logger): Promise<void> {
  try {
    const { appendOnly } = await inspectRedis(url)
    if (!appendOnly) {
      log.warn(
        'Redis has no append-only file: after a crash of Redis, operations continue some seconds later',
      )
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    log.warn({ err: error }, 'Redis is unavailable; operations wait for it')
  }
}
