/** How soon an operation goes on when its worker has been killed. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/processes.ts'

/** The requirement: another worker, or the same one started again, has claimed the operation by then. */
const GOES_ON_MS = 5000
/** A look that takes longer than this was held up by a machine that is busy or stands still: the rest does not count. */
const LOOK_MS = 100
const GIVE_UP_MS = 120_000

type Query = <T extends Record<string, unknown>>(sql: string, values?: unknown[]) => Promise<T[]>

/** Waits until the operation is in mid-retrieval; resolves to its epoch. */
export function retrieving(query: Query, operationId: string): Promise<number> {
  return until('the retrieval runs', async () => {
    const [row] = await query<{ epoch: number }>(
      `SELECT epoch FROM operation WHERE id = $1 AND state = 'running' AND step = 'retrieving'`,
      [operationId],
    )
    return row?.epoch
  })
}

/**
 * Kills the worker, and asserts that the operation is claimed again within 5 s.
 * @returns the milliseconds from the kill to the claim, as the clock has them.
 */
export async function measureTakeover(query: Query, operationId: string, kill: () => void): Promise<number> {
  const epoch = await retrieving(query, operationId)
  const killed = performance.now()
  kill()
  let looked = killed
  let heldUp = 0
  for (;;) {
    const [row] = await query<{ epoch: number }>('SELECT epoch FROM operation WHERE id = $1', [operationId])
    const now = performance.now()
    heldUp += Math.max(0, now - looked - LOOK_MS)
    looked = now
    const ms = now - killed
    if (row && row.epoch > epoch) {
      const said = `the operation went on after ${Math.round(ms)} ms, ${Math.round(heldUp)} of them held up`
      assert.ok(ms - heldUp < GOES_ON_MS, said)
      return ms
    }
    assert.ok(ms < GIVE_UP_MS, `the operation does not go on: ${JSON.stringify(row)}`)
    await delay(10)
  }
}
