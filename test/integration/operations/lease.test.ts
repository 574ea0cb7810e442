import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { claim, end, LeaseLost, release, renew, report } from '../../../src/operations/lease.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { insertOperation, readOperation } from './rows.ts'

describe('lease', () => {
  let database: TestDatabase
  let workspace: string
  const [first, second] = [uuidv7(), uuidv7()]
  before(async () => {
    database = await startDatabase()
    workspace = await database.createWorkspace()
  })
  after(() => database.stop())

  const expire = (id: string) =>
    database.pool.query(`UPDATE operation SET lease_until = now() - interval '1 ms' WHERE id = $1`, [id])
  const claimed = async (id: string, worker = first) => {
    const operation = await claim(database.pool, id, worker)
    assert.ok(operation)
    return operation
  }

  it('a lease goes to one of many workers that ask at once', async () => {
    const id = await insertOperation(database.pool, workspace)
    const claims = await Promise.all(Array.from({ length: 8 }, () => claim(database.pool, id, uuidv7())))
    assert.equal(claims.filter(Boolean).length, 1)
  })

  it('a lease is not given before the operation is due', async () => {
    const id = await insertOperation(database.pool, workspace, {
      next_attempt_at: new Date(Date.now() + 60_000),
    })
    assert.equal(await claim(database.pool, id, first), undefined)
  })

  it('an expired lease passes on, and fences every write of its former worker', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace)
    const old = await claimed(id)
    await expire(id)
    const current = await claimed(id, second)
    assert.equal(current.epoch, old.epoch + 1)

    await assert.rejects(renew(pool, old), LeaseLost)
    await assert.rejects(report(pool, old, 'step', null), LeaseLost)
    await assert.rejects(end(pool, old, { state: 'succeeded' }), LeaseLost)
    await release(pool, old)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.worker, row.step], ['running', second, null])

    await end(pool, current, { state: 'succeeded' })
    assert.equal((await readOperation(pool, id)).state, 'succeeded')
  })

  it('a lease waits for the older operation with the same concurrency key', async () => {
    const { pool } = database
    const concurrency_key = uuidv7()
    const older = await insertOperation(pool, workspace, { concurrency_key })
    const younger = await insertOperation(pool, workspace, { concurrency_key })
    assert.equal(await claim(pool, younger, first), undefined)
    const running = await claimed(older)
    assert.equal(await claim(pool, younger, first), undefined)
    await end(pool, running, { state: 'succeeded' })
    await claimed(younger)
  })

  it('a released lease does not count as an attempt', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace)
    await release(pool, await claimed(id))
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.attempts, row.epoch], ['queued', 0, 1])
  })

  it('a lease ends with a later attempt and its cause, without a final error', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace)
    await end(pool, await claimed(id), {
      state: 'queued',
      delayMs: 60_000,
      code: 'stalled',
      cause: 'no block',
    })
    const row = await readOperation(pool, id)
    assert.deepEqual(
      [row.state, row.error, row.error_code, row.finished_at],
      ['queued', null, 'stalled', null],
    )
    assert.ok((row.next_attempt_at as Date).getTime() > Date.now() + 50_000)
  })

  it('a lease that would end in a retry ends the operation if the client has cancelled', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace)
    const running = await claimed(id)
    await pool.query('UPDATE operation SET cancel_requested = true WHERE id = $1', [id])
    assert.equal(await renew(pool, running), true)
    await end(pool, running, { state: 'queued', delayMs: 0, code: 'stalled', cause: 'no block' })
    const row = await readOperation(pool, id)
    assert.equal(row.state, 'canceled')
    assert.ok(row.finished_at)
  })
})
