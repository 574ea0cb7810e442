import type { EventEmitter } from 'node:events'
import pg from 'pg'
import type { Logger } from '../log.ts'
import { isDatabaseFull } from './database-errors.ts'

/** A statement with its parameters; a named statement is prepared once per connection. */
export interface Statement {
  name?: string
  text: string
  values?: readonly unknown[]
}

export interface Result<Row> {
  rows: Row[]
  /** Number of rows read or changed. */
  rowCount: number | null
}

/** Anything that runs statements: the pool, or a connection in a transaction. */
export interface Queryable {
  /** Runs a statement. Callers name the row type; without it, rows are `unknown`, never `any`. */
  query<Row = unknown>(statement: string | Statement, values?: readonly unknown[]): Promise<Result<Row>>
}

/** A connection of the pool that runs one transaction; see {@link transaction}. */
export interface Connection extends Queryable {
  /** Returns it to the pool; a broken connection is closed instead. */
  release(broken?: Error | boolean): void
}

/** The process's connections to PostgreSQL, which Prisma uses too. */
export interface Pool extends Queryable {
  connect(): Promise<Connection>
  end(): Promise<void>
  /** The database without a pooler, for sessions: a lock, LISTEN or SET lasts longer than a transaction. */
  readonly directUrl: string
  readonly options: { connectionString?: string | undefined }
  readonly totalCount: number
  readonly idleCount: number
  readonly waitingCount: number
  /**
   * Set when a statement of this process met a full disk on the server. Code that finds room there resets it to false.
   */
  metFullDisk: boolean
}

/**
 * The connection pool of one process. A statement fails if the server does not finish it in 30 s, and so does waiting
 * 10 s for a connection: nothing waits forever for a dead server.
 * @param options.schema the schema for unqualified names, if not PostgreSQL's default.
 * @param options.directUrl the same database without a pooler, if `url` leads through one.
 * @param options.name of the connections, as shown by PostgreSQL.
 */
export function createPool(
  url: string,
  max: number,
  log: Logger,
  {
    schema,
    directUrl = url,
    name = 'berth',
  }: { schema?: string; directUrl?: string | undefined; name?: string } = {},
): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: 10_000,
    // An idle connection takes 2 to 6 MB of the server's memory; opening a connection takes some milliseconds.
    idleTimeoutMillis: 10_000,
    keepAlive: true,
    statement_timeout: 30_000,
    query_timeout: 35_000,
    application_name: name,
    // The planner overestimates short statements over many partial indexes, and compiling one takes hundreds of times
    // as long as running it. Prisma's driver reads and writes times without their offset, as UTC.
    options: `-c jit=off -c timezone=UTC${schema ? ` -c search_path=${schema}` : ''}`,
  })
  // An idle connection that drops is replaced at the next query; without a listener it would end the process.
  pool.on('error', (error) => log.warn({ err: error }, 'idle database connection lost'))
  // A connection that drops between two queries of a transaction must not end the process either: the next query fails.
  const opened = Object.assign(pool as unknown as Pool, { directUrl, metFullDisk: false })
  pool.on('connect', (client) => {
    client.on('error', (error) => log.debug({ err: error }, 'database connection'))
    // Sees every error that the server reports, including those of Prisma's statements.
    const { connection } = client as unknown as { connection: EventEmitter }
    connection.on('errorMessage', (error) => {
      if (isDatabaseFull(error)) opened.metFullDisk = true
    })
  })
  return opened
}

/** The only row of a statement that always returns one row. */
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
 * Runs `work`, with hand-written statements only, in one transaction and commits when it resolves; `inTransaction` also
 * offers Prisma.
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
