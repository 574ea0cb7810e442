/** An event of a stream; `data` is JSON. */
export interface ServerEvent {
  event: string
  data: string
}

/** The server-sent events of an answer (WHATWG HTML, 9.2), one by one; comments are left out. */
export async function* readEvents(body: ReadableStream<Uint8Array>): AsyncGenerator<ServerEvent> {
  const reader = body.pipeThrough(new TextDecoderStream() as TransformStream<Uint8Array, string>).getReader()
  let rest = ''
  try {
    for (;;) {
      const { done, value } = await reader.read()
      if (done) return
      const blocks = (rest + value).split('\n\n')
      rest = blocks.pop() ?? ''
      for (const block of blocks) {
        const field = (name: string) =>
          block
            .split('\n')
            .filter((line) => line.startsWith(`${name}: `))
            .map((line) => line.slice(name.length + 2))
            .join('\n')
        const data = field('data')
        if (data) yield { event: field('event') || 'message', data }
      }
    }
  } finally {
    void reader.cancel().catch(() => {})
  }
}
