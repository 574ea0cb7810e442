import { RequestError, serverEvents } from './client.ts'
import type { Change } from './event-store.ts'

/** A part of the event stream: an id, usually with an event. */
export interface Part {
  id?: string | undefined
  change?: Change | undefined
}

/**
 * Reads `GET /v0/events`.
 * @param options.opened receives the server's time when the stream opens.
 * @param options.heard called for everything that arrives.
 * @throws RequestError
 */
export async function* readEvents(
  signal: AbortSignal,
  options: {
    query?: Record<string, string>
    after?: string | undefined
    opened?: (date: number) => void
    heard?: () => void
  },
): AsyncGenerator<Part> {
  const { query = {}, after, opened, heard } = options
  const answer = await fetch(`/v0/events?${new URLSearchParams(query)}`, {
    signal,
    headers: after ? { 'last-event-id': after } : {},
  })
  if (!answer.ok || !answer.body) throw new RequestError(answer.status, answer.statusText)
  opened?.(Date.parse(answer.headers.get('date') ?? ''))
  for await (const { id, data } of serverEvents(answer.body, heard))
    yield { id, change: data === '' ? undefined : (JSON.parse(data) as Change) }
}
