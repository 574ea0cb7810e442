import { Redis } from 'ioredis'
import type { Logger } from '../log.ts'

/** The connection for pings and rate limits: a command fails at once while Redis is away. */
export function createRedis(url: string, log: Logger): Redis {
  const redis = new Redis(url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: 2000,
    retryStrategy: (tries) => Math.min(tries * 100, 1000),
  })
  redis.on('error', (error) => log.debug({ err: error }, 'redis connection'))
  return redis
}

/**
 * Checks what a queue must be able to rely on.
 * @throws when Redis does not answer, or may evict keys, which would lose jobs at random.
 */
export async function checkRedis(url: string, log: Logger): Promise<void> {
  const redis = new Redis(url, { lazyConnect: true, maxRetriesPerRequest: 0, retryStrategy: () => null })
  redis.on('error', () => {})
  try {
    await redis.connect()
    const policy = await readSetting(redis, 'maxmemory-policy')
    if (policy && policy !== 'noeviction') {
      throw new Error(`REDIS_URL: maxmemory-policy is ${policy}; Berth needs noeviction`)
    }
    if ((await readSetting(redis, 'appendonly')) === 'no') {
      log.warn('Redis has no append-only file: after a crash of Redis, operations go on some seconds later')
    }
  } finally {
    redis.disconnect()
  }
}

/** A managed Redis may not let its settings be read: then there is nothing to check. */
async function readSetting(redis: Redis, name: string): Promise<string | undefined> {
  try {
    const [, value] = (await redis.config('GET', name)) as string[]
    return value
  } catch {
    return undefined
  }
}
