import type { Queryable } from '../db/pool.ts'

/** The loops that compare two sources of truth. */
export type Loop = 'operations' | 'pins' | 'agents'

/**
 * Records what a reconciler put right, one row for each target. `/metrics` counts them as
 * `berth_corrections_total{loop,reason}`; without crashes and outages the count stays where it is.
 */
export async function recordCorrections(
  db: Queryable,
  loop: Loop,
  reason: string,
  targets: string[],
): Promise<void> {
  if (targets.length === 0) return
  await db.query('INSERT INTO correction (loop, reason, target) SELECT $1, $2, unnest($3::text[])', [
    loop,
    reason,
    targets,
  ])
}
