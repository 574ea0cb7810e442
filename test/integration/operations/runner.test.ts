import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { OPERATION_KINDS } from '../../../src/operations/catalog.ts'
import { type Handler, type Handlers, type Run, Runner } from '../../../src/operations/runner.ts'
import { requestCancel } from '../../../src/operations/store.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { insertOperation, readOperation } from './rows.ts'

describe('runner', () => {
  let database: TestDatabase
  let workspace: string
  before(async () => {
    database = await startDatabase()
    workspace = await database.createWorkspace()
  })
  after(() => database.stop())

  const runnerOf = (handle: Handler['handle'], giveUp?: Handler['giveUp']) =>
    new Runner({
      pool: database.pool,
      leases: database.pool,
      workerId: uuidv7(),
      log: database.log,
      handlers: Object.fromEntries(
        OPERATION_KINDS.map((kind) => [kind, kind === 'pin.add' ? { handle, giveUp } : { handle }]),
      ) as unknown as Handlers,
    })
  const succeed = (run: Run) => run.end(database.pool, { state: 'succeeded' })
  /** Runs until its signal fires, as a retrieval does. */
  const untilTold = async ({ signal }: Run) => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    signal.throwIfAborted()
  }

  it('runs an operation to its end', async () => {
    const id = await insertOperation(database.pool, workspace)
    await runnerOf(succeed).run(id)
    assert.equal((await readOperation(database.pool, id)).state, 'succeeded')
  })

  it('leaves alone what is finished, unknown, or claimed by another', async () => {
    const { pool } = database
    const finished = await insertOperation(pool, workspace, { state: 'failed' })
    const taken = await insertOperation(pool, workspace, {
      state: 'running',
      lease_until: new Date(Date.now() + 60_000),
    })
    const runner = runnerOf(() => assert.fail('must not run'))
    for (const id of [finished, taken, uuidv7()]) await runner.run(id)
    assert.equal((await readOperation(pool, finished)).state, 'failed')
  })

  it('tries again later after an unforeseen error, and fails after the last of them', async () => {
    const { pool } = database
    const runner = runnerOf(async () => {
      throw new Error('a bug')
    })
    const id = await insertOperation(pool, workspace)
    await runner.run(id)
    const once = await readOperation(pool, id)
    assert.deepEqual([once.state, once.faults, once.error_code], ['queued', 1, 'internal'])

    const last = await insertOperation(pool, workspace, { faults: 7 })
    await runner.run(last)
    const failed = await readOperation(pool, last)
    assert.deepEqual([failed.state, failed.error], ['failed', 'Internal error'])
    assert.match(String(failed.error_cause), /a bug/)
  })

  it('does not count it as a fault when the database was away', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace, { faults: 7 })
    await runnerOf(async () => {
      throw Object.assign(new Error('the database system is shutting down'), { code: '57P03' })
    }).run(id)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.faults], ['queued', 7])
  })

  it('lets the handler end what the operation was about when it gives up', async () => {
    const { pool } = database
    const given: string[] = []
    const runner = runnerOf(
      async () => {
        throw new Error('a bug')
      },
      async (run, ending) => {
        given.push(ending.state)
        await run.end(pool, ending)
      },
    )
    const id = await insertOperation(pool, workspace, { faults: 7 })
    await runner.run(id)
    assert.deepEqual(given, ['failed'])
    assert.equal((await readOperation(pool, id)).state, 'failed')
  })

  it('takes a lock that is not to be had for no fault', async () => {
    const { pool } = database
    const runner = runnerOf(async () => {
      throw Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })
    })
    const id = await insertOperation(pool, workspace, { faults: 7 })
    await runner.run(id)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.faults], ['queued', 7])
  })

  it('ends a run that the client cancels', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace)
    const run = runnerOf(untilTold).run(id)
    await requestCancel(pool, workspace, id)
    await run
    assert.equal((await readOperation(pool, id)).state, 'canceled')
  })

  it('gives back what it runs when the worker shuts down', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace)
    const started = Promise.withResolvers<void>()
    const runner = runnerOf((run) => {
      started.resolve()
      return untilTold(run)
    })
    const run = runner.run(id)
    await started.promise
    runner.shutdown()
    await run
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.attempts], ['queued', 0])
  })

  it('sends back the job that arrives while the worker shuts down', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace, { handed_over_at: new Date(), handovers: 1 })
    const runner = runnerOf(() => assert.fail('must not run'))
    runner.shutdown()
    await runner.run(id)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.attempts, row.handed_over_at], ['queued', 0, null])
  })

  it('stops a run whose lease went to another worker, and writes nothing for it', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace)
    const started = Promise.withResolvers<void>()
    const run = runnerOf((run) => {
      started.resolve()
      return untilTold(run)
    }).run(id)
    await started.promise
    await pool.query(`UPDATE operation SET epoch = epoch + 1, worker = $2 WHERE id = $1`, [id, uuidv7()])
    await run
    assert.equal((await readOperation(pool, id)).state, 'running')
  })
})
