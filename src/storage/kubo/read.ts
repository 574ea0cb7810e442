import type { CID } from 'multiformats/cid'
import { readWhole } from '../../lib/read.ts'
import { BLOCK_LIMIT } from '../dag/car.ts'
import { inlineBytes, matches } from '../dag/codecs.ts'
import { LARGE_BLOCK_BYTES, turn } from '../dag/limits.ts'
import { describeDag, type LocalBlocks, MIME_SAMPLE } from '../dag/measure.ts'
import type { ReadBlock } from '../dag/path.ts'
import { resolvePath } from '../dag/unixfs.ts'
import { type DagStat, type FileRange, StorageError } from '../port.ts'
import { asStorageError } from './kubo-errors.ts'
import type { KuboStream } from './stream.ts'

const BLOCK_MS = 10_000
export const IDLE_MS = 30_000
/** The CID of the empty raw block. `dag/stat` divides by the size of all leaves, and fails if all are empty. */
const EMPTY_BLOCK = 'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku'

/** `dag/stat` of many DAGs, without its sums. Kubo omits a size of 0, as for an empty file. */
interface LeafStats {
  DagStats: { Cid: string; Size?: number }[]
}

/** The last row of `dag/stat` has the sum; the others are progress. */
interface DagStatRow {
  TotalSize?: number
}

/** Reads blocks that Kubo has, without verification: Kubo checked them when they arrived. */
export function blockReader(stream: KuboStream, signal: AbortSignal): ReadBlock {
  return async (cid) => {
    const inline = inlineBytes(cid)
    if (inline) return inline
    try {
      const params = { arg: `${cid}`, offline: true }
      const bytes = await collect(
        stream.bytes('block/get', params, { signal, deadlineMs: BLOCK_MS }),
        BLOCK_LIMIT,
      )
      if (bytes.length > LARGE_BLOCK_BYTES) await turn()
      return bytes
    } catch (error) {
      throw asStorageError(error)
    }
  }
}

/**
 * A block that Kubo has, verified. @throws StorageError `invalid_object` for a hash function that Berth cannot compute.
 */
export async function readBlock(stream: KuboStream, cid: CID, signal: AbortSignal): Promise<Uint8Array> {
  const bytes = await blockReader(stream, signal)(cid)
  if (inlineBytes(cid) || (await matches(cid, bytes))) return bytes
  throw damaged(cid)
}

/** Bytes of a UnixFS file that Kubo has. Kubo verifies blocks as it reads them; a short response is an error. */
export async function* readFile(
  stream: KuboStream,
  cid: CID,
  range: FileRange & { signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  const { path, offset, length, signal } = range
  const file = path ? (await resolvePath(cid, path, blockReader(stream, signal), signal)).cid : cid
  if (length === 0) return
  try {
    const params = { arg: `/ipfs/${file}`, offset, length, offline: true, progress: false }
    yield* stream.bytes('cat', params, { signal, idleMs: IDLE_MS })
  } catch (error) {
    throw asStorageError(error)
  }
}

/** Describes a DAG that Kubo has; see `Storage.stat`. It may take long, but Kubo may not be silent for long. */
export async function statDag(stream: KuboStream, cid: CID, signal: AbortSignal): Promise<DagStat> {
  const ask = { signal, deadlineMs: BLOCK_MS }
  const blocks: LocalBlocks = {
    read: blockReader(stream, signal),
    // A raw block is a DAG itself: unlike `block/stat`, this takes many in one call.
    sizes: async (leaves) => {
      const sizes = new Map([[EMPTY_BLOCK, 0]])
      const asked = leaves.map(String).filter((leaf) => !sizes.has(leaf))
      if (asked.length > 0) {
        const params = { arg: asked, progress: false, offline: true }
        const { DagStats } = await stream.call<LeafStats>('dag/stat', params, ask)
        for (const { Cid, Size = 0 } of DagStats) sizes.set(Cid, Size)
      }
      return leaves.map((leaf) => sizes.get(`${leaf}`) ?? missing(leaf))
    },
    totalSize: async (root) => {
      const params = { arg: `${root}`, progress: true, offline: true }
      let size = 0
      for await (const row of stream.rows<DagStatRow>('dag/stat', params, { signal, idleMs: IDLE_MS })) {
        size = row.TotalSize ?? size
      }
      return size
    },
    sample: (file) => collect(readFile(stream, file, { length: MIME_SAMPLE, signal }), MIME_SAMPLE),
  }
  try {
    return await describeDag(cid, blocks, signal)
  } catch (error) {
    throw asStorageError(error)
  }
}

function missing(cid: CID): never {
  throw new StorageError('unavailable', `Kubo did not say the size of ${cid}`)
}

const collect = (chunks: AsyncIterable<Uint8Array>, limit: number): Promise<Uint8Array> =>
  readWhole(chunks, limit, () => new StorageError('invalid_object', `More than ${limit} bytes`))

/** A DAG as a CAR; see `Storage.exportCar`. */
export async function* exportCar(
  stream: KuboStream,
  root: CID,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  const params = { arg: `${root}`, progress: false, offline: true }
  try {
    yield* stream.bytes('dag/export', params, { signal, idleMs: IDLE_MS })
  } catch (error) {
    throw asStorageError(error)
  }
}

const damaged = (cid: CID) => new StorageError('not_found', `Block ${cid} is damaged`)
