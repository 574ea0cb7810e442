import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { type Block, type FileRange, StorageError } from '../port.ts'
import { carHeader, carSection } from './car.ts'
import { inlineBytes } from './codecs.ts'
import { BYTES_PER_BLOCK, FREE_BLOCKS, LARGE_BLOCK_BYTES, turn } from './limits.ts'
import { fileNode, linkAt, wholeDag } from './parts.ts'
import type { ReadBlock } from './path.ts'
import { ReadAhead } from './read-ahead.ts'
import { descend, ROOT, resolvePath } from './unixfs.ts'
import type { StoredBlocks } from './walk.ts'

/** Blocks that are read ahead of the consumer. */
const READ_AHEAD = 4

/** A piece of a file: `from` and `to` are offsets within the block's own data. */
interface Piece {
  data: () => Promise<Uint8Array>
  from: number
  to: number
}

/** The context of a walk down a file, the same on every level. */
interface FileWalk {
  read: ReadBlock
  signal: AbortSignal
  /** Called for each block that is met. @throws StorageError `invalid_object` for too many. */
  onBlock: () => void
}

/**
 * Bytes `offset` to `offset + length` of a UnixFS file, or fewer if it ends before.
 *
 * The content is read here and not by a library: libraries read on whether or not their consumer keeps up, so that a
 * slow download held the whole file in memory.
 *
 * @throws StorageError `not_found` if a block or the path is missing; `invalid_object` if it is not a file, or if its
 *   blocks contain almost nothing (see `limits.ts`).
 */
export async function* readFile(
  cid: CID,
  read: ReadBlock,
  range: FileRange & { signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  const { signal } = range
  const file = await resolveFile(cid, read, range.path ?? '', signal)
  const from = range.offset ?? 0
  const to = range.length === undefined ? Number.MAX_SAFE_INTEGER : from + range.length
  let met = 0
  let bytesRead = 0
  const onBlock = () => {
    if (++met <= FREE_BLOCKS + bytesRead / BYTES_PER_BLOCK) return
    throw new StorageError('invalid_object', `${met} blocks of ${file} have ${bytesRead} bytes`)
  }
  const ahead = new ReadAhead<Uint8Array>(READ_AHEAD)
  const next = async () => {
    const bytes = await ahead.next()
    bytesRead += bytes.length
    if (bytes.length <= LARGE_BLOCK_BYTES) await turn()
    return bytes
  }
  for await (const piece of pieces(file, { read, signal, onBlock }, from, to)) {
    ahead.push(async () => (await piece.data()).subarray(piece.from, piece.to))
    if (ahead.isFull) yield await next()
    signal.throwIfAborted()
  }
  while (!ahead.isEmpty) yield await next()
}

/** The parts of a file between two offsets, in order. Reads the inner nodes that lead there, but not the leaves. */
async function* pieces(
  cid: CID,
  walk: FileWalk,
  from: number,
  to: number,
  above = ROOT,
): AsyncGenerator<Piece> {
  if (to <= from) return
  walk.onBlock()
  if (cid.code === raw.code) {
    yield { data: () => walk.read(cid), from, to }
    return
  }
  await turn()
  const { unixfs, links, sizes } = fileNode(cid, await walk.read(cid))
  const here = descend(above, cid, links.length)
  let start = 0
  const own = unixfs.data
  if (own && own.length > from) yield { data: async () => own, from, to }
  start += own?.length ?? 0
  for (const [index, size] of sizes.entries()) {
    const end = start + size
    if (end > from && start < to) {
      walk.signal.throwIfAborted()
      const { Hash } = linkAt(cid, links, index)
      yield* pieces(Hash, walk, Math.max(0, from - start), Math.min(end, to) - start, here)
    }
    start = end
  }
}

/** A block's bytes, verified. @throws StorageError `not_found` if it is missing or damaged. */
export async function readBlock(cid: CID, blocks: Pick<StoredBlocks, 'read'>): Promise<Uint8Array> {
  const bytes = await blocks.read(cid)
  if (!bytes) throw missingBlock(cid)
  return bytes
}

export const missingBlock = (cid: CID) =>
  new StorageError('not_found', `Block ${cid} is not stored here, or is damaged`)

/** The CID of the file at a path below `cid`. */
async function resolveFile(cid: CID, read: ReadBlock, path: string, signal: AbortSignal): Promise<CID> {
  const entry = await resolvePath(cid, path, read, signal)
  if (entry.type === 'file') return entry.cid
  const what = entry.type === 'directory' ? 'is a directory' : 'is not a UnixFS file'
  throw new StorageError('invalid_object', `${path || cid} ${what}`)
}

/** A DAG as a CAR; see `Storage.exportCar`. */
export async function* exportCar(
  root: CID,
  read: ReadBlock,
  signal: AbortSignal,
): AsyncGenerator<Uint8Array> {
  yield carHeader(root)
  for await (const block of readBlocks(root, read, signal)) yield* carSection(block)
}

/** The blocks of a DAG; see `Storage.blocks`. */
export async function* readBlocks(root: CID, read: ReadBlock, signal: AbortSignal): AsyncGenerator<Block> {
  for await (const block of wholeDag(root, { read, signal, duplicates: false })) {
    if (!inlineBytes(block.cid)) yield block
  }
}
