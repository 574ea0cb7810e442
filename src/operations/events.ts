import { once } from 'node:events'
import type { Response } from 'express'
import { type Versioned, view } from './store.ts'

/** A comment now and then keeps proxies from closing a quiet stream. */
const KEEP_ALIVE_MS = 15_000

/**
 * Writes each change as a server-sent event (WHATWG HTML, 9.2) until the operation ends or the client
 * goes. A slow client is waited for: versions in between are skipped, not queued.
 */
export async function streamEvents(
  changes: AsyncGenerator<Versioned>,
  lastEventId: string | undefined,
  res: Response,
): Promise<void> {
  res.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  res.flushHeaders()
  const keepAlive = setInterval(() => res.write(': keep-alive\n\n'), KEEP_ALIVE_MS)
  try {
    for await (const operation of changes) {
      if (lastEventId !== undefined && operation.version <= Number(lastEventId)) continue
      const data = JSON.stringify(view(operation))
      const flushed = res.write(`event: operation\nid: ${operation.version}\ndata: ${data}\n\n`)
      if (!flushed) await Promise.race([once(res, 'drain'), once(res, 'close')])
    }
  } finally {
    clearInterval(keepAlive)
    res.end()
  }
}
