/** Server-sent events: `/v0/events`, an agent's replies, logs and running commands. */

/** A server-sent event: a name with its data, or only an id. */
export interface ServerEvent {
  id?: string | undefined
  name: string
  /** JSON; '' if the event is only an id. */
  data: string
}

/**
 * The server-sent events of a response (WHATWG HTML, 9.2), until it ends.
 * @param heard called for everything that arrives, including comments.
 */
export async function* serverEvents(
  body: ReadableStream<Uint8Array>,
  heard?: () => void,
): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader()
  try {
    for (let rest = ''; ; ) {
      const { done, value } = await reader.read()
      if (done) return
      heard?.()
      const blocks = (rest + value).split('\n\n')
      rest = blocks.pop() ?? ''
      yield* blocks.map(parse).filter(({ id, data }) => id !== undefined || data !== '')
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}

function parse(block: string): ServerEvent {
  const lines = block.split('\n')
  const field = (name: string) =>
    lines
      .filter((line) => line.split(':', 1)[0] === name)
      .map((line) => line.slice(name.length + 1).replace(/^ /, ''))
  return {
    id: field('id').at(-1),
    name: field('event').at(-1) ?? 'message',
    data: field('data').join('\n'),
  }
}
