import type { EventEmitter } from 'node:events'
import pg from 'pg'
import type { Logger } from '../log.ts'
import { isDatabaseFull } from './database-errors.ts'

/** A statement with its parameters; one with a name is prepared once per connection. */
export interface Statement {
  name?: string
  text: string
  values?: readonly unknown[]
}

export interface Result<Row> {
  rows: Row[]
  /** Rows that were read or changed. */
  rowCount: number | null
}

/** Whatever runs statements: the pool, or a connection in a transaction. */
export interface Queryable {
  /** Runs a statement. Whoever reads its rows names their type; without one they are `unknown`, never `any`. */
  query<Row = unknown>(statement: string | Statement, values?: readonly unknown[]): Promise<Result<Row>>
}

/** A connection of the pool that runs one transaction, see {@link transaction}. */
export interface Connection extends Queryable {
  /** Gives it back to the pool; one that is broken is closed instead. */
  release(broken?: Error | boolean): void
}

/** The connections of one process to PostgreSQL; Prisma uses the same ones. */
export interface Pool extends Queryable {
  connect(): Promise<Connection>
  end(): Promise<void>
  readonly options: { connectionString?: string | undefined }
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
  /** A statement of this process met a full disk of the server's. The code that finds room there sets it to false again. */
  metFullDisk: boolean
}

/**
 * The connection pool of one process. A statement that the server does not finish in 30 s fails, and
 * so does waiting 10 s for a connection: nothing waits for ever on a dead server.
 * @param schema where names without one are looked up, if not in PostgreSQL's usual one.
 */
export function createPool(url: string, max: number, log: Logger, schema = ''): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: 10_000,
    // An idle connection takes 2 to 6 MB of the server's memory, a new one some milliseconds.
    idleTimeoutMillis: 10_000,
    keepAlive: true,
    statement_timeout: 30_000,
    query_timeout: 35_000,
    application_name: 'berth',
    // Short statements over many partial indexes look expensive to the planner, and compiling one takes
    // hundreds of times as long as running it. Prisma's driver gives and takes times without their offset, as UTC.
    options: `-c jit=off -c timezone=UTC${schema && ` -c search_path=${schema}`}`,
  })
  // An idle connection that drops is replaced at the next query; without a listener it would end the process.
  pool.on('error', (error) => log.warn({ err: error }, 'idle database connection lost'))
  // A connection that drops between two queries of a transaction must not end the process either: the next query says so.
  const opened = Object.assign(pool as unknown as Pool, { metFullDisk: false })
  pool.on('connect', (client) => {
    client.on('error', (error) => log.debug({ err: error }, 'database connection'))
    // Every error that the server reports, of Prisma's statements too.
    const { connection } = client as unknown as { connection: EventEmitter }
    connection.on('errorMessage', (error) => {
      if (isDatabaseFull(error)) opened.metFullDisk = true
    })
  })
  return opened
}

/** The one row of a statement that always has one. */
export async function queryOne<Row>(
  db: Queryable,
  statement: string | Statement,
  values?: readonly unknown[],
): Promise<Row> {
  const { rows } = await db.query<Row>(statement, values)
  if (rows.length !== 1) throw new Error(`a statement of one row has ${rows.length}`)
  return rows[0] as Row
}

/**
 * Runs `work`, statements by hand alone, in one transaction and commits when it resolves; `inTransaction` has Prisma as well.
 * @throws what `work` throws, after a rollback.
 */
export async function transaction<T>(pool: Pool, work: (client: Connection) => Promise<T>): Promise<T> {
  const client = await pool.connect()
  let broken: Error | undefined
  try {
    await client.query('BEGIN')
    const result = await work(client)
    await client.query('COMMIT')
    return result
  } catch (error) {
    await client.query('ROLLBACK').catch((lost: Error) => {
      broken = lost
    })
    throw error
  } finally {
    client.release(broken)
  }
}
