import { Redis, type RedisOptions } from 'ioredis'
import { ConfigError } from '../errors.ts'
import { parseRedisAddress, REDIS_ADDRESS } from '../lib/redis-address.ts'
import type { Logger } from '../log.ts'

/** A Redis that hangs, or is still loading its data, counts as unavailable after this time. */
const POLL_MS = 5000
/** A Sentinel that hangs is skipped after this time. */
const SENTINEL_MS = 2000
/** A connection without an answer for this long is replaced; a queue's consumer waits 5 s for the next job. */
const SILENT_MS = 10_000

/**
 * ioredis' options for REDIS_URL. A new connection asks the Sentinels for the primary. So each connection must end once
 * its server does not answer, or has become a replica.
 * @returns for a single server its `url`, which only the constructor understands.
 * @throws ConfigError if `address` cannot be parsed.
 */
export function redisOptions(address: string) {
  const parsed = parseRedisAddress(address)
  if (!parsed) throw new ConfigError(`REDIS_URL: ${REDIS_ADDRESS}`)
  return {
    ...parsed,
    ...('sentinels' in parsed && { connectTimeout: SENTINEL_MS, sentinelCommandTimeout: SENTINEL_MS }),
    retryStrategy: (tries: number) => Math.min(tries * 100, 1000),
    socketTimeout: SILENT_MS,
    reconnectOnError: ({ message }: Error) => message.startsWith('READONLY'),
  }
}

function open(address: string, options: Omit<RedisOptions, 'replyMapping'>): Redis {
  const own = redisOptions(address)
  const all = { ...own, ...options }
  return 'url' in own ? new Redis(own.url, all) : new Redis(all)
}

/** The connection for pings and rate limits: a command fails at once while Redis is unavailable. */
export function createRedis(url: string, log: Logger): Redis {
  const redis = open(url, {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: 2000,
  })
  redis.on('error', (error) => log.debug({ err: error }, 'redis connection'))
  return redis
}

/** The errors of Redis or Sentinel for a wrong password; before version 6, `ERR invalid password`. */
const REFUSED = /(^|Last error: )(NOAUTH|WRONGPASS|ERR invalid password)/
/** Sentinel's error if it has no primary with this name. */
const UNKNOWN_PRIMARY = /No such master with that name$/

/**
 * Checks what a queue must be able to rely on.
 * @returns whether Redis writes an append-only file.
 * @throws ConfigError if Redis may evict keys, which would lose jobs at random, if Redis or Sentinel rejects the
 *   password, or if Sentinel does not know the primary. Any other error if Redis does not respond within 5 s.
 */
export async function inspectRedis(url: string): Promise<{ appendOnly: boolean }> {
  const redis = open(url, {
    lazyConnect: true,
    maxRetriesPerRequest: 0,
    retryStrategy: () => null,
    sentinelRetryStrategy: () => null,
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
    if (UNKNOWN_PRIMARY.test(reason.message))
      throw new ConfigError(`REDIS_URL: no Sentinel knows a primary named ${redis.options.name}`)
    const [, ofSentinel] = REFUSED.exec(reason.message) ?? []
    if (ofSentinel === undefined) throw reason
    const who = ofSentinel ? 'Sentinel' : 'Redis'
    throw new ConfigError(`REDIS_URL: ${who} refuses the user or the password: ${reason.message}`)
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
