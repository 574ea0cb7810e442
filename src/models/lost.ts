/**
 * Charges what killed agent proxies may have spent. Until then it counts against budgets, as reserved by leases that have
 * ended. If a proxy reports such a lease later, `reports.ts` takes the charge back.
 */
import { lock } from '../db/advisory-locks.ts'
import { type Pool, transaction } from '../db/pool.ts'
import { findLostLeases, lockModelLeases, updateModelLeases } from '../db/statements/models.ts'
import { addSpending, hasOpen, lostRecord, noteReached } from './reports.ts'

/** How long after its end a lease counts as lost. A proxy that restarts reports what the killed one left. */
const LOST_AFTER_MS = 60_000
const BATCH = 500

/** Settles all leases that are lost. A part of a lease that was not in flight was never spent. */
export async function chargeLost(pool: Pool, signal: AbortSignal, afterMs = LOST_AFTER_MS): Promise<void> {
  for (;;) {
    signal.throwIfAborted()
    const { rows } = await findLostLeases.run(pool, afterMs / 1000, BATCH)
    if (rows.length > 0) await charge(pool, rows)
    if (rows.length < BATCH) return
  }
}

function charge(pool: Pool, found: readonly { id: string; workspaceId: string }[]): Promise<void> {
  const workspaces = [...new Set(found.map(({ workspaceId }) => workspaceId))].sort()
  return transaction(pool, async (tx) => {
    for (const id of workspaces) await lock(tx, 'modelBudgets', id)
    const ids = found.map(({ id }) => id)
    const leases = (await lockModelLeases.run(tx, ids)).rows.filter(
      ({ state, isLive }) => state !== 'settled' && !isLive,
    )
    const lost = leases.filter(hasOpen).map((lease) => ({ lease, report: { records: [lostRecord(lease)] } }))
    await addSpending(tx, lost)
    // The open amount stays in the row, to be taken back.
    const settled = leases.map((lease) => ({ ...lease, state: 'settled', usd: 0, tokens: 0 }))
    await updateModelLeases.run(tx, JSON.stringify(settled), 0)
    if (lost.length > 0) await noteReached(tx, lost)
  })
}
