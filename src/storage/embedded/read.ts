import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import { isLeafCodec } from '../codecs.ts'
import { describeDag, type LocalBlocks } from '../measure.ts'
import { MIME_SAMPLE } from '../mime.ts'
import { type DagStat, StorageError } from '../port.ts'
import { descend, ROOT, resolvePath } from '../unixfs.ts'
import type { BlockFolder } from './blocks.ts'
import { walkDag } from './walk.ts'

/** Blocks that are read ahead of the consumer. */
const READ_AHEAD = 4

/** A piece of a file: `from` and `to` are offsets within the block's own data. */
interface Piece {
  data: () => Promise<Uint8Array>
  from: number
  to: number
}

/**
 * Bytes `offset` to `offset + length` of a UnixFS file, less when it ends before.
 *
 * The content is read here and not by `ipfs-unixfs-exporter`, which reads on
 * whether or not its consumer keeps up, so that a slow download held the whole file in memory.
 *
 * @throws StorageError `not_found` when a block or the path is not there, `invalid_object` when it is no file.
 */
export async function* readFile(
  cid: CID,
  blocks: BlockFolder,
  range: { path?: string; offset?: number; length?: number; signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  const { signal } = range
  const file = await resolveFile(cid, blocks, range.path ?? '', signal)
  const from = range.offset ?? 0
  const to = range.length === undefined ? Number.MAX_SAFE_INTEGER : from + range.length
  const ahead: Promise<Uint8Array>[] = []
  for await (const piece of pieces(file, blocks, from, to, signal)) {
    const next = piece.data().then((bytes) => bytes.subarray(piece.from, piece.to))
    next.catch(() => {}) // it is awaited below, or nobody reads on
    ahead.push(next)
    if (ahead.length >= READ_AHEAD) yield (await ahead.shift()) as Uint8Array
    signal.throwIfAborted()
  }
  for (const next of ahead) yield await next
}

/** The parts of a file that lie between two offsets, in order. Reads the inner nodes that lead there, not the leaves. */
async function* pieces(
  cid: CID,
  blocks: BlockFolder,
  from: number,
  to: number,
  signal: AbortSignal,
  above = ROOT,
): AsyncGenerator<Piece> {
  if (to <= from) return
  if (isLeafCodec(cid)) {
    yield { data: () => readBlock(cid, blocks), from, to }
    return
  }
  const { node, unixfs } = decodeFile(cid, await readBlock(cid, blocks))
  const here = descend(above, cid, node.Links.length)
  let start = 0
  const own = unixfs.data
  if (own && own.length > from) yield { data: async () => own, from, to }
  start += own?.length ?? 0
  for (const [index, link] of node.Links.entries()) {
    signal.throwIfAborted()
    const end = start + Number(unixfs.blockSizes[index])
    if (end > from && start < to) {
      yield* pieces(link.Hash, blocks, Math.max(0, from - start), Math.min(end, to) - start, signal, here)
    }
    start = end
  }
}

function decodeFile(cid: CID, bytes: Uint8Array): { node: dagPb.PBNode; unixfs: UnixFS } {
  try {
    const node = dagPb.decode(bytes)
    const unixfs = UnixFS.unmarshal(node.Data ?? new Uint8Array())
    if (unixfs.blockSizes.length !== node.Links.length) throw new Error('links and sizes differ in number')
    return { node, unixfs }
  } catch (error) {
    throw new StorageError('invalid_object', `${cid} is not a UnixFS file: ${(error as Error).message}`, {
      cause: error,
    })
  }
}

/** A block's bytes, checked. @throws StorageError `not_found` when it is missing or damaged. */
export async function readBlock(cid: CID, blocks: BlockFolder): Promise<Uint8Array> {
  const bytes = await blocks.read(cid)
  if (!bytes) throw missing(cid)
  return bytes
}

const missing = (cid: CID) => new StorageError('not_found', `Block ${cid} is not stored here, or is damaged`)

/** The CID of the file at a path below `cid`. */
async function resolveFile(cid: CID, blocks: BlockFolder, path: string, signal: AbortSignal): Promise<CID> {
  const entry = await resolvePath(cid, path, (block) => readBlock(block, blocks), signal)
  if (entry.type === 'file') return entry.cid
  const what = entry.type === 'directory' ? 'is a directory' : 'is not a UnixFS file'
  throw new StorageError('invalid_object', `${path || cid} ${what}`)
}

/** Describes a DAG, see `Storage.stat`. */
export function statDag(cid: CID, blocks: BlockFolder, signal: AbortSignal): Promise<DagStat> {
  const local: LocalBlocks = {
    read: (block) => readBlock(block, blocks),
    sizes: (leaves) =>
      Promise.all(
        leaves.map(async (leaf) => {
          const size = await blocks.size(leaf)
          if (size === null) throw missing(leaf)
          return size
        }),
      ),
    totalSize: async (root) => (await walkDag(root, { blocks, retrieve: null, signal })).bytes,
    sample: async (file) => {
      const sample: Uint8Array[] = []
      for await (const chunk of readFile(file, blocks, { length: MIME_SAMPLE, signal })) sample.push(chunk)
      return Buffer.concat(sample)
    },
  }
  return describeDag(cid, local, signal)
}
