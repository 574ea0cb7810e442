import { randomUUID } from 'node:crypto'
import type { AddEntry } from '../port.ts'

/** The body of a call that takes files: each is a part whose name is its path. */
export function multipart(entries: AsyncIterable<AddEntry>): {
  type: string
  content: AsyncIterable<Uint8Array>
} {
  const boundary = `berth-${randomUUID()}`
  async function* content(): AsyncGenerator<Uint8Array> {
    for await (const entry of entries) {
      const name = encodeURIComponent(entry.path)
      yield Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n` +
          'Content-Type: application/octet-stream\r\n\r\n',
      )
      yield* entry.content
      yield Buffer.from('\r\n')
    }
    yield Buffer.from(`--${boundary}--\r\n`)
  }
  return { type: `multipart/form-data; boundary=${boundary}`, content: content() }
}

/** One file as the only entry. */
export async function* single(path: string, content: AsyncIterable<Uint8Array>): AsyncGenerator<AddEntry> {
  yield { path, content }
}
