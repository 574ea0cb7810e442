/** Requests per minute of keys and workspaces, in memory and in a real Redis. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import type { Response } from 'express'
import type { Redis } from 'ioredis'
import type { Plan } from '../../../src/db/statements/plan.ts'
import { ApiError } from '../../../src/errors.ts'
import { RateLimiter } from '../../../src/http/rate-limit.ts'
import { createLogger } from '../../../src/log.ts'
import { createRedis } from '../../../src/operations/redis.ts'
import { until } from '../../support/processes.ts'
import { type Server, startRedis, withoutRedis } from '../../support/servers.ts'

const log = createLogger('test', 'silent')
const plan = { name: 'free', requestsPerMinute: 10 } as Plan

/** The remainder that the response reports and its limit, or the reason for refusing the request. */
async function ask(limiter: RateLimiter, keyId: string, workspaceId = 'ours'): Promise<string> {
  const headers = new Map<string, string>()
  const res = { set: (name: string, value: string) => headers.set(name, value) } as unknown as Response
  try {
    await limiter.consume({ keyId, workspaceId, plan }, res)
  } catch (error) {
    assert.ok(error instanceof ApiError)
    assert.equal(error.status, 429)
    assert.ok(Number(error.headers['retry-after']) >= 1 && Number(error.headers['retry-after']) <= 60)
    assert.equal(headers.get('RateLimit-Remaining'), '0')
    return error.message
  }
  return `${headers.get('RateLimit-Remaining')} of ${headers.get('RateLimit-Limit')}`
}

async function askOften(limiter: RateLimiter, count: number, ...who: [keyId: string, workspaceId?: string]) {
  let last = ''
  for (let i = 0; i < count; i++) last = await ask(limiter, ...who)
  return last
}

const OF_KEY = 'Too many requests: 10 a minute on plan free'
const OF_WORKSPACE = 'Too many requests of the workspace: 40 a minute on plan free'

for (const kind of ['memory', 'Redis'] as const)
  describe(`rate limits in ${kind}`, { skip: kind === 'Redis' && withoutRedis }, () => {
    let server: Server | undefined
    let redis: Redis | undefined
    before(async () => {
      if (kind === 'memory') return
      server = await startRedis()
      redis = createRedis(server.url, log)
      // A Redis that is blocked for 2 s on a busy machine would count as away, and the process would apply its own
      // limits.
      redis.options.commandTimeout = 60_000
      await until('Redis is there', () => redis?.status === 'ready')
    })
    after(async () => {
      redis?.disconnect()
      await server?.stop()
    })

    it(`rate limits in ${kind} apply to a key, and to its workspace however many keys it creates`, async () => {
      const limiter = new RateLimiter(redis)
      assert.equal(await ask(limiter, 'a'), '9 of 10')
      assert.equal(await askOften(limiter, 9, 'a'), '0 of 10')
      assert.equal(await ask(limiter, 'a'), OF_KEY)
      // Refused requests use none of the other keys' quota.
      assert.equal(await askOften(limiter, 100, 'a'), OF_KEY)
      assert.equal(await askOften(limiter, 10, 'b'), '0 of 10')
      assert.equal(await askOften(limiter, 10, 'c'), '0 of 10')
      // The headers report the limit that is closer.
      assert.equal(await askOften(limiter, 5, 'd'), '5 of 10')
      assert.equal(await ask(limiter, 'e'), '4 of 40')
      assert.equal(await askOften(limiter, 4, 'f'), '0 of 40')
      assert.equal(await ask(limiter, 'g'), OF_WORKSPACE)
      assert.equal(await ask(limiter, 'h', 'theirs'), '9 of 10')
    })

    it(`rate limits in ${kind} do not apply if the plan has none`, async () => {
      const limiter = new RateLimiter(redis)
      const unlimited = { keyId: 'u', workspaceId: 'u', plan: { ...plan, requestsPerMinute: null } }
      const res = { set: () => assert.fail('there is no limit to report') } as unknown as Response
      for (let i = 0; i < 50; i++) await limiter.consume(unlimited, res)
    })

    if (kind === 'Redis') {
      it(`rate limits in ${kind} are shared by all processes, with one command per request`, async () => {
        const commands = async () => {
          const stats = (await redis?.info('commandstats')) ?? ''
          const counts = stats.matchAll(/cmdstat_eval(?:sha)?:calls=(\d+)/g)
          return [...counts].reduce((sum, [, calls]) => sum + Number(calls), 0)
        }
        const [one, other] = [new RateLimiter(redis), new RateLimiter(redis)]
        const start = await commands()
        assert.equal(await ask(one, 'a', 'shared'), '9 of 10')
        assert.equal(await ask(other, 'a', 'shared'), '8 of 10')
        assert.equal((await commands()) - start, 2)
      })
      it(`rate limits in ${kind} end with their window`, async () => {
        for (const key of (await redis?.keys('berth-rate*')) ?? []) {
          const ms = (await redis?.pttl(key)) ?? 0
          assert.ok(ms > 0 && ms <= 60_000, `${key} ${ms}`)
        }
      })
      it(`rate limits in ${kind} fall back to the process while Redis is away`, async () => {
        const limiter = new RateLimiter(redis)
        await server?.kill()
        await until('it is away', async () => redis?.status !== 'ready')
        assert.equal(await askOften(limiter, 10, 'a', 'away'), '0 of 10')
        assert.equal(await ask(limiter, 'a', 'away'), OF_KEY)
      })
    }
  })
