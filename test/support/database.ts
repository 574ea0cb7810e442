/** A migrated database of a test's own, on an embedded PostgreSQL that the test file starts. */
import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { uuidv7 } from 'uuidv7'
import { migrate } from '../../src/db/migrate.ts'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { startPostgres } from '../../src/embedded/postgres.ts'
import { createLogger, type Logger } from '../../src/log.ts'

export interface TestDatabase {
  url: string
  pool: Pool
  log: Logger
  /** A new workspace on a plan. */
  createWorkspace(plan?: string): Promise<string>
  stop(): Promise<void>
}

export async function startDatabase(): Promise<TestDatabase> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-db-'))
  // As root, the server runs as another user, who must be able to enter.
  await chmod(dir, 0o711)
  const log = createLogger('test', 'silent')
  const postgres = await startPostgres({ dataDir: dir, log })
  const pool = createPool(postgres.url, 10, log)
  await migrate(pool)
  return {
    url: postgres.url,
    pool,
    log,
    async createWorkspace(plan = 'unlimited') {
      const id = uuidv7()
      await pool.query('INSERT INTO workspace (id, name, plan) VALUES ($1, $2, $3)', [id, id, plan])
      return id
    },
    async stop() {
      await pool.end()
      await postgres.stop()
      await rm(dir, { recursive: true, force: true })
    },
  }
}
