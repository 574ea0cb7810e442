/**
 * The tree in the beginning of an unverified CAR. The dashboard shows it in a browser, so this uses nothing from Node.
 * For imports, `car.ts` reads a CAR, which accepts it completely or not at all.
 */
import { type BytesReader, chunkReader, createDecoder } from '@ipld/car/decoder'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { bytes as byteArrays } from 'multiformats'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { identity } from 'multiformats/hashes/identity'
import { sha256, sha512 } from 'multiformats/hashes/sha2'

/** More than any node accepts as a block. */
const BLOCK_LIMIT = 4_194_304
/** Maximum number of blocks read: a CAR of small blocks has more than a page can hold. */
const BLOCKS_LIMIT = 50_000

/** A digest that is truncated further does not identify content reliably. */
const DIGEST_BYTES = 20

const hashers = new Map([sha256, sha512].map((hasher) => [hasher.code as number, hasher]))

/** The bytes do not begin like a CAR. */
export class NoCarError extends Error {}

/** The nodes of a CAR, as far as it was read. */
export interface CarTree {
  roots: CID[]
  /** dag-pb nodes by their CIDs; for all other blocks, only their size in bytes. */
  blocks: Map<string, Uint8Array | number>
  /** The number of skipped blocks: they do not match their CIDs, or cannot be verified here. */
  refused: number
  /** The number of bytes read, up to the end of the last block. */
  bytes: number
  /** `cut` at the limit; `broken` if it is damaged, or ends within a block. */
  end: 'whole' | 'cut' | 'broken'
}

interface CarEntry {
  name: string
  cid: string
  /** `unknown` if its block was not read; `other` if it is not a UnixFS file or folder. */
  type: 'file' | 'directory' | 'other' | 'unknown'
  /** The size of a file in bytes; for other entries, the size stated by the folder, if there is one. */
  size: number | null
}

/**
 * Reads a CAR (version 1 or 2), up to a limit. It may have any number of roots, and lack any of its blocks.
 * @param total its size in bytes; the stream may end at the limit.
 * @throws NoCarError, and whatever the stream throws.
 */
export async function readCarTree(
  stream: AsyncIterable<Uint8Array>,
  { total, limit }: { total: number; limit: number },
): Promise<CarTree> {
  const chunks = stream[Symbol.asyncIterator]()
  let arrived = 0
  let failure: { error: unknown } | undefined
  const readChunk = async () => {
    if (arrived >= limit) return null
    try {
      const { done, value } = await chunks.next()
      if (done) return null
      arrived += value.length
      return value
    } catch (error) {
      failure = { error }
      throw error
    }
  }
  const hasMore = () => arrived >= limit && total > limit
  const reader = boundedReader(chunkReader(readChunk), BLOCK_LIMIT)
  const tree: CarTree = { roots: [], blocks: new Map(), refused: 0, bytes: 0, end: 'whole' }
  try {
    const decoder = createDecoder(reader)
    const header = await decoder.header().catch((error) => {
      throw failure ? failure.error : new NoCarError('the beginning of a CAR is missing', { cause: error })
    })
    tree.roots = header.roots
    let count = 0
    for await (const { cid, bytes } of decoder.blocks()) {
      if (++count > BLOCKS_LIMIT) return { ...tree, end: 'cut' }
      tree.bytes = reader.pos
      const key = keyOf(cid)
      if (tree.blocks.has(key)) continue
      if (!(await isBlockOf(cid, bytes))) tree.refused++
      // The reader's bytes are part of a larger buffer, which would stay in memory with them, so they are copied.
      else tree.blocks.set(key, cid.code === dagPb.code ? bytes.slice() : bytes.length)
    }
    return { ...tree, end: hasMore() ? 'cut' : 'whole' }
  } catch (error) {
    if (error instanceof NoCarError) throw error
    if (failure) throw failure.error
    return { ...tree, end: hasMore() ? 'cut' : 'broken' }
  } finally {
    await chunks.return?.()
  }
}

/**
 * A reader that trusts no length: the decoder would buffer as many bytes as a CAR announces, and seek back as far.
 * @param most maximum bytes of a part. Reading a larger or negative length throws.
 */
export function boundedReader(reader: BytesReader, most: number): BytesReader {
  const check = (length: number) => {
    if (!(length >= 0 && length <= most)) throw new Error(`a part of ${length} bytes`)
  }
  return {
    upTo: (length) => reader.upTo(length),
    exactly: async (length, seek) => {
      check(length)
      return reader.exactly(length, seek)
    },
    seek: (length) => {
      check(length)
      reader.seek(length)
    },
    get pos() {
      return reader.pos
    },
  }
}

