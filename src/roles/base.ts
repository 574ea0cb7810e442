import { Registry } from 'prom-client'
import type { Config } from '../config.ts'
import type { Base } from '../core.ts'
import { explainOutage } from '../db/database-errors.ts'
import { requireSessions } from '../db/direct.ts'
import { createPool } from '../db/pool.ts'
import { createPrisma } from '../db/prisma.ts'
import { requireSchema } from '../db/schema-state.ts'
import { Ownership } from '../domains/ownership.ts'
import { ConfigError } from '../errors.ts'
import { addPoolMetrics } from '../health/process-metrics.ts'
import { Closers } from '../lib/closers.ts'
import { disksOf } from '../lib/disk.ts'
import { loadEncryption } from '../lib/encryption.ts'
import type { Logger } from '../log.ts'
import { createRedis, inspectRedis } from '../operations/redis.ts'
import { postgresFolder } from '../standalone/postgres.ts'
import { openStorages } from '../storage/open.ts'

/**
 * Opens PostgreSQL, Redis and the IPFS nodes.
 * @throws ConfigError if the schema is older or needs a newer version, if a pooler would lose locks, or if Redis would
 *   lose jobs or rejects the password; DatabaseAwayError if PostgreSQL cannot be reached.
 */
export async function openBase(config: Config, log: Logger, role: 'web' | 'worker'): Promise<Base> {
  const { DATABASE_URL: databaseUrl, REDIS_URL, BERTH_DATA_DIR } = config
  if (!databaseUrl) {
    throw new ConfigError('DATABASE_URL: not set; only `npm start` has its own database')
  }
  const parts = new Closers(log)
  const pool = createPool(databaseUrl, config.BERTH_DATABASE_POOL, log, {
    directUrl: config.DATABASE_DIRECT_URL,
  })
  parts.add('database', () => pool.end())
  const unknown = await requireSchema(pool).catch(explainOutage)
  await requireSessions(pool)
  if (unknown.length > 0)
    log.warn(
      { migrations: unknown },
      'the schema is newer than this version of Berth, which continues to use it',
    )
  if (REDIS_URL) await lookAtRedis(REDIS_URL, log)
  const registry = new Registry()
  addPoolMetrics(registry, pool)
  const storages = await openStorages(config, role, log, parts, { pool, isCached: true })
  const redis = REDIS_URL ? createRedis(REDIS_URL, log) : undefined
  if (redis) parts.add('redis', () => redis.disconnect())
  return {
    config,
    log,
    parts,
    databaseUrl,
    pool,
    prisma: createPrisma(pool),
    storages,
    encryption: loadEncryption(config),
    ownership: new Ownership(config),
    disks: disksOf(config, role, await postgresFolder(BERTH_DATA_DIR, databaseUrl)),
    registry,
    redis,
  }
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
