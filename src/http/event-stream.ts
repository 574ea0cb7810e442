/** Sends server-sent events (WHATWG HTML, 9.2) as a response. */
import { once } from 'node:events'
import type { Response } from 'express'

/** A regular comment keeps proxies from closing a quiet stream. */
const KEEP_ALIVE_MS = 15_000

export interface EventStream {
  /** Sends an event with `data` as JSON. Resolves when the client can accept the next event, or has disconnected. */
  send(name: string, data: unknown, id?: number): Promise<void>
  /** The same for text from {@link formatEvent}, or only an id, from which the client can resume. */
  write(text: string): Promise<void>
  end(): void
}

/** An event in the stream's format. */
export function formatEvent(name: string, data: unknown, id?: number | string): string {
  const idLine = id === undefined ? '' : `id: ${id}\n`
  return `event: ${name}\n${idLine}data: ${JSON.stringify(data)}\n\n`
}

/**
 * Begins the response. The caller must end the stream in every case.
 * @param keepAlive additional text that is sent on a quiet stream.
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
    // A closed response never emits either event again.
    if (flushed || res.destroyed || res.closed) return
    // Otherwise, the listener of the event that does not occur would stay until the stream ends, possibly weeks later.
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
