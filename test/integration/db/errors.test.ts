/** PostgreSQL errors mean the same whether pg or Prisma ran the statement. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isContention, isDatabaseDown, isTransient } from '../../../src/db/database-errors.ts'
import { createPool, transaction } from '../../../src/db/pool.ts'
import { createPrisma, inTransaction } from '../../../src/db/prisma.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const database = await useDatabase()
const prisma = createPrisma(database.pool)

describe('a PostgreSQL error from Prisma', () => {
  /** The error of `work` while another session holds a lock on the workspace table. */
  const whileLocked = (work: () => Promise<unknown>, meanwhile: () => Promise<unknown> = async () => {}) =>
    transaction(database.pool, async (client) => {
      await client.query('LOCK TABLE workspace')
      const failed = work().then(
        () => assert.fail('it was not locked'),
        (error: unknown) => error,
      )
      await meanwhile()
      return { failed: await failed }
    })

  it('a PostgreSQL error from Prisma is transient but no outage if another session held a lock', async () => {
    const { failed } = await whileLocked(() =>
      prisma.$transaction(async (tx) => {
        await tx.$executeRaw`SET LOCAL lock_timeout = 100`
        await tx.workspace.count()
      }),
    )
    assert.deepEqual([isContention(failed), isTransient(failed), isDatabaseDown(failed)], [true, true, false])
  })

  it('a PostgreSQL error from Prisma is an outage if the server ended the connection', async () => {
    const { failed } = await whileLocked(
      () => prisma.workspace.count(),
      () =>
        until('the query has waited and was ended', async () => {
          const { rowCount } = await database.pool.query(
            `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
             WHERE datname = current_database() AND wait_event_type = 'Lock'`,
          )
          return rowCount === 1
        }),
    )
    assert.deepEqual([isContention(failed), isTransient(failed), isDatabaseDown(failed)], [false, true, true])
  })

  it('a PostgreSQL error from Prisma is an outage if no connection is available', async () => {
    const pool = createPool('postgres://nobody:nothing@127.0.0.1:1/nowhere', 1, database.log)
    const away = createPrisma(pool)
    for (const work of [
      () => away.workspace.count(),
      () => away.$queryRaw`SELECT 1`,
      () => away.$executeRaw`SELECT 1`,
      () => inTransaction(away, (tx) => tx.query('SELECT 1')),
    ])
      await assert.rejects(work(), (error) => isDatabaseDown(error) && isTransient(error))
    await pool.end()
  })
})
