/** Parts of a DAG, block by block and depth first, for clients that verify what they receive. */
import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { type Block, StorageError } from '../port.ts'
import { inlineBytes, isLeafCodec, undecodable } from './codecs.ts'
import { Frontier, Visited } from './frontier.ts'
import { BYTES_PER_BLOCK, FREE_BLOCKS, turn } from './limits.ts'
import { distinctLinks, orderedLinks } from './links.ts'
import type { ReadBlock } from './path.ts'
import { ReadAhead } from './read-ahead.ts'
import { type Descent, descend, ROOT } from './unixfs.ts'
import { decodeUnixFs, shardDigits, type UnixFsNode } from './unixfs-node.ts'

/** Blocks that are read ahead of the consumer. */
const READ_AHEAD = 8

export interface DagPart {
  /** The blocks that lead to the root, in order. */
  path: CID[]
  root: CID
  /**
   * `block`: only the root. `entity`: the blocks needed to read a file, or to list a directory. `all`: everything below
   * the root.
   */
  scope: 'block' | 'entity' | 'all'
  /** With `entity`: the bytes of a file to read. */
  bytes?: ByteSpan | undefined
  /** Whether repeated blocks are sent again. */
  duplicates: boolean
}

/**
 * From one byte of a file to another, inclusive. Negative values count from its end; `to` may be `*`, the end of the
 * file.
 */
export interface ByteSpan {
  from: number
  to: number | '*'
}

interface Walk {
  read: ReadBlock
  signal: AbortSignal
}

/**
 * The blocks of a part. Identity CIDs carry their own bytes and are left out.
 * @throws StorageError `not_found` if a block is missing; `invalid_object` if nodes cannot be decoded, are nested too
 *   deeply, or with `duplicates` repeat too often (see `limits.ts`).
 */
export async function* blocksOf(part: DagPart, walk: Walk): AsyncGenerator<Block> {
  const { path, duplicates } = part
  const sent = new Visited()
  let repeated = 0
  let bytesSent = 0
  const isWanted = ({ cid, bytes }: Block) => {
    if (inlineBytes(cid)) return false
    const isNew = sent.add(cid)
    bytesSent += bytes.length
    if (!isNew && ++repeated > FREE_BLOCKS + bytesSent / BYTES_PER_BLOCK) {
      throw new StorageError('invalid_object', `${part.root} has ${repeated} blocks that come again`)
    }
    return isNew || duplicates
  }
  for (const cid of path) {
    const block = { cid, bytes: await walk.read(cid) }
    if (isWanted(block)) yield block
  }
  for await (const block of belowRoot(part, walk)) {
    walk.signal.throwIfAborted()
    if (isWanted(block)) yield block
  }
}

/** The same without the path: every block that the walk meets, as often as it meets it, including identity CIDs. */
export async function* belowRoot(part: Omit<DagPart, 'path'>, walk: Walk): AsyncGenerator<Block> {
  const { root, scope, duplicates } = part
  if (scope === 'all') return yield* wholeDag(root, { ...walk, duplicates })
  const block = { cid: root, bytes: await walk.read(root) }
  const node = root.code === dagPb.code ? decodeUnixFs(block.bytes) : null
  if (scope === 'block' || !node) yield block
  else if (node.unixfs.isDirectory()) yield* shards(root, block.bytes, walk, ROOT)
  else {
    const span = part.bytes ? within(part.bytes, node.fileSize) : { from: 0, to: Number.MAX_SAFE_INTEGER }
    yield* fileBlocks(root, block.bytes, span.from, span.to, walk, ROOT)
  }
}

/** All blocks of a DAG; without `duplicates`, each block once. Memory use is independent of its size and fan-out. */
export async function* wholeDag(
  root: CID,
  { read, signal, duplicates }: Walk & Pick<DagPart, 'duplicates'>,
): AsyncGenerator<Block> {
  const visited = new Visited()
  let last: { cid: CID; bytes: Promise<Uint8Array> } | null = null
  const frontier = new Frontier(async (cid) => {
    const bytes = await (last?.cid === cid ? last.bytes : read(cid))
    return duplicates ? orderedLinks(cid, bytes) : (await distinctLinks(cid, bytes)).links
  })
  const ahead = new ReadAhead<Block>(READ_AHEAD)
  for (let cid: CID | null = root; cid; cid = await frontier.next()) {
    signal.throwIfAborted()
    if (!visited.add(cid) && !duplicates) continue
    const here = cid
    const isLeaf = isLeafCodec(here)
    ahead.push(async () => {
      const bytes = read(here)
      if (!isLeaf) last = { cid: here, bytes }
      return { cid: here, bytes: await bytes }
    })
    if (ahead.isFull) yield await ahead.next()
    if (!isLeaf) frontier.push(here)
  }
  while (!ahead.isEmpty) yield await ahead.next()
}

/** The nodes of a directory: a single one, or all shards of a sharded directory. */
async function* shards(cid: CID, bytes: Uint8Array, walk: Walk, above: Descent): AsyncGenerator<Block> {
  yield { cid, bytes }
  const node = cid.code === dagPb.code ? decodeUnixFs(bytes) : null
  if (node?.unixfs.type !== 'hamt-sharded-directory') return
  const here = descend(above, cid, node.links.length)
  const prefix = shardDigits(cid, node)
  for await (const links of node.links.some()) {
    for (const { Name = '', Hash } of links) {
      if (Name.length === prefix) yield* shards(Hash, await walk.read(Hash), walk, here)
    }
  }
}

/**
 * The nodes of a file that lead to the bytes `from` (inclusive) to `to` (exclusive), and the leaves that contain them.
 */
async function* fileBlocks(
  cid: CID,
  bytes: Uint8Array,
  from: number,
  to: number,
  walk: Walk,
  above: Descent,
): AsyncGenerator<Block> {
  yield { cid, bytes }
  if (cid.code === raw.code) return
  await turn()
  const { unixfs, links, sizes } = fileNode(cid, bytes)
  const here = descend(above, cid, links.length)
  let start = unixfs.data?.length ?? 0
  for (const [index, size] of sizes.entries()) {
    const end = start + size
    if (end > from && start < to) {
      const { Hash } = linkAt(cid, links, index)
      yield* fileBlocks(
        Hash,
        await walk.read(Hash),
        Math.max(0, from - start),
        Math.min(end, to) - start,
        walk,
        here,
      )
    }
    start = end
  }
}

/** A node of a file. @throws StorageError `invalid_object` for another block, or if links lack sizes. */
export function fileNode(cid: CID, bytes: Uint8Array): UnixFsNode {
  const node = cid.code === dagPb.code ? decodeUnixFs(bytes) : null
  if (!node) throw new StorageError('invalid_object', `${cid} is not a UnixFS file`)
  if (node.sizes.length === node.links.length) return node
  throw new StorageError('invalid_object', `${cid} has links and sizes that differ in number`)
}

/** A link of a node. @throws StorageError `invalid_object` if it cannot be decoded. */
export function linkAt(cid: CID, links: UnixFsNode['links'], index: number): dagPb.PBLink {
  try {
    return links.at(index)
  } catch (error) {
    throw undecodable(cid, error as Error)
  }
}

/** The bytes of a span in a file of this size, with an exclusive end; empty if the span lies outside. */
function within({ from, to }: ByteSpan, size: number): { from: number; to: number } {
  const first = Math.max(0, from < 0 ? size + from : from)
  const last = to === '*' ? size - 1 : to < 0 ? size + to : to
  return { from: first, to: Math.max(first, last + 1) }
}
