/** A separate migrated database for a test, on the run's server, or on its own server if a file runs by itself. */
import { after } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { createLogger, type Logger } from '../../src/log.ts'
import { createDatabase, DATABASE_SERVER, startDatabaseServer } from './database-server.ts'

export interface TestDatabase {
  url: string
  pool: Pool
  log: Logger
  /** A new workspace on a plan. */
  createWorkspace(plan?: string): Promise<string>
  stop(): Promise<void>
}

/** @param options.isEmpty for a database without tables. */
export async function startDatabase(options: { isEmpty?: boolean } = {}): Promise<TestDatabase> {
  const shared = process.env[DATABASE_SERVER]
  const own = shared ? undefined : await startDatabaseServer()
  const { url, drop } = await createDatabase(shared ?? own?.url ?? '', options)
  const log = createLogger('test', 'silent')
  const pool = createPool(url, 10, log)
  return {
    url,
    pool,
    log,
    async createWorkspace(plan = 'unlimited') {
      const id = uuidv7()
      await pool.query('INSERT INTO workspace (id, name, plan) VALUES ($1, $2, $3)', [id, id, plan])
      return id
    },
    async stop() {
      await pool.end()
      await (own ? own.stop() : drop())
    },
  }
}

/**
 * A database like that of {@link startDatabase}, until the tests of the file or suite are over. In a `before` hook, it
 * would stop at the end of the hook.
 */
export async function useDatabase(options: { isEmpty?: boolean } = {}): Promise<TestDatabase> {
  const database = await startDatabase(options)
  after(() => database.stop())
  return database
}
