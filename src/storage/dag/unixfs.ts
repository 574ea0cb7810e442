/** Reads UnixFS for both drivers, which only differ in how they get a block. */
import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { type DagEntry, type DirectoryEntry, StorageError } from '../port.ts'
import { follow, type ReadBlock } from './path.ts'
import { decodeUnixFs, shardDigits } from './unixfs-node.ts'

/**
 * Maximum nesting of nodes: directories, their shards and the levels of a file. The profile needs 4 levels for an
 * exabyte.
 */
const DEPTH_LIMIT = 256
/**
 * Maximum links of all nodes from the root to the position of a walk, which holds their blocks. A node of 2 MiB has up
 * to 50,000.
 */
const LINKS_LIMIT = 200_000

/** The depth of a walk: the number of nodes it came through, and of their links. */
export interface Descent {
  nodes: number
  links: number
}

export const ROOT: Descent = { nodes: 0, links: 0 }

/** Goes down through a node with this many links. @throws StorageError `invalid_object` if that is too deep. */
export function descend({ nodes, links }: Descent, cid: CID, count: number): Descent {
  const next = { nodes: nodes + 1, links: links + count }
  if (next.nodes <= DEPTH_LIMIT && next.links <= LINKS_LIMIT) return next
  throw new StorageError('invalid_object', `${cid} is nested too deep`)
}

/** See `Storage.resolve`. */
export async function resolvePath(
  root: CID,
  path: string,
  read: ReadBlock,
  signal: AbortSignal,
): Promise<DagEntry> {
  const cids = await follow(root, path.split('/').filter(Boolean), read, signal)
  const cid = cids.at(-1) ?? root
  return entryOf(cid, await read(cid))
}

/** The file or directory whose root is this block. */
export function entryOf(cid: CID, bytes: Uint8Array): DagEntry {
  if (cid.code === raw.code) return { cid, type: 'file', size: bytes.length }
  const node = cid.code === dagPb.code ? decodeUnixFs(bytes) : null
  if (node?.unixfs.isDirectory()) return { cid, type: 'directory', size: null }
  if (!node || node.unixfs.type === 'symlink') return { cid, type: 'other', size: null }
  return { cid, type: 'file', size: node.fileSize }
}

/** The content of a single-block file; undefined if it has more blocks. */
export function bytesOfFile(cid: CID, block: Uint8Array): Uint8Array | undefined {
  if (cid.code === raw.code) return block
  const node = cid.code === dagPb.code ? decodeUnixFs(block) : null
  if (!node || node.links.length > 0) return undefined
  const bytes = node.unixfs.data ?? new Uint8Array()
  return bytes.length === node.fileSize ? bytes : undefined
}

/** A part of a file: a number of bytes from an offset within one of its nodes. */
export interface FilePart {
  cid: CID
  offset: number
  length: number
}

/**
 * A range of a file, as parts of the nodes that its root links to: all parts, up to `most`. If there are more, the
 * first parts, and the rest as a part of the whole file. Undefined if the root's block does not tell.
 * @throws Error if a link cannot be decoded.
 */
export function partsOfRange(
  { cid, offset, length }: FilePart,
  root: Uint8Array,
  most: number,
): FilePart[] | undefined {
  const node = cid.code === dagPb.code ? decodeUnixFs(root) : null
  if (node?.unixfs.type !== 'file' || node.unixfs.data?.length || node.links.length !== node.sizes.length)
    return undefined
  const parts: FilePart[] = []
  let start = 0
  for (const [index, size] of node.sizes.entries()) {
    const from = Math.max(offset, start)
    const to = Math.min(offset + length, start + size)
    const [first] = parts
    if (from < to && first && parts.length === most)
      return [first, { cid, offset: offset + first.length, length: length - first.length }]
    if (from < to) parts.push({ cid: node.links.at(index).Hash, offset: from - start, length: to - from })
    start += size
  }
  return parts.length > 0 ? parts : undefined
}

/** See `Storage.ls`. */
export async function* listDirectory(
  root: CID,
  read: ReadBlock,
  signal: AbortSignal,
): AsyncGenerator<DirectoryEntry> {
  // No name can be in a shard twice, so a repeated shard was made to mislead.
  const shards = new Set<string>()

  async function* entries(cid: CID, above: Descent): AsyncGenerator<DirectoryEntry> {
    signal.throwIfAborted()
    const node = cid.code === dagPb.code ? decodeUnixFs(await read(cid)) : null
    if (!node?.unixfs.isDirectory()) throw new StorageError('invalid_object', `${cid} is not a directory`)
    const here = descend(above, cid, node.links.length)
    const isSharded = node.unixfs.type === 'hamt-sharded-directory'
    const prefix = isSharded ? shardDigits(cid, node) : 0
    for await (const links of node.links.some()) {
      signal.throwIfAborted()
      for (const { Name = '', Hash, Tsize = 0 } of links) {
        if (!isSharded || Name.length > prefix) yield { name: Name.slice(prefix), cid: Hash, size: Tsize }
        else if (!shards.has(`${Hash}`)) {
          shards.add(`${Hash}`)
          yield* entries(Hash, here)
        }
      }
    }
  }
  yield* entries(root, ROOT)
}
