/** Errors of PostgreSQL mean the same whether a statement was pg's or Prisma's. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { isDatabaseDown, isHeldUp, isTransient } from '../../../src/db/database-errors.ts'
import { createPool, transaction } from '../../../src/db/pool.ts'
import { createPrisma, inTransaction, type PrismaClient } from '../../../src/db/prisma.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

describe("an error of PostgreSQL behind Prisma's", () => {
  let database: TestDatabase
  let prisma: PrismaClient
  before(async () => {
    database = await startDatabase()
    prisma = createPrisma(database.pool)
  })
  after(() => database?.stop())

  /** The error of `work` while another session has the table of workspaces. */
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

  it("an error of PostgreSQL behind Prisma's is transient, and no outage, where others held the query up", async () => {
    const { failed } = await whileLocked(() =>
      prisma.$transaction(async (tx) => {
        await tx.$executeRaw`SET LOCAL lock_timeout = 100`
        await tx.workspace.count()
      }),
    )
    assert.deepEqual([isHeldUp(failed), isTransient(failed), isDatabaseDown(failed)], [true, true, false])
  })

  it("an error of PostgreSQL behind Prisma's is an outage where the server ended the connection", async () => {
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
    assert.deepEqual([isHeldUp(failed), isTransient(failed), isDatabaseDown(failed)], [false, true, true])
  })

  it("an error of PostgreSQL behind Prisma's is an outage where no connection is to be had, whatever the statement", async () => {
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
