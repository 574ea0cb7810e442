import { forbidden } from '../../errors.ts'
import type { WorkerStatus } from '../../operations/worker-status.ts'
import { NOT_WALLED, WALLS } from '../../sandboxes/walls.ts'

/**
 * Refuses new agents while a live worker reports that agents could read Berth's keys. The worker's runtime refuses them
 * too, in case the worker has reported nothing yet.
 * @throws ApiError 403 `agents_not_walled`.
 */
export async function requireWalls(workers: WorkerStatus): Promise<void> {
  const { parts } = await workers.read()
  if (parts.some(({ processes }) => processes?.detail === WALLS.none))
    throw forbidden(NOT_WALLED, 'agents_not_walled')
}
