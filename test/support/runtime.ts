/** The sandboxes of a running Berth, from outside. */
import { loadConfig } from '../../src/config.ts'
import { createPool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { openRuntime } from '../../src/sandboxes/open.ts'
import { readOwner } from '../../src/sandboxes/owner.ts'
import type { SandboxRuntime } from '../../src/sandboxes/port.ts'
import { postgresUrl } from '../../src/standalone/postgres.ts'

/** @param env settings of the Berth, whose database must run. The sandboxes stay usable after it has stopped. */
export async function openRuntimeOf(env: NodeJS.ProcessEnv): Promise<SandboxRuntime> {
  const config = loadConfig(env)
  const log = createLogger('test', 'silent')
  const url = config.DATABASE_URL ?? (await postgresUrl(config.BERTH_DATA_DIR)) ?? ''
  const pool = createPool(url, 1, log)
  try {
    return await openRuntime(config, log, await readOwner(pool))
  } finally {
    await pool.end()
  }
}
