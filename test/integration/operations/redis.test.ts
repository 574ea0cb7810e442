import assert from 'node:assert/strict'
import { createServer } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { Redis } from 'ioredis'
import { ConfigError } from '../../../src/errors.ts'
import { createLogger } from '../../../src/log.ts'
import { createRedis, inspectRedis } from '../../../src/operations/redis.ts'
import { until } from '../../support/processes.ts'
import { type Server, startRedis, withoutRedis } from '../../support/servers.ts'

describe('a Redis with a password', { skip: withoutRedis }, () => {
  let server: Server
  let urlWith: (password: string) => string
  before(async () => {
    server = await startRedis()
    urlWith = (password) => server.url.replace('//', `//:${password}@`)
    const redis = new Redis(server.url)
    await redis.config('SET', 'requirepass', 'correct')
    redis.disconnect()
  })
  after(() => server?.stop())

  const refused = (error: unknown) =>
    error instanceof ConfigError && /^REDIS_URL: Redis refuses .*(NOAUTH|WRONGPASS)/.test(error.message)

  it('a missing or wrong password of a Redis is reported as an error in REDIS_URL', async () => {
    await assert.rejects(inspectRedis(server.url), refused)
    await assert.rejects(inspectRedis(urlWith('hunter2')), refused)
    assert.deepEqual(await inspectRedis(urlWith('correct')), { appendOnly: true })
  })

  it('the password of a Redis is not logged', async () => {
    const lines: string[] = []
    const log = createLogger('test', 'debug', { write: (line) => void lines.push(line) })
    const redis = createRedis(urlWith('hunter2'), log)
    await until('it is refused', () => lines.some((line) => line.includes('WRONGPASS')))
    redis.disconnect()
    assert.doesNotMatch(lines.join(''), /hunter2/)
  })
})

it('waiting for a Redis that does not answer ends after some seconds', async () => {
  const hung = createServer(() => {})
  await new Promise<void>((resolve) => hung.listen(0, '127.0.0.1', resolve))
  const { port } = hung.address() as { port: number }
  try {
    const timeout = new Promise((_, reject) => setTimeout(reject, 60_000, new Error('still waiting')).unref())
    await assert.rejects(
      Promise.race([inspectRedis(`redis://127.0.0.1:${port}`), timeout]),
      /does not answer/,
    )
  } finally {
    hung.close()
  }
})
