/** Server-sent events (WHATWG HTML, 9.2) as an answer. */
import { once } from 'node:events'
import type { Response } from 'express'

/** A comment now and then keeps proxies from closing a quiet stream. */
const KEEP_ALIVE_MS = 15_000

export interface EventStream {
  /** Sends an event with `data` as JSON. Resolves when the client can take the next one, or has gone. */
  send(name: string, data: unknown, id?: number): Promise<void>
  end(): void
}

/** Begins the answer. Whoever calls it ends the stream, whatever happens. */
export function openEventStream(res: Response): EventStream {
  res.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  res.flushHeaders()
  const keepAlive = setInterval(() => res.write(': keep-alive\n\n'), KEEP_ALIVE_MS)
  return {
    async send(name, data, id) {
      const idLine = id === undefined ? '' : `id: ${id}\n`
      const flushed = res.write(`event: ${name}\n${idLine}data: ${JSON.stringify(data)}\n\n`)
      // A response that is closed already emits neither event again.
      if (flushed || res.destroyed || res.closed) return
      await Promise.race([once(res, 'drain'), once(res, 'close')])
    },
    end() {
      clearInterval(keepAlive)
      res.end()
    },
  }
}
