import pg from 'pg'
import type { Logger } from '../log.ts'

export type Pool = pg.Pool
export type Queryable = Pick<pg.Pool, 'query'>

/**
 * The connection pool of one process. A statement that the server does not finish in 30 s fails, and
 * so does waiting 10 s for a connection: nothing waits for ever on a dead server.
 */
export function createPool(url: string, max: number, log: Logger): Pool {
  const pool = new pg.Pool({
    connectionString: url,
    max,
    connectionTimeoutMillis: 10_000,
    idleTimeoutMillis: 30_000,
    keepAlive: true,
    statement_timeout: 30_000,
    query_timeout: 35_000,
    application_name: 'berth',
    // Short statements over many partial indexes look expensive to the planner, and compiling one takes
    // hundreds of times as long as running it.
    options: '-c jit=off',
  })
  // An idle connection that drops is replaced at the next query; without a listener it would end the process.
  pool.on('error', (error) => log.warn({ err: error }, 'idle database connection lost'))
  // So does one that drops between two queries of a transaction: there it is the next query that says so.
  pool.on('connect', (client) =>
    client.on('error', (error) => log.debug({ err: error }, 'database connection')),
  )
  return pool
}

/**
 * Runs `work` in one transaction and commits when it resolves.
 * @throws what `work` throws, after a rollback.
 */
export async function transaction<T>(pool: Pool, work: (client: pg.PoolClient) => Promise<T>): Promise<T> {
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
