/** Reads streams that may be too long, and texts that may not be JSON or a UUID. */
import type { Readable } from 'node:stream'

/**
 * Reads a stream into memory.
 * @param tooLarge creates the error for more than `maxBytes`; the rest is not read then.
 */
export async function readWhole(
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
  tooLarge: () => Error,
): Promise<Buffer<ArrayBuffer>> {
  const read: Uint8Array[] = []
  let size = 0
  for await (const chunk of chunks) {
    size += chunk.length
    if (size > maxBytes) throw tooLarge()
    read.push(chunk)
  }
  return Buffer.concat(read)
}

/**
 * Calls `take` for each chunk of a stream, and resolves at its end. An async iterator costs more than a small chunk.
 * @throws what `take` throws, which stops reading without closing the stream; an Error if the stream breaks off.
 */
export function readEach(stream: Readable, take: (chunk: Buffer) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const onData = (chunk: Buffer) => {
      try {
        take(chunk)
      } catch (error) {
        stream.off('data', onData).pause()
        reject(error)
      }
    }
    stream.on('data', onData)
    stream.once('end', resolve)
    stream.once('error', reject)
    const onClose = () => {
      if (!stream.readableEnded) reject(new Error('closed before its end'))
    }
    stream.once('close', onClose)
    if (stream.destroyed) onClose()
  })
}

/** The value of a JSON text; undefined if it is not JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** A text that PostgreSQL can store: without NUL, and without halves of surrogate pairs. */
export const storableText = (text: string): string => text.replaceAll('\0', '').toWellFormed()

/** True for a UUID in Berth's format, in any case: PostgreSQL rejects a value that is not a UUID. */
export const isUuid = (text: string): boolean => UUID.test(text)
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i
