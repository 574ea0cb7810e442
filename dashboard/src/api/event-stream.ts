import { RequestError } from './client.ts'
import type { Change } from './told.ts'

/** What comes of a stream of events: an id, mostly with an event. */
export interface Part {
  id?: string | undefined
  change?: Change | undefined
}

/** An id of an event behind which are those from a time on. */
export const idAt = (ms: number): string => String(BigInt(Math.floor(ms)) * 1024n - 1n)

/**
 * Reads `GET /v0/events`.
 * @param options.opened is given the server's time when the stream is there.
 * @param options.heard is called whenever something arrives.
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
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader()
  try {
    for (let rest = ''; ; ) {
      const { done, value } = await reader.read()
      if (done) return
      heard?.()
      const blocks = (rest + value).split('\n\n')
      rest = blocks.pop() ?? ''
      yield* blocks.map(parse)
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}

function parse(block: string): Part {
  const lines = block.split('\n').map((line): [string, string] => {
    const [name = ''] = line.split(':', 1)
    return [name, line.slice(name.length + 1).trimStart()]
  })
  const { id, data } = Object.fromEntries(lines)
  return { id, change: data === undefined ? undefined : (JSON.parse(data) as Change) }
}
