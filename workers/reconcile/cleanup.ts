/** Removes expired files and unused engines. `web` removes abandoned uploads (`removeAbandonedUploads`). */
import { withAdvisoryLock } from '../../src/db/advisory-locks.ts'
import type { Pool } from '../../src/db/pool.ts'
import { readExpiredFiles } from '../../src/db/statements/pins.ts'
import { readVersionsInUse } from '../../src/db/statements/worker-agents.ts'
import { removeFile } from '../../src/files/remove.ts'
import type { Logger } from '../../src/log.ts'
import type { AgentWorkerServices } from '../services.ts'

const BATCH = 500

/** Removes expired files, as if their owners had deleted them. Resolves to their number. */
export async function removeExpiredFiles(pool: Pool, signal: AbortSignal): Promise<number> {
  let removed = 0
  for (;;) {
    signal.throwIfAborted()
    const { rows } = await readExpiredFiles.run(pool, BATCH)
    for (const file of rows) if (await removeFile(pool, { ...file, only: 'expired' })) removed++
    if (rows.length < BATCH) return removed
  }
}

/**
 * Marks the needed engine versions as used, and removes versions that no agent has run and no setting has named for the
 * grace period: each is half a gigabyte.
 */
export async function tidyEngines(
  { pool, runtime, config }: Pick<AgentWorkerServices, 'pool' | 'runtime' | 'config'>,
  log: Logger,
  signal: AbortSignal,
): Promise<void> {
  await withAdvisoryLock(pool, 'engines', async () => {
    const { BERTH_ENGINE_VERSIONS, BERTH_ENGINE_GRACE_SECONDS } = config
    const inUse = (await readVersionsInUse.run(pool)).rows.map(({ version }) => version)
    const keep = new Set([...BERTH_ENGINE_VERSIONS, ...inUse])
    const removed = await runtime.tidyEngines({
      keep: [...keep],
      graceMs: BERTH_ENGINE_GRACE_SECONDS * 1000,
      signal,
    })
    if (removed.length > 0) log.info({ removed }, 'removed unused engines')
  })
}
