import { Redis } from 'ioredis'
import { ConfigError } from '../errors.ts'
import type { Logger } from '../log.ts'

/** A Redis that hangs, or is still loading its data, counts as unavailable after this time. */
const POLL_MS = 5000

/** The connection for pings and rate limits: a command fails at once while Redis is unavailable. */
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

/** Redis's errors for a wrong password; before version 6, `ERR invalid password`. */
const REFUSED = /^(NOAUTH|WRONGPASS|ERR invalid password)/

/**
 * Checks what a queue must be able to rely on.
 * @returns whether Redis writes an append-only file.
 * @throws ConfigError if Redis may evict keys, which would lose jobs at random, or if it rejects the password; any
 *   other error if it does not respond within 5 s.
 */
export async function inspectRedis(url: string): Promise<{ appendOnly: boolean }> {
  const redis = new Redis(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    disconnectTimeout: 100,
  })
  let cause: Error | undefined
  redis.on('error', (error) => {
    cause = error
  })
  const timer = setTimeout(() => {
    cause = new Error('Redis does not answer')
    redis.disconnect()
  }, POLL_MS)
  try {
    await redis.connect()
    const policy = await readSetting(redis, 'maxmemory-policy')
    if (policy && policy !== 'noeviction') {
      throw new ConfigError(`REDIS_URL: maxmemory-policy is ${policy}; Berth needs noeviction`)
    }
    return { appendOnly: (await readSetting(redis, 'appendonly')) !== 'no' }
  } catch (error) {
    // The client only reports that the connection is closed; the preceding event has the reason.
    const reason = error instanceof ConfigError ? error : (cause ?? (error as Error))
    if (!REFUSED.test(reason.message)) throw reason
    throw new ConfigError(`REDIS_URL: Redis refuses the user or the password: ${reason.message}`)
  } finally {
    clearTimeout(timer)
    redis.disconnect()
  }
}

/** A managed Redis may not allow reading its settings: then there is nothing to check. */
async function readSetting(redis: Redis, name: string): Promise<string | undefined> {
  try {
    const [, value] = (await redis.config('GET', name)) as string[]
    return value
  } catch (error) {
    if ((error as Error).name !== 'ReplyError') throw error
    return undefined
  }
}
