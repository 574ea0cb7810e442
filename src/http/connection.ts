/** Routes that are WebSockets. */
import type { Request, Response } from 'express'
import { ApiError } from '../errors.ts'
import type { Audit } from './audit.ts'
import { isUpgrade } from './upgrade.ts'

/**
 * Runs the handler of a route that is a WebSocket, and records the connection in the audit.
 * @param ended the audit's action for the end.
 * @throws ApiError 426 for a request without an upgrade.
 */
export async function holdConnection(
  audit: Audit,
  declared: Parameters<Audit['ofConnection']>[0],
  ended: string,
  { req, res }: { req: Request; res: Response },
  handle: () => Promise<unknown>,
): Promise<void> {
  if (!isUpgrade(req))
    throw new ApiError(426, 'upgrade_required', 'This is a WebSocket: ask for an upgrade', {
      headers: { upgrade: 'websocket' },
    })
  await audit.ofConnection(declared, ended, { req, res }, handle)
  // The handler took the connection from the response, which would otherwise never learn of its end.
  if (!res.writableEnded) res.emit('close')
}
