import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { createPrisma } from '../../../src/db/prisma.ts'
import { cancel } from '../../../src/operations/cancel.ts'
import { OPERATION_KINDS } from '../../../src/operations/catalog.ts'
import {
  type Handler,
  type Handlers,
  OperationCanceled,
  OperationFailed,
  RetryLater,
  type Run,
} from '../../../src/operations/handler.ts'
import { Runner } from '../../../src/operations/runner.ts'
import { passAtOnce } from '../../support/clock.ts'
import { useDatabase } from '../../support/database.ts'
import { insertOperation, readOperation } from './rows.ts'

const database = await useDatabase()
const prisma = createPrisma(database.pool)
const workspace = await database.createWorkspace()

describe('runner', () => {
  const runnerOf = (handle: Handler['handle'], failed?: Handler['failed']) =>
    new Runner({
      pool: database.pool,
      prisma,
      leases: database.pool,
      workerId: uuidv7(),
      log: database.log,
      handlers: Object.fromEntries(
        OPERATION_KINDS.map((kind) => [kind, { handle, ...(failed && { failed }) }]),
      ) as unknown as Handlers,
    })
  const succeed = (run: Run) => run.succeed({})
  const throwing = (error: Error) => async () => {
    throw error
  }
  /** Runs until its signal fires, like a retrieval. */
  const untilTold = async ({ signal }: Run): Promise<never> => {
    await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }))
    throw signal.reason
  }

  it('the runner runs an operation to its end', async () => {
    const id = await insertOperation(database.pool, workspace)
    await runnerOf(succeed).run(id)
    assert.equal((await readOperation(database.pool, id)).state, 'succeeded')
  })

  it('the runner ignores operations that are finished, unknown, or claimed by another worker', async () => {
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

  it('the runner retries later after an unexpected error, and fails after the last attempt', async () => {
    const { pool } = database
    const runner = runnerOf(async () => {
      throw new Error('a bug')
    })
    const id = await insertOperation(pool, workspace)
    await runner.run(id)
    const once = await readOperation(pool, id)
    assert.deepEqual([once.state, once.error_count, once.error_code], ['queued', 1, 'internal'])

    const last = await insertOperation(pool, workspace, { error_count: 7 })
    await runner.run(last)
    const failed = await readOperation(pool, last)
    assert.deepEqual([failed.state, failed.error], ['failed', 'Internal error'])
    assert.match(String(failed.error_cause), /a bug/)
  })

  it('the runner does not count an unexpected error during a database outage', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace, { error_count: 7 })
    await runnerOf(async () => {
      throw Object.assign(new Error('the database system is shutting down'), { code: '57P03' })
    }).run(id)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.error_count], ['queued', 7])
  })

  it('the runner defers an operation when its handler says so, with growing delays', async () => {
    const { pool } = database
    for (const [attempts, least, most] of [
      [0, 0, 1200],
      [3, 6000, 9000],
    ] as const) {
      const id = await insertOperation(pool, workspace, { attempts })
      const before = Date.now()
      await runnerOf(throwing(new RetryLater('unavailable', 'the node is away'))).run(id)
      const row = await readOperation(pool, id)
      assert.deepEqual([row.state, row.error_count, row.error_code], ['queued', 0, 'unavailable'])
      const next = Number(row.next_attempt_at)
      assert.ok(next > before + least && next < Date.now() + most, `a wait of ${next - before} ms`)
    }
  })

  it('the runner fails an operation that is deferred beyond the time that its kind allows', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace, {
      kind: 'agent.restart',
      attempts: 7,
      started_at: new Date(Date.now() - 600_001),
    })
    await runnerOf(throwing(new RetryLater('outage', 'Docker is away', { result: { detail: 'away' } }))).run(
      id,
    )
    const { state, error, error_code, error_cause, result } = await readOperation(pool, id)
    assert.deepEqual(
      [state, error, error_code, error_cause, result],
      ['failed', 'Restart failed', 'outage', 'Docker is away', { detail: 'away' }],
    )
  })

  it('the runner fails an operation with the code, the message and the result of its handler', async () => {
    const { pool } = database
    const failure = new OperationFailed('expired', 'nobody has it', {
      publicMessage: 'Not found in time',
      lastLines: ['a line'],
      result: { detail: 'gone' },
    })
    const id = await insertOperation(pool, workspace)
    await runnerOf(throwing(failure)).run(id)
    const { state, error, error_code, error_cause, result } = await readOperation(pool, id)
    assert.deepEqual(
      [state, error, error_code, error_cause, result],
      ['failed', 'Not found in time', 'expired', 'nobody has it\na line', { detail: 'gone' }],
    )
  })

  it('the runner cancels an operation whose handler reports that its subject is gone', async () => {
    const id = await insertOperation(database.pool, workspace)
    await runnerOf(throwing(new OperationCanceled('the file is gone'))).run(id)
    assert.equal((await readOperation(database.pool, id)).state, 'canceled')
  })

  it('the runner rolls back the writes of a handler that fails in its transaction', async () => {
    const { pool } = database
    const other = await insertOperation(pool, workspace)
    const id = await insertOperation(pool, workspace)
    await runnerOf((run) =>
      run.succeed(async (tx) => {
        await tx.operation.update({ where: { id: other }, data: { step: 'written' } })
        throw new OperationFailed('late', 'found out after all')
      }),
    ).run(id)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.error_code], ['failed', 'late'])
    assert.equal((await readOperation(pool, other)).step, null)
  })

  it('the runner commits a handler’s writes about its success together with the end', async () => {
    const { pool } = database
    const other = await insertOperation(pool, workspace)
    const id = await insertOperation(pool, workspace, { kind: 'agent.skills' })
    await runnerOf((run) =>
      (run as Run<'agent.skills'>).succeed(async (tx) => {
        await tx.operation.update({ where: { id: other }, data: { step: 'by the client' } })
        await tx.query(`UPDATE operation SET step = step || ', by hand' WHERE id = $1`, [other])
        assert.equal((await readOperation(pool, id)).state, 'running')
        return { applied: true }
      }),
    ).run(id)
    const { state, result } = await readOperation(pool, id)
    assert.deepEqual([state, result], ['succeeded', { applied: true }])
    assert.equal((await readOperation(pool, other)).step, 'by the client, by hand')
  })

  it('the runner writes nothing about a success if another worker has the lease', async () => {
    const { pool } = database
    const other = await insertOperation(pool, workspace)
    const id = await insertOperation(pool, workspace)
    await runnerOf((run) =>
      run.succeed(async (tx) => {
        await tx.operation.update({ where: { id: other }, data: { step: 'written' } })
        await pool.query('UPDATE operation SET epoch = epoch + 1 WHERE id = $1', [id])
        return {}
      }),
    ).run(id)
    assert.equal((await readOperation(pool, id)).state, 'running')
    assert.equal((await readOperation(pool, other)).step, null)
  })

  for (const [name, error, errorCount] of [
    ['fails', new OperationFailed('expired', 'nobody has it'), 0],
    ['gives up', new Error('a bug'), 7],
  ] as const) {
    it(`the runner writes the consequence for the subject when an operation ${name}, with its end`, async () => {
      const { pool } = database
      const other = await insertOperation(pool, workspace)
      const id = await insertOperation(pool, workspace, { error_count: errorCount })
      const codes: string[] = []
      const runner = runnerOf(throwing(error), async (client, run, failure) => {
        codes.push(failure.code)
        await client.query('UPDATE operation SET step = $2 WHERE id = $1', [other, run.operation.id])
        const { rows } = await client.query<{ state: string }>('SELECT state FROM operation WHERE id = $1', [
          id,
        ])
        assert.equal(rows[0]?.state, 'running')
      })
      await runner.run(id)
      assert.deepEqual(codes, [name === 'fails' ? 'expired' : 'internal'])
      assert.equal((await readOperation(pool, id)).state, 'failed')
      assert.equal((await readOperation(pool, other)).step, id)
    })
  }

  for (const [hindrance, state] of [
    [new RetryLater('unavailable', 'the node is away'), 'queued'],
    [new OperationCanceled('the file was withdrawn'), 'canceled'],
    [new Error('a bug'), 'queued'],
  ] as const) {
    it(`an operation is ${state} if the consequence of its failure cannot be written for ${hindrance.name}`, async () => {
      const { pool } = database
      const id = await insertOperation(pool, workspace)
      const failed = async () => {
        await pool.query('UPDATE operation SET step = $2 WHERE id = $1', [id, 'tried'])
        throw hindrance
      }
      await runnerOf(throwing(new OperationFailed('expired', 'nobody has it')), failed).run(id)
      const row = await readOperation(pool, id)
      assert.deepEqual([row.state, row.step], [state, 'tried'])
    })
  }

  for (const [name, failed] of [
    ['which has nothing more to write', undefined],
    ['which writes what it means', async () => {}],
  ] as const) {
    it(`the runner counts a failure that PostgreSQL cannot store as unexpected, of a handler ${name}`, async () => {
      const { pool } = database
      const runner = runnerOf(throwing(new OperationFailed('a\0b', 'said by an agent')), failed)
      const ends = []
      for (const error_count of [0, 7]) {
        const id = await insertOperation(pool, workspace, { error_count })
        await runner.run(id)
        const row = await readOperation(pool, id)
        ends.push([row.state, row.error_code])
      }
      assert.deepEqual(ends, [
        ['queued', 'internal'],
        ['failed', 'internal'],
      ])
    })
  }

  it('the runner ends a run that takes longer than its kind allows', async (t) => {
    const { pool } = database
    const id = await insertOperation(pool, workspace, { kind: 'agent.push' })
    passAtOnce(t, 600_000)
    await runnerOf(untilTold).run(id)
    const { state, error, error_code, error_cause } = await readOperation(pool, id)
    assert.deepEqual(
      [state, error, error_code, error_cause],
      ['failed', 'Push was not taken over', 'timeout', 'it took more than 10 minutes'],
    )
  })

  it('the runner leaves operations of unknown kinds to other workers', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace, { kind: 'pin.later' })
    await runnerOf(() => assert.fail('must not run')).run(id)
    const { state, error_count, lease_until } = await readOperation(pool, id)
    assert.deepEqual([state, error_count], ['running', 0])
    assert.ok(Number(lease_until) < Date.now() + 3500)
  })

  it('the runner counts an input that is invalid for its kind as an unexpected error', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace, { kind: 'content.release', input: { network: 'none' } })
    await runnerOf(() => assert.fail('must not run')).run(id)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.error_count], ['queued', 1])
  })

  it('the runner does not count an unavailable lock as an unexpected error', async () => {
    const { pool } = database
    const runner = runnerOf(async () => {
      throw Object.assign(new Error('canceling statement due to lock timeout'), { code: '55P03' })
    })
    const id = await insertOperation(pool, workspace, { error_count: 7 })
    await runner.run(id)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.error_count], ['queued', 7])
  })

  it('the runner ends a run that the client cancels', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace)
    const run = runnerOf(untilTold).run(id)
    await cancel(pool, { workspaceId: workspace, id })
    await run
    assert.equal((await readOperation(pool, id)).state, 'canceled')
  })

  it('the runner releases its operations when the worker shuts down', async () => {
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

  it('the runner returns a job that arrives while the worker shuts down', async () => {
    const { pool } = database
    const id = await insertOperation(pool, workspace, { dispatched_at: new Date(), dispatches: 1 })
    const runner = runnerOf(() => assert.fail('must not run'))
    runner.shutdown()
    await runner.run(id)
    const row = await readOperation(pool, id)
    assert.deepEqual([row.state, row.attempts, row.dispatched_at], ['queued', 0, null])
  })

  it('the runner stops a run whose lease went to another worker, and writes nothing for it', async () => {
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
