import { UnixFS } from 'ipfs-unixfs'
import type { CID } from 'multiformats/cid'
import { StorageError } from '../port.ts'
import { SHARD_PLACES, UNIXFS_FIELDS } from './limits.ts'
import { type DagPbLinks, openDagPb, readVarint } from './pb-links.ts'

/** A file, directory, directory shard or symbolic link. */
export interface UnixFsNode {
  /** The UnixFS message except the sizes of a file's parts. */
  unixfs: UnixFS
  links: DagPbLinks
  /** The number of bytes that the node claims to be below each link; at most one more entry than it has links. */
  sizes: number[]
  /** The size of a file in bytes, as claimed by its node. At most `Number.MAX_SAFE_INTEGER`. */
  fileSize: number
}

/** Fields of a UnixFS message by number. */
const FIELD = { type: 1, data: 2, blockSize: 4, fanout: 6, mode: 7, mtime: 8 }
const KEPT = new Set([FIELD.type, FIELD.data, FIELD.fanout, FIELD.mode, FIELD.mtime])
/** Each kept field occurs once; a few more do no harm. */
const KEPT_LIMIT = 16

const VARINT = 0
const FIXED64 = 1
const BYTES = 2
const FIXED32 = 5

/** Null if the block is not a UnixFS file, directory or symbolic link. */
export function decodeUnixFs(bytes: Uint8Array): UnixFsNode | null {
  try {
    const { data, links } = openDagPb(bytes)
    if (!data) return null
    const { sizes, rest } = splitSizes(data, links.length + 1)
    const unixfs = UnixFS.unmarshal(rest)
    if (unixfs.type === 'metadata') return null
    const fileSize = sizes.reduce((sum, size) => sum + size, unixfs.data?.length ?? 0)
    return { unixfs, links, sizes, fileSize: Math.min(fileSize, Number.MAX_SAFE_INTEGER) }
  } catch {
    return null
  }
}

/**
 * The number of digits with which the names of a shard's links begin; they are the link's place in it. A name without
 * anything else leads to another shard.
 * @throws StorageError `invalid_object` if a shard has more places, or links, than allowed.
 */
export function shardDigits(cid: CID, { unixfs, links }: UnixFsNode): number {
  const places = Number(unixfs.fanout ?? 0n)
  if (places < 1 || places > SHARD_PLACES || links.length > places) {
    throw new StorageError('invalid_object', `${cid} has ${links.length} links at ${places} places`)
  }
  return (places - 1).toString(16).length
}

/** Extracts the sizes from a UnixFS message: the decoder of `ipfs-unixfs` creates a BigInt for each. */
function splitSizes(data: Uint8Array, limit: number): { sizes: number[]; rest: Uint8Array } {
  const sizes: number[] = []
  const kept: Uint8Array[] = []
  let fields = 0
  for (let at = 0; at < data.length; ) {
    if (++fields > UNIXFS_FIELDS) throw new Error(`more than ${UNIXFS_FIELDS} fields`)
    const key = readVarint(data, at)
    const field = Math.floor(key.value / 8)
    const end = endOfValue(data, key.end, key.value % 8)
    if (end > data.length) throw new Error('protobuf: unexpected end of data')
    if (field === FIELD.blockSize) {
      if (key.value % 8 !== VARINT) throw new Error('protobuf: wrong wire type of a size')
      if (sizes.length < limit) sizes.push(readVarint(data, key.end).value)
    } else if (KEPT.has(field)) {
      if (kept.push(data.subarray(at, end)) > KEPT_LIMIT) throw new Error('a field comes again and again')
    }
    at = end
  }
  return { sizes, rest: Buffer.concat(kept) }
}

function endOfValue(data: Uint8Array, at: number, wireType: number): number {
  switch (wireType) {
    case VARINT:
      return readVarint(data, at).end
    case FIXED64:
      return at + 8
    case FIXED32:
      return at + 4
    case BYTES: {
      const length = readVarint(data, at)
      return length.end + length.value
    }
    default:
      throw new Error(`protobuf: wire type ${wireType}`)
  }
}
