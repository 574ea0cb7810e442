import type { ServerResponse } from 'node:http'

/**
 * A controller that aborts when the client goes before its answer is complete; at once where it has gone already, since
 * `close` is emitted only once.
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
