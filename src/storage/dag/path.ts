/** Paths: names below a CID, through directories, their shards, and dag-cbor and dag-json objects. */
import * as dagPb from '@ipld/dag-pb'
import { murmur364 } from '@multiformats/murmur3'
import { CID } from 'multiformats/cid'
import { StorageError } from '../port.ts'
import { assertSupported, decodeObject, isLeafCodec } from './codecs.ts'
import { OBJECT_PATH_BYTES, turn } from './limits.ts'
import { encodeName } from './names.ts'
import { decodeUnixFs, shardDigits, type UnixFsNode } from './unixfs-node.ts'

/** Reads a block from the node itself. @throws StorageError `not_found` if it is missing. */
export type ReadBlock = (cid: CID) => Promise<Uint8Array>

/** Number of hash bits with which a sharded directory finds a name. */
const HASH_BITS = 64

/** A path ends at a value inside a block, which has no CID. */
export class InsideObject extends StorageError {
  constructor(cid: CID, names: string[]) {
    super('not_found', `${cid}/${names.join('/')} is a value within a block`)
  }
}

/**
 * The CIDs that a path leads through, from the root to its end.
 * @throws StorageError `not_found` ({@link InsideObject} for a value inside a block), or `invalid_object` if a node on
 *   the way is not a readable directory.
 */
export async function follow(
  root: CID,
  path: string[],
  read: ReadBlock,
  signal: AbortSignal,
): Promise<[CID, ...CID[]]> {
  const cids: [CID, ...CID[]] = [root]
  let names = path
  let cid = root
  while (names.length > 0) {
    // Cached blocks are returned without a pause: a long path through them would keep everyone else waiting.
    if (cids.length > 1) await turn()
    signal.throwIfAborted()
    const step = await below(cid, names, read, signal).catch((error) => {
      if (signal.aborted || error instanceof StorageError) throw error
      // Any other error that a made-up node causes in its decoder.
      const message = `${root}/${path.join('/')}: ${(error as Error).message}`
      throw new StorageError('invalid_object', message, { cause: error })
    })
    // A file ends the walk at any place in the path.
    if (!step) throw new StorageError('not_found', `${root}/${path.join('/')} does not exist`)
    cid = step.cid
    cids.push(cid)
    names = names.slice(step.used)
  }
  return cids
}

/** The next CID, and how many names lead to it; null if they lead to none. */
async function below(
  cid: CID,
  names: string[],
  read: ReadBlock,
  signal: AbortSignal,
): Promise<{ cid: CID; used: number } | null> {
  assertSupported(cid)
  const bytes = await read(cid)
  if (isLeafCodec(cid)) return null
  if (cid.code !== dagPb.code) return linkInObject(cid, bytes, names)
  const node = decodeUnixFs(bytes)
  if (!node) throw new StorageError('invalid_object', `${cid} is not UnixFS`)
  if (!node.unixfs.isDirectory()) return null
  const [name = ''] = names
  const isSharded = node.unixfs.type === 'hamt-sharded-directory'
  const found = isSharded
    ? await findInShards(cid, node, name, read, signal)
    : (await node.links.named(name))?.Hash
  return found ? { cid: found, used: 1 } : null
}

/** Searches the shards that the hash of the name leads to, one per level. */
async function findInShards(
  root: CID,
  rootNode: UnixFsNode,
  name: string,
  read: ReadBlock,
  signal: AbortSignal,
): Promise<CID | null> {
  const digest = await murmur364.encode(encodeName(name))
  const hash = Buffer.from(digest).readBigUInt64BE()
  let cid = root
  let node = rootNode
  for (let left = HASH_BITS; ; ) {
    signal.throwIfAborted()
    const digits = shardDigits(cid, node)
    const bits = Math.log2(Number(node.unixfs.fanout))
    left -= bits
    if (!Number.isInteger(bits) || bits === 0 || left < 0) return null
    const place = Number((hash >> BigInt(left)) & BigInt(2 ** bits - 1))
    const prefix = place.toString(16).toUpperCase().padStart(digits, '0')
    const link = (await node.links.named(`${prefix}${name}`)) ?? (await node.links.named(prefix))
    if (!link) return null
    if (link.Name !== prefix) return link.Hash
    cid = link.Hash
    const next = cid.code === dagPb.code ? decodeUnixFs(await read(cid)) : null
    if (next?.unixfs.type !== 'hamt-sharded-directory') {
      throw new StorageError('invalid_object', `${cid} is not a shard of ${root}`)
    }
    node = next
  }
}

/** @throws StorageError `invalid_object` if the block is too large to be searched; {@link InsideObject}. */
function linkInObject(cid: CID, bytes: Uint8Array, names: string[]): { cid: CID; used: number } | null {
  if (bytes.length > OBJECT_PATH_BYTES) {
    throw new StorageError('invalid_object', `${cid} is larger than ${OBJECT_PATH_BYTES} bytes`)
  }
  let value = decodeObject(cid, bytes)
  for (const [index, name] of names.entries()) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return null
    value = (value as Record<string, unknown>)[name]
    const link = CID.asCID(value)
    if (link) return { cid: link, used: index + 1 }
  }
  throw new InsideObject(cid, names)
}
