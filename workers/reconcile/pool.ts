/** Keeps BERTH_POOL spares ready, and removes those that no longer fit or are too many. */
import { addSpare, removeSpare } from '../../src/agents/spares.ts'
import { withAdvisoryLock } from '../../src/db/advisory-locks.ts'
import { readPoolRoom, readSpares } from '../../src/db/statements/pool.ts'
import { spareSettings } from '../agents/spare.ts'
import type { AgentWorkerServices } from '../services.ts'

/** Each start takes a processor for ten seconds and more. */
const STARTING = 1
/** After a spare that did not start. */
const PAUSE_MS = 60_000

/** Compares the pool with BERTH_POOL once, or does nothing if another process does. */
export async function fillPool(services: AgentWorkerServices): Promise<void> {
  const { pool, prisma, config } = services
  // The lock opens a connection, each second.
  if (config.BERTH_POOL === 0 && (await readSpares.run(pool)).rows.length === 0) return
  await withAdvisoryLock(pool, 'pool', async () => {
    const settings = spareSettings(services)
    const engineVersion = config.BERTH_ENGINE_VERSIONS[0]
    const { rows: spares } = await readSpares.run(pool)
    const fit = spares.filter((spare) => spare.status !== 'not_running' && spare.settings === settings)
    const kept = fit.slice(0, config.BERTH_POOL)
    // An owner may have taken it in the meantime.
    for (const spare of spares) if (!kept.includes(spare)) await removeSpare(prisma, spare)
    const starting = kept.filter(({ status }) => status === 'starting').length
    if (kept.length >= config.BERTH_POOL || starting >= STARTING) return
    const { mayStart } = await readPoolRoom.one(pool, PAUSE_MS)
    if (mayStart) await addSpare(prisma, { engineVersion, settings })
  })
}
