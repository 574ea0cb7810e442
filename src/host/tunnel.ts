import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'

const KEEP_ALIVE_MS = 60_000

/**
 * Joins two connections, and resolves when both are closed. Each direction ends on its own; a connection
 * that breaks takes the other with it, and both end when nothing passes for `idleMs`.
 */
export async function joinSockets(client: Socket, upstream: Socket, idleMs: number): Promise<void> {
  for (const socket of [client, upstream]) {
    // Finds a peer that is gone without a word sooner than the idle limit does.
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    socket.setNoDelay(true)
    socket.setTimeout(idleMs, () => socket.destroy())
  }
  await Promise.allSettled([pipeline(client, upstream), pipeline(upstream, client)])
  client.destroy()
  upstream.destroy()
}
