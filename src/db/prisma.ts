import { AsyncLocalStorage } from 'node:async_hooks'
import { createRequire } from 'node:module'
import type pg from 'pg'
import type { Prisma, PrismaClient } from './generated/client.ts'
import type { Connection, Pool, Queryable } from './pool.ts'

export type { Prisma, PrismaClient } from './generated/client.ts'

const require = createRequire(import.meta.url)

/**
 * Prisma on the process's own pool, so that both share one connection budget. It is loaded on first use: without it, a
 * role is ready some tenths of a second sooner.
 */
export function createPrisma(pool: Pool): PrismaClient {
  let client: PrismaClient | undefined
  const property = (_: object, name: string | symbol) => {
    client ??= openPrisma(pool)
    const value = Reflect.get(client, name, client)
    return typeof value === 'function' ? value.bind(client) : value
  }
  return new Proxy({}, { get: property }) as PrismaClient
}

function openPrisma(pool: Pool): PrismaClient {
  const { PrismaPg } = require('@prisma/adapter-pg') as typeof import('@prisma/adapter-pg')
  const { PrismaClient } = require('./generated/client.ts') as typeof import('./generated/client.ts')
  return new PrismaClient({
    adapter: new PrismaPg(showingConnections(pool), { disposeExternalPool: false }),
    // The pool's limits apply: Prisma's own would end a transaction that waits its turn behind another. `maxWait` is
    // longer than the pool's wait, whose error tells that the database is not responding.
    transactionOptions: { maxWait: 12_000, timeout: 35_000 },
  })
}

/** A Prisma transaction in which `query` runs hand-written statements on the same connection. */
export type Transaction = Prisma.TransactionClient & Queryable

/** The limit for a transaction that waits for something without a limit of its own; calls to IPFS nodes have theirs. */
const TRANSACTION_MS = 3_600_000

/**
 * Runs `work` in one Prisma transaction and commits when it resolves.
 *
 * Beginning and committing through Prisma costs 0.3 ms more than through the pool, and a statement through a model 0.6
 * ms more than a hand-written one. The end of `pin.add`, 16 in parallel, reaches 0.3 of the speed with all statements
 * through Prisma, and 0.7 with all of them hand-written on its connection. So time-critical statements in transactions
 * are hand-written.
 * @throws what `work` throws, after a rollback.
 */
export function inTransaction<T>(prisma: PrismaClient, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const begun: Begun = {}
  const run = (tx: Prisma.TransactionClient): Promise<T> => {
    const query: Queryable['query'] = async (...statement) => {
      // The connection may belong to another caller by now.
      if (!begun.connection) throw new Error('the transaction has ended')
      return begun.connection.query(...statement)
    }
    // Transactions that begin inside `work` are separate.
    return beginning.run({}, () => work(Object.create(tx, { query: { value: query } })))
  }
  return beginning.run(begun, () => prisma.$transaction(run, { timeout: TRANSACTION_MS }))
}

interface Begun {
  /** Set from the beginning of the transaction to its end. */
  connection?: Connection | undefined
}

/** The transaction that begins in this call, because Prisma does not reveal its connection. */
const beginning = new AsyncLocalStorage<Begun>()

/** The pool that Prisma receives, which records connections. */
function showingConnections(pool: Pool): pg.Pool {
  const connect = async (): Promise<Connection> => {
    const begun = beginning.getStore()
    const connection = await pool.connect()
    const { release } = connection
    connection.release = (broken) => {
      if (begun) begun.connection = undefined
      // Prisma returns a connection that does not respond as if it were healthy.
      release(broken ?? (connection as pg.PoolClient).getTransactionStatus() !== 'I')
    }
    if (begun) begun.connection = connection
    return connection
  }
  return Object.create(pool, { connect: { value: connect }, query: { value: pool.query.bind(pool) } })
}

interface PageOfRows {
  where: { id?: { gt: string } }
  orderBy: { id: 'asc' }
  take: number
}

/** All rows of a table in the order of their ids, one page at a time. @param read finds the rows of a page. */
export async function* eachRow<Row extends { id: string }>(
  read: (page: PageOfRows) => Promise<Row[]>,
  take = 500,
): AsyncGenerator<Row> {
  for (let where: PageOfRows['where'] = {}; ; ) {
    const rows = await read({ where, orderBy: { id: 'asc' }, take })
    yield* rows
    const last = rows.at(-1)
    if (!last || rows.length < take) return
    where = { id: { gt: last.id } }
  }
}
