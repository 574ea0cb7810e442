/** UnixFS as both drivers read it: all that differs between them is how they get a block. */
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { BadPathError, NotFoundError, walkPath } from 'ipfs-unixfs-exporter'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { type DagEntry, type DirectoryEntry, StorageError } from './port.ts'

/** Deepest nesting of nodes: directories, their shards and the levels of a file. The profile needs 4 levels for an exabyte. */
const DEPTH_LIMIT = 256
/** Most links of all the nodes from the root to where a walk is, at about 800 bytes each. A node of 2 MiB has up to 50,000. */
const LINKS_LIMIT = 200_000

/** Reads a block from the node itself. @throws StorageError `not_found` where it is missing. */
export type ReadBlock = (cid: CID) => Promise<Uint8Array>

export interface UnixFsNode {
  unixfs: UnixFS
  links: dagPb.PBLink[]
}

/** How far down a walk is: through how many nodes it came, and how many links of theirs it holds. */
export interface Descent {
  nodes: number
  links: number
}

export const ROOT: Descent = { nodes: 0, links: 0 }

/** Goes down through a node of so many links. @throws StorageError `invalid_object` where that is too deep. */
export function descend({ nodes, links }: Descent, cid: CID, count: number): Descent {
  const next = { nodes: nodes + 1, links: links + count }
  if (next.nodes <= DEPTH_LIMIT && next.links <= LINKS_LIMIT) return next
  throw new StorageError('invalid_object', `${cid} is nested too deep`)
}

/** Null for a block that is not a file, directory or symbolic link of UnixFS. */
export function decodeUnixFs(bytes: Uint8Array): UnixFsNode | null {
  try {
    const { Data, Links } = dagPb.decode(bytes)
    const unixfs = Data && UnixFS.unmarshal(Data)
    return unixfs && unixfs.type !== 'metadata' ? { unixfs, links: Links } : null
  } catch {
    return null
  }
}

/** See `Storage.resolve`. */
export async function resolvePath(
  root: CID,
  path: string,
  read: ReadBlock,
  signal: AbortSignal,
): Promise<DagEntry> {
  const cid = path ? await follow(root, path, read, signal) : root
  const bytes = await read(cid)
  if (cid.code === raw.code) return { cid, type: 'file', size: bytes.length }
  const unixfs = cid.code === dagPb.code ? decodeUnixFs(bytes)?.unixfs : undefined
  if (unixfs?.isDirectory()) return { cid, type: 'directory', size: null }
  if (!unixfs || unixfs.type === 'symlink') return { cid, type: 'other', size: null }
  return { cid, type: 'file', size: Math.min(Number(unixfs.fileSize()), Number.MAX_SAFE_INTEGER) }
}

/** The CID at a path. @throws StorageError `not_found`, or `invalid_object` where a node on the way is no directory that can be read. */
async function follow(root: CID, path: string, read: ReadBlock, signal: AbortSignal): Promise<CID> {
  const missing = (cause?: unknown) =>
    new StorageError('not_found', `${root}/${path} does not exist`, { cause })
  const store = {
    get: async function* (cid: CID) {
      signal.throwIfAborted()
      yield await read(cid)
    },
  }
  let last = { cid: root, remainder: [path] }
  try {
    for await (const entry of walkPath(`${root}/${path}`, store, { signal })) last = entry
  } catch (error) {
    if (signal.aborted || error instanceof StorageError) throw error
    if (error instanceof NotFoundError || error instanceof BadPathError) throw missing(error)
    // Whatever else a made-up node does to the reader.
    throw new StorageError('invalid_object', `${root}/${path}: ${(error as Error).message}`, { cause: error })
  }
  // A file, or an object within a block, ends the walk wherever it is in the path.
  if (last.remainder.length > 0) throw missing()
  return last.cid
}

/** See `Storage.ls`. */
export async function* listDirectory(
  root: CID,
  read: ReadBlock,
  signal: AbortSignal,
): AsyncGenerator<DirectoryEntry> {
  // No name can be in a shard twice, so a shard that comes again is one that was made to mislead.
  const shards = new Set<string>()

  async function* entries(cid: CID, above: Descent): AsyncGenerator<DirectoryEntry> {
    signal.throwIfAborted()
    const node = cid.code === dagPb.code ? decodeUnixFs(await read(cid)) : null
    if (!node?.unixfs.isDirectory()) throw new StorageError('invalid_object', `${cid} is not a directory`)
    const here = descend(above, cid, node.links.length)
    const isSharded = node.unixfs.type === 'hamt-sharded-directory'
    // Each link of a shard begins with its place in it, in hexadecimal digits; a link of nothing more is a shard.
    const prefix = isSharded ? ((node.unixfs.fanout ?? 0n) - 1n).toString(16).length : 0
    for (const { Name = '', Hash, Tsize = 0 } of node.links) {
      if (!isSharded || Name.length > prefix) yield { name: Name.slice(prefix), cid: Hash, size: Tsize }
      else if (!shards.has(`${Hash}`)) {
        shards.add(`${Hash}`)
        yield* entries(Hash, here)
      }
    }
  }
  yield* entries(root, ROOT)
}
