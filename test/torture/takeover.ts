/** How soon an operation resumes when its worker has been killed. */
import { until } from '../support/processes.ts'

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
 * Kills the worker, and waits until the operation is claimed again, by another worker or by the same one after its
 * restart.
 * @returns the milliseconds from the kill to the claim: only a figure to print, because it depends on the load of the
 * machine.
 */
export async function measureTakeover(query: Query, operationId: string, kill: () => void): Promise<number> {
  const epoch = await retrieving(query, operationId)
  const killed = performance.now()
  kill()
  const claimedAgain = async () => {
    const [row] = await query<{ epoch: number }>('SELECT epoch FROM operation WHERE id = $1', [operationId])
    return row !== undefined && row.epoch > epoch
  }
  await until('the operation resumes', claimedAgain)
  return performance.now() - killed
}
