/** Reads server-sent events until they end, and gives each with its data. */
export async function readEvents(
  body: ReadableStream<Uint8Array<ArrayBuffer>>,
  take: (name: string, data: unknown) => void,
): Promise<void> {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader()
  for (let rest = ''; ; ) {
    const { done, value } = await reader.read()
    if (done) return
    const blocks = (rest + value).split('\n\n')
    rest = blocks.pop() ?? ''
    for (const block of blocks) {
      const name = /^event: (.*)$/m.exec(block)?.[1]
      const data = /^data: (.*)$/m.exec(block)?.[1]
      if (name !== undefined && data !== undefined) take(name, JSON.parse(data))
    }
  }
}
