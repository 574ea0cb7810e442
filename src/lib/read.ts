/** Reading streams that may be too long, and texts that may be no JSON. */

/**
 * Reads a stream into memory.
 * @param tooLarge makes the error for more than `maxBytes`; the rest is not read then.
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

/** The value of a JSON text; undefined for a text that is no JSON. */
export function parseJson(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
