/** How soon an operation goes on when its worker has been killed. */
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { until } from '../support/processes.ts'

/** The requirement: another worker, or the same one started again, has claimed the operation by then. */
const GOES_ON_MS = 5000

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
 * @returns the milliseconds from the kill to the claim.
 */
export async function measureTakeover(query: Query, operationId: string, kill: () => void): Promise<number> {
  const epoch = await retrieving(query, operationId)
  const killed = performance.now()
  kill()
  for (;;) {
    const [row] = await query<{ epoch: number }>('SELECT epoch FROM operation WHERE id = $1', [operationId])
    const ms = performance.now() - killed
    if (row && row.epoch > epoch) {
      assert.ok(ms < GOES_ON_MS, `the operation went on after ${Math.round(ms)} ms`)
      return ms
    }
    assert.ok(ms < 4 * GOES_ON_MS, `the operation does not go on: ${JSON.stringify(row)}`)
    await delay(10)
  }
}
