/** Searches: how many may run, how long they may take, and what happens when the client leaves. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createPrisma, type Transaction } from '../../../src/db/prisma.ts'
import { Searches } from '../../../src/db/searches.ts'
import type { ApiError } from '../../../src/errors.ts'
import { Bounds } from '../../../src/lib/bounds.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const one = { workspaceId: 'one' }
const { signal } = new AbortController()
const sleep = (seconds: number) => async (db: Transaction) => {
  await db.query(`SELECT pg_sleep(${seconds}) AS searching`)
}

const database = await useDatabase()
const searches = new Searches({
  pool: database.pool,
  prisma: createPrisma(database.pool),
  bounds: new Bounds(),
})

describe('a search', () => {
  const running = async () =>
    (
      await database.pool.query(
        `SELECT FROM pg_stat_activity WHERE query LIKE '%AS searching' AND state = 'active'`,
      )
    ).rowCount
  const hasStatus = (status: number) => (error: ApiError) => error.status === status

  it('a search returns its results, including through Prisma, and its time limit ends with it', async () => {
    const count = await searches.run(one, signal, (db) => db.workspace.count())
    assert.equal(count, 0)
    const { rows } = await database.pool.query<{ statement_timeout: string }>('SHOW statement_timeout')
    assert.equal(rows[0]?.statement_timeout, '30s')
  })
  it('a search that takes too long fails with 503 and Retry-After', async () => {
    await assert.rejects(searches.run(one, signal, sleep(20)), (error: ApiError) => {
      assert.deepEqual(
        [error.status, error.code, error.headers],
        [503, 'search_too_slow', { 'retry-after': '5' }],
      )
      return true
    })
    assert.equal(await running(), 0)
  })
  it('a search through Prisma that takes too long fails with 503', async () => {
    const slow = searches.run(one, signal, (db) => db.$queryRaw`SELECT pg_sleep(20)::text`)
    await assert.rejects(slow, hasStatus(503))
  })
  it('a search is cancelled at once when its client leaves', async () => {
    const client = new AbortController()
    const gone = new Error('gone')
    const search = assert.rejects(searches.run(one, client.signal, sleep(20)), gone)
    await until('it runs', async () => (await running()) === 1)
    const start = performance.now()
    client.abort(gone)
    await search
    assert.ok(performance.now() - start < 1000)
    assert.equal(await running(), 0)
  })
  it('a workspace runs two searches at a time and leaves room for other workspaces', async () => {
    const slow = [1, 2].map(() => assert.rejects(searches.run(one, signal, sleep(20)), hasStatus(503)))
    await until('both run', async () => (await running()) === 2)
    await assert.rejects(searches.run(one, signal, sleep(0)), hasStatus(429))
    await searches.run({ workspaceId: 'other' }, signal, sleep(0))
    await Promise.all(slow)
    await searches.run(one, signal, sleep(0))
  })
})
