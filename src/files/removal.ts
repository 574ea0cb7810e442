import type { Pool } from '../db/pool.ts'
import { notFound } from '../errors.ts'
import type { Answer, Context } from '../http/route.ts'
import { operationHeaders } from '../operations/headers.ts'
import type { Waiter } from '../operations/wait.ts'
import type { Network } from '../storage/port.ts'
import { removeFile } from './remove.ts'

export interface RemovalServices {
  pool: Pool
  waiter: Waiter
  wakeDispatcher: () => void
}

/**
 * The handler of both DELETE routes: a file, or a request that is not pinned yet. Only a file's path has a network.
 * @param missing what a 404 says.
 */
export function removal(
  { pool, waiter, wakeDispatcher }: RemovalServices,
  only: 'pinned' | 'unpinned',
  missing: string,
) {
  return async ({
    principal,
    params,
    prefer,
    signal,
  }: Context<{ id: string; network?: Network }, unknown, unknown>): Promise<Answer> => {
    const { workspaceId } = principal
    const { id, network = 'public' } = params
    const operationId = await removeFile(pool, { workspaceId, network, id, only })
    if (!operationId) throw notFound(missing)
    wakeDispatcher()
    if (prefer.waitMs) await waiter.finished(workspaceId, operationId, prefer.waitMs, signal)
    return { headers: operationHeaders(operationId), body: { data: null } }
  }
}
