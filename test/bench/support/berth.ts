/** A role of Berth in a separate process, with its rows in the database. */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { loadConfig } from '../../../src/config.ts'
import { migrate } from '../../../src/db/migrate.ts'
import { createPool, type Pool } from '../../../src/db/pool.ts'
import { createLogger } from '../../../src/log.ts'
import { findOrCreateFirstKey } from '../../../src/roles/prepare.ts'
import { freePort, type Running, run, until } from '../../support/processes.ts'

const MAIN = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

export interface Web {
  url: string
  /** Authorization header of the first workspace, on plan `unlimited`. */
  headers: Record<string, string>
  pool: Pool
  running: Running
}

/** Starts the web role on a database that it prepares. The stack stops it. */
export async function startWeb(
  databaseUrl: string,
  stack: AsyncDisposableStack,
  settings: NodeJS.ProcessEnv = {},
): Promise<Web> {
  const dataDir = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  stack.defer(() => rm(dataDir, { recursive: true, force: true }))
  const port = await freePort()
  const env = {
    ...process.env,
    DATABASE_URL: databaseUrl,
    BERTH_DATA_DIR: dataDir,
    JWT_KEY: randomBytes(32).toString('hex'),
    PORT: String(port),
    ...settings,
  }
  const pool = createPool(databaseUrl, 2, createLogger('bench', 'silent'))
  stack.defer(() => pool.end())
  await migrate(pool)
  const key = await findOrCreateFirstKey(pool, loadConfig(env))

  const running = run(process.execPath, [MAIN, 'web'], { env })
  stack.defer(() => running.end())
  const url = `http://127.0.0.1:${port}`
  await until('the web role answers', async () => (await fetch(`${url}/healthz`)).ok).catch((error) => {
    throw new Error(`${error.message}\n${running.output()}`, { cause: error })
  })
  return { url, headers: { authorization: `Bearer ${key}` }, pool, running }
}
