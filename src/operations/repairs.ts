import type { Queryable } from '../db/pool.ts'
import { recordRepair } from '../db/statements/operations.ts'

/** The loops that compare two sources of truth, and what each of them repairs. */
export const REPAIRS = {
  operations: ['lease expired', 'job lost by the queue'],
  pins: ['pin missing', 'pin that nothing keeps'],
  agents: [
    'container ended',
    'container missing',
    'container broken',
    'gateway missing',
    'agentd silent',
    'agentd has another key',
    'keeps ending',
    'deletion left over',
    'outlived its agent',
    'of no agent',
  ],
} as const

export type Loop = keyof typeof REPAIRS
export type Reason<L extends Loop> = (typeof REPAIRS)[L][number]

/**
 * Records what a reconciler repaired, one row per target. `/metrics` has their number as
 * `berth_reconcile_repairs_total{loop,reason}`, stored separately from the rows, which are eventually deleted. Without
 * crashes and outages it does not grow.
 */
export async function recordRepairs<L extends Loop>(
  db: Queryable,
  loop: L,
  reason: Reason<L>,
  targets: string[],
): Promise<void> {
  if (targets.length === 0) return
  await recordRepair.run(db, loop, reason, targets)
}
