import { AsyncLocalStorage } from 'node:async_hooks'
import { createRequire } from 'node:module'
import type pg from 'pg'
import type { Prisma, PrismaClient } from './generated/client.ts'
import type { Connection, Pool, Queryable } from './pool.ts'

export type { Prisma, PrismaClient } from './generated/client.ts'

const require = createRequire(import.meta.url)

/**
 * Prisma over the process's own pool, so that both draw on one budget of connections. It is loaded at its first use: a
 * role is ready some tenths of a second sooner without.
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
    // The limits of the pool: Prisma's own would end a transaction that waits its turn behind another. `maxWait` is longer
    // than the pool's, whose error says that it is the database that does not answer.
    transactionOptions: { maxWait: 12_000, timeout: 35_000 },
  })
}

/** A transaction of Prisma's, in which `query` runs statements by hand on the same connection. */
export type Transaction = Prisma.TransactionClient & Queryable

/** The bound of a transaction that waits for something without a bound of its own; calls to IPFS nodes have theirs. */
const TRANSACTION_MS = 3_600_000

/**
 * Runs `work` in one transaction of Prisma's and commits when it resolves.
 *
 * Beginning and committing by Prisma costs 0.3 ms more than by the pool, a statement through its model 0.6 ms more than
 * one by hand: the end of `pin.add`, 16 in parallel, takes 0.3 of the speed with all statements through Prisma, and 0.7
 * with all of them by hand on its connection. So what has to be fast in a transaction is by hand.
 * @throws what `work` throws, after a rollback.
 */
export function inTransaction<T>(prisma: PrismaClient, work: (tx: Transaction) => Promise<T>): Promise<T> {
  const begun: Begun = {}
  const run = (tx: Prisma.TransactionClient): Promise<T> => {
    const query: Queryable['query'] = async (...statement) => {
      // The connection may belong to somebody else by now.
      if (!begun.connection) throw new Error('the transaction has ended')
      return begun.connection.query(...statement)
    }
    // Transactions that begin in `work` are others.
    return beginning.run({}, () => work(Object.create(tx, { query: { value: query } })))
  }
  return beginning.run(begun, () => prisma.$transaction(run, { timeout: TRANSACTION_MS }))
}

interface Begun {
  /** From the beginning of the transaction to its end. */
  connection?: Connection | undefined
}

/** The transaction that begins in this call, as Prisma does not say on which connection. */
const beginning = new AsyncLocalStorage<Begun>()

/** The pool as Prisma gets it. */
function showingConnections(pool: Pool): pg.Pool {
  const connect = async (): Promise<Connection> => {
    const begun = beginning.getStore()
    const connection = await pool.connect()
    const { release } = connection
    connection.release = (broken) => {
      if (begun) begun.connection = undefined
      // Prisma gives back a connection that does not answer as if it were well.
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

/** All rows of a table in the order of their ids, a page at a time. @param read finds the rows of a page. */
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
