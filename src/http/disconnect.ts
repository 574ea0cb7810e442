import type { ServerResponse } from 'node:http'

/**
 * A controller that aborts when the client disconnects before its response is complete. If the client has already
 * disconnected, it aborts at once, because `close` is emitted only once.
 */
export function abortOnDisconnect(res: ServerResponse): AbortController {
  const gone = new AbortController()
  const check = () => {
    if (!res.writableFinished) gone.abort()
  }
  if (res.closed) check()
  else res.once('close', check)
  return gone
}
