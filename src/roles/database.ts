import type { Config } from '../config.ts'
import { explainOutage } from '../db/database-errors.ts'
import { isMigrated } from '../db/migrate.ts'
import { createPool, type Pool } from '../db/pool.ts'
import { ConfigError } from '../errors.ts'
import type { Closers } from '../lib/closers.ts'
import type { Logger } from '../log.ts'
import { inspectRedis } from '../operations/redis.ts'

/**
 * Opens PostgreSQL and looks at Redis, for the roles that use them.
 * @throws ConfigError on an old schema, and for a Redis that would lose jobs or refuses the password;
 *   DatabaseAwayError when PostgreSQL cannot be reached.
 */
export async function openDatabase(
  config: Config,
  log: Logger,
  parts: Closers,
): Promise<{ databaseUrl: string; pool: Pool }> {
  const databaseUrl = config.DATABASE_URL
  if (!databaseUrl) {
    throw new ConfigError('DATABASE_URL: not set; only `npm start` brings a database of its own')
  }
  const pool = createPool(databaseUrl, config.BERTH_DATABASE_POOL, log)
  parts.add('database', () => pool.end())
  if (!(await isMigrated(pool).catch(explainOutage))) {
    throw new ConfigError('DATABASE_URL: the schema is not up to date; run `npx berth migrate`')
  }
  if (config.REDIS_URL) await lookAtRedis(config.REDIS_URL, log)
  return { databaseUrl, pool }
}

/** A Redis that is away is waited for, as at any later time. */
async function lookAtRedis(url: string, log: Logger): Promise<void> {
  try {
    const { appendOnly } = await inspectRedis(url)
    if (!appendOnly) {
      log.warn('Redis has no append-only file: after a crash of Redis, operations go on some seconds later')
    }
  } catch (error) {
    if (error instanceof ConfigError) throw error
    log.warn({ err: error }, 'Redis is away; operations wait for it')
  }
}
