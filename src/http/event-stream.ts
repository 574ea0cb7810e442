/** Server-sent events (WHATWG HTML, 9.2) as an answer. */
import { once } from 'node:events'
import type { Response } from 'express'

/** A comment now and then keeps proxies from closing a quiet stream. */
const KEEP_ALIVE_MS = 15_000

export interface EventStream {
  /** Sends an event with `data` as JSON. Resolves when the client can take the next one, or has gone. */
  send(name: string, data: unknown, id?: number): Promise<void>
  /** The same of events that are {@link formatEvent} already, or an id alone: from there a client goes on. */
  write(text: string): Promise<void>
  end(): void
}

/** An event as it stands in the stream. */
export function formatEvent(name: string, data: unknown, id?: number | string): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`
  return `event: ${name}\n${idLine}data: ${JSON.stringify(data)}\n\n`
}

/**
 * Begins the answer. Whoever calls it ends the stream, whatever happens.
 * @param keepAlive what else is said to a quiet stream.
 */
export function openEventStream(res: Response, keepAlive: () => string = () => ''): EventStream {
  res.writeHead(200, {
    'content-type': 'text/event-stream; charset=utf-8',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
  })
  res.flushHeaders()
  const timer = setInterval(() => res.write(`: keep-alive\n${keepAlive()}\n`), KEEP_ALIVE_MS)
  const write = async (text: string) => {
    const flushed = res.write(text)
    // A response that is closed already emits neither event again.
    if (flushed || res.destroyed || res.closed) return
    // The one that does not come would be listened for until the stream ends, which may be in weeks.
    const over = new AbortController()
    const events = ['drain', 'close'].map((event) => once(res, event, over))
    await Promise.race(events).finally(() => over.abort())
  }
  return {
    send: (name, data, id) => write(formatEvent(name, data, id)),
    write,
    end() {
      clearInterval(timer)
      res.end()
    },
  }
}
