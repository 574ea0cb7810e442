/**
 * Limits requests per minute for a key and its workspace, by plan: counted in Redis if there is one, otherwise in
 * memory.
 */
import type { Response } from 'express'
import type { Redis } from 'ioredis'
import { ApiError } from '../errors.ts'
import type { Principal } from '../http/principal.ts'
import { WindowCounts } from './window-counts.ts'

const WINDOW_MS = 60_000
/**
 * The plan's limit applies to each key. All keys of a workspace together have this many times as much: several can run
 * in parallel, none uses up what the others need, and more keys do not raise the total.
 */
const OF_WORKSPACE = 4

type Caller = Pick<Principal, 'keyId' | 'workspaceId' | 'plan'>

/** A count in its window, and the time until the window ends. */
type Counted = [count: number, msLeft: number]

/**
 * Counts a request of a key (`KEYS[1]`) and of its workspace (`KEYS[2]`) in one round trip. Requests of a key beyond
 * its own limit (`ARGV[1]`) are rejected, and do not count against the other keys. `ARGV[2]` is the window in
 * milliseconds.
 */
const COUNT = `
local function count(name)
  local n = redis.call('INCR', name)
  if n == 1 then redis.call('PEXPIRE', name, ARGV[2]) end
  return n
end
local ofKey = count(KEYS[1])
local ofWorkspace = 0
if ofKey <= tonumber(ARGV[1]) then
  ofWorkspace = count(KEYS[2])
else
  ofWorkspace = tonumber(redis.call('GET', KEYS[2]) or '0')
end
return { ofKey, redis.call('PTTL', KEYS[1]), ofWorkspace, redis.call('PTTL', KEYS[2]) }`

type CountingRedis = Redis & {
  berthCountRequest(key: string, workspace: string, limit: number, windowMs: number): Promise<number[]>
}

export class RateLimiter {
  readonly #redis: CountingRedis | undefined
  /** The counts without Redis, or while Redis is unavailable: each process counts separately. */
  readonly #memory = new WindowCounts(WINDOW_MS)

  constructor(redis: Redis | undefined) {
    redis?.defineCommand('berthCountRequest', { numberOfKeys: 2, lua: COUNT })
    this.#redis = redis as CountingRedis | undefined
  }

  /**
   * Counts one request and sets the RateLimit headers for the limit that is nearer. @throws ApiError 429 above a limit.
   */
  async consume(caller: Caller, res: Response): Promise<void> {
    const ofKey = caller.plan.requestsPerMinute
    if (ofKey === null) return
    const [key, workspace] = await this.#count(caller, ofKey)
    const limits = [
      { limit: ofKey, whose: '', counted: key },
      { limit: ofKey * OF_WORKSPACE, whose: ' of the workspace', counted: workspace },
    ].map(({ counted: [count, msLeft], ...rest }) => ({
      ...rest,
      remaining: rest.limit - count,
      resetSeconds: Math.max(1, Math.ceil(msLeft / 1000)),
    }))
    const [tightest] = limits.toSorted((a, b) => a.remaining - b.remaining)
    if (!tightest) return
    const { limit, whose, remaining, resetSeconds } = tightest
    res.set('RateLimit-Limit', `${limit}`)
    res.set('RateLimit-Remaining', `${Math.max(0, remaining)}`)
    res.set('RateLimit-Reset', `${resetSeconds}`)
    if (remaining < 0) {
      const message = `Too many requests${whose}: ${limit} a minute on plan ${caller.plan.name}`
      throw new ApiError(429, 'rate_limited', message, { headers: { 'retry-after': `${resetSeconds}` } })
    }
  }

  /** @param limit the key's limit. */
  async #count({ keyId, workspaceId }: Caller, limit: number): Promise<[Counted, Counted]> {
    const key = `berth-rate:{${workspaceId}}:${keyId}`
    const workspace = `berth-rate:{${workspaceId}}`
    const counted = await this.#redis
      ?.berthCountRequest(key, workspace, limit, WINDOW_MS)
      .catch(() => undefined)
    if (counted) {
      const [ofKey = 0, keyMs = 0, ofWorkspace = 0, workspaceMs = 0] = counted
      return [
        [ofKey, keyMs],
        [ofWorkspace, workspaceMs],
      ]
    }
    const ofKey = this.#memory.add(key)
    const ofWorkspace = ofKey.count <= limit ? this.#memory.add(workspace) : this.#memory.read(workspace)
    return [
      [ofKey.count, ofKey.msLeft],
      [ofWorkspace.count, ofWorkspace.msLeft],
    ]
  }
}
