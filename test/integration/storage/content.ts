import { createCipheriv, createHash } from 'node:crypto'
import type { AddEntry } from '../../../src/storage/port.ts'

const PIECE = 256 * 1024

/**
 * Pseudo-random bytes, always the same for a seed: the ChaCha20 stream under the seed's SHA-256, as in Kubo's own tests
 * of CID profiles, so that the CIDs stated there can be checked here.
 */
export async function* randomBytes(seed: string, size: number): AsyncGenerator<Uint8Array> {
  const cipher = createCipheriv('chacha20', createHash('sha256').update(seed).digest(), Buffer.alloc(16))
  for (let left = size; left > 0; left -= PIECE) yield cipher.update(Buffer.alloc(Math.min(left, PIECE)))
}

/** A file to add. */
export async function* file(seed: string, size: number, path = 'file.bin'): AsyncGenerator<AddEntry> {
  yield { path, content: randomBytes(seed, size) }
}

/** A folder of `count` files of `size` bytes each, 100 to a subfolder. */
export async function* folder(seed: string, count: number, size: number): AsyncGenerator<AddEntry> {
  for (let i = 0; i < count; i++) {
    yield { path: `part-${Math.floor(i / 100)}/file-${i}.bin`, content: randomBytes(`${seed}-${i}`, size) }
  }
}

/** Files with the given texts. */
export async function* texts(files: Record<string, string>): AsyncGenerator<AddEntry> {
  for (const [path, text] of Object.entries(files)) {
    yield {
      path,
      content: (async function* () {
        yield Buffer.from(text)
      })(),
    }
  }
}

/** All bytes of an iterable. */
export async function collect(chunks: AsyncIterable<Uint8Array>): Promise<Buffer> {
  const all: Uint8Array[] = []
  for await (const chunk of chunks) all.push(chunk)
  return Buffer.concat(all)
}
