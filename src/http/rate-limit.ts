/** Requests per minute of one API key, by its workspace's plan: in Redis where there is one, else in memory. */
import type { Response } from 'express'
import type { Redis } from 'ioredis'
import {
  type RateLimiterAbstract,
  RateLimiterMemory,
  RateLimiterRedis,
  RateLimiterRes,
} from 'rate-limiter-flexible'
import type { Principal } from '../accounts/authenticator.ts'
import { ApiError } from '../errors.ts'

const DURATION_S = 60

export class RateLimiter {
  readonly #redis: Redis | undefined
  readonly #limiters = new Map<number, RateLimiterAbstract>()

  constructor(redis: Redis | undefined) {
    this.#redis = redis
  }

  /** Counts one request and sets the RateLimit headers. @throws ApiError 429 above the limit. */
  async consume({ keyId, plan }: Pick<Principal, 'keyId' | 'plan'>, res: Response): Promise<void> {
    const points = plan.requestsPerMinute
    if (points === null) return
    const result = await this.#limiter(points)
      .consume(keyId)
      .catch((refused: unknown) => {
        if (refused instanceof RateLimiterRes) return refused
        throw refused
      })
    const resetSeconds = Math.ceil(result.msBeforeNext / 1000)
    res.set('RateLimit-Limit', String(points))
    res.set('RateLimit-Remaining', String(result.remainingPoints))
    res.set('RateLimit-Reset', String(resetSeconds))
    if (result.consumedPoints > points) {
      throw new ApiError(429, 'rate_limited', `Too many requests: ${points} a minute on plan ${plan.name}`, {
        headers: { 'retry-after': String(resetSeconds) },
      })
    }
  }

  #limiter(points: number): RateLimiterAbstract {
    let limiter = this.#limiters.get(points)
    if (!limiter) {
      const memory = new RateLimiterMemory({ points, duration: DURATION_S })
      limiter = this.#redis
        ? new RateLimiterRedis({
            storeClient: this.#redis,
            keyPrefix: `berth-rate-${points}`,
            points,
            duration: DURATION_S,
            // While Redis is away each process counts for itself.
            insuranceLimiter: memory,
          })
        : memory
      this.#limiters.set(points, limiter)
    }
    return limiter
  }
}