async function isBlockOf(cid: CID, bytes: Uint8Array): Promise<boolean> {
  const { code, digest } = cid.multihash
  const hasher = hashers.get(code)
  if (!hasher) return code === identity.code && byteArrays.equals(digest, bytes)
  const computed = await hasher.digest(bytes)
  return (
    digest.length >= DIGEST_BYTES && byteArrays.equals(computed.digest.subarray(0, digest.length), digest)
  )
}

/** The same for versions 0 and 1 of a CID. */
const keyOf = (cid: CID): string => `${cid.toV1()}`

/** The entry at a CID. @param name in its folder. @param declared its size, as stated by the folder. */
export function carEntry(tree: CarTree, cid: CID, name: string, declared: number | null): CarEntry {
  const entry = { name, cid: `${cid}` }
  const block = blockOf(tree, cid)
  if (cid.code === raw.code)
    return { ...entry, type: 'file', size: block === undefined ? declared : sizeOf(block) }
  if (cid.code !== dagPb.code) return { ...entry, type: 'other', size: declared }
  if (block === undefined || typeof block === 'number') return { ...entry, type: 'unknown', size: declared }
  const unixfs = decode(block)?.unixfs
  if (unixfs?.isDirectory()) return { ...entry, type: 'directory', size: declared }
  if (!unixfs || unixfs.type === 'symlink') return { ...entry, type: 'other', size: declared }
  return { ...entry, type: 'file', size: Number(unixfs.fileSize()) }
}

const sizeOf = (block: Uint8Array | number): number => (typeof block === 'number' ? block : block.length)

function blockOf({ blocks }: CarTree, cid: CID): Uint8Array | number | undefined {
  return cid.multihash.code === identity.code ? cid.multihash.digest : blocks.get(keyOf(cid))
}

/**
 * Some of the entries of a folder.
 * @returns also whether there are more, and whether blocks of the folder itself were not read.
 */
export function listCarFolder(
  tree: CarTree,
  folder: string,
  { offset, limit }: { offset: number; limit: number },
): { entries: CarEntry[]; hasMore: boolean; isIncomplete: boolean } {
  const entries: CarEntry[] = []
  let index = 0
  for (const link of linksOf(tree, CID.parse(folder))) {
    if (link === 'missing') return { entries, hasMore: false, isIncomplete: true }
    if (index++ < offset) continue
    if (entries.length === limit) return { entries, hasMore: true, isIncomplete: false }
    entries.push(carEntry(tree, link.cid, link.name, link.size))
  }
  return { entries, hasMore: false, isIncomplete: false }
}

interface Link {
  name: string
  cid: CID
  size: number | null
}

/** The links of a folder, through all its shards; unread shards come last, as a single item. */
function* linksOf(tree: CarTree, root: CID): Generator<Link | 'missing'> {
  // A repeated shard was made to mislead: no name can be in it twice.
  const known = new Set([keyOf(root)])
  const ahead = [root]
  let isMissing = false
  for (let cid = ahead.pop(); cid; cid = ahead.pop()) {
    const block = blockOf(tree, cid)
    const node = block instanceof Uint8Array && cid.code === dagPb.code ? decode(block) : undefined
    if (!node?.unixfs.isDirectory()) {
      isMissing = true
      continue
    }
    const isSharded = node.unixfs.type === 'hamt-sharded-directory'
    const prefix = isSharded ? Math.max(Number(node.unixfs.fanout ?? 0n) - 1, 0).toString(16).length : 0
    for (const { Name = '', Hash, Tsize = null } of node.links) {
      if (!isSharded || Name.length > prefix) yield { name: Name.slice(prefix), cid: Hash, size: Tsize }
      else if (!known.has(keyOf(Hash))) {
        known.add(keyOf(Hash))
        ahead.push(Hash)
      }
    }
  }
  if (isMissing) yield 'missing'
}

interface Node {
  unixfs: UnixFS
  links: dagPb.PBLink[]
}

/** Decoding a large node takes a moment, and it may be in a folder under many names. */
const decoded = new WeakMap<Uint8Array, Node | null>()

/** Null if the block is not UnixFS. */
function decode(block: Uint8Array): Node | null {
  let node = decoded.get(block)
  if (node !== undefined) return node
  try {
    const { Data, Links } = dagPb.decode(block)
    node = Data ? { unixfs: UnixFS.unmarshal(Data), links: Links } : null
  } catch {
    node = null
  }
  decoded.set(block, node)
  return node
}
