/** Reads CAR files from outside, and writes them. */
import { chunkReader, createDecoder } from '@ipld/car/decoder'
import { encode as encodeCbor } from '@ipld/dag-cbor'
import type { CID } from 'multiformats/cid'
import { encode as encodeVarint } from 'uint8-varint'
import { type Block, StorageError } from '../port.ts'
import { boundedReader } from './car-tree.ts'
import { assertSupported, inlineBytes, matches } from './codecs.ts'
import { BLOCKS_LIMIT, Contents } from './contents.ts'
import { distinctLinks } from './links.ts'

/** Bitswap cannot transfer a larger block, so nobody could retrieve a DAG that has one. */
export const BLOCK_LIMIT = 2 * 1024 * 1024

/** Limits for a CAR from outside. */
const BOUNDS = { blockBytes: BLOCK_LIMIT, blocks: BLOCKS_LIMIT }
/**
 * Limits for a CAR from Berth's own backup: pinned content may have any number of blocks, and larger ones, which older
 * versions accepted.
 */
const OWN_BOUNDS = { blockBytes: 2 * BLOCK_LIMIT, blocks: Number.POSITIVE_INFINITY }

export interface Car {
  root: CID
  /**
   * The blocks, each verified. Must be read to the end: only then is the CAR known to be complete. Identity CIDs carry
   * their own bytes and are left out.
   */
  blocks: AsyncGenerator<Block>
}

/**
 * Reads a CAR (version 1 or 2) from a stream, holding one block at a time.
 *
 * Everything that its blocks link to has to be in the CAR itself. If it were enough that this node has the rest, anyone
 * could get someone else's private content with a CAR that links to it.
 *
 * @param isOwn for a CAR from Berth's own backup; see {@link OWN_BOUNDS}.
 * @throws StorageError `invalid_object`, here or while the blocks are read; errors of the stream pass unchanged.
 */
export async function openCar(stream: AsyncIterable<Uint8Array>, isOwn = false): Promise<Car> {
  const bounds = isOwn ? OWN_BOUNDS : BOUNDS
  const iterator = stream[Symbol.asyncIterator]()
  let failure: { error: unknown } | null = null
  const readChunk = async () => {
    try {
      const { done, value } = await iterator.next()
      return done ? null : value
    } catch (error) {
      failure = { error }
      throw error
    }
  }
  const asInvalid = (error: unknown) => {
    if (failure) return failure.error
    return error instanceof StorageError ? error : invalid((error as Error).message, error)
  }
  const decoder = createDecoder(boundedReader(chunkReader(readChunk), bounds.blockBytes))

  async function* blocks(root: CID): AsyncGenerator<Block> {
    const contents = new Contents()
    contents.owe(root)
    try {
      for await (const { cid, bytes } of decoder.blocks()) {
        assertSupported(cid)
        if (inlineBytes(cid)) continue
        if (!(await matches(cid, bytes))) throw invalid(`block ${cid} is damaged`)
        await contents.add(cid, (await distinctLinks(cid, bytes)).links)
        if (contents.size > bounds.blocks) throw invalid(`more than ${bounds.blocks} blocks`)
        yield { cid, bytes }
      }
      if (contents.missing > 0) throw invalid(missing(contents.missing))
      while ((await readChunk()) !== null); // the index of a version 2
    } catch (error) {
      throw asInvalid(error)
    } finally {
      await iterator.return?.()
    }
  }

  try {
    const { roots } = await decoder.header()
    const [root] = roots
    if (!root || roots.length > 1) throw invalid(wrongRoots(roots.length))
    assertSupported(root)
    return { root, blocks: blocks(root) }
  } catch (error) {
    await iterator.return?.()
    throw asInvalid(error)
  }
}

const missing = (blocks: number) =>
  blocks === 1 ? 'a block that it links to is missing' : `${blocks} blocks that it links to are missing`

const wrongRoots = (roots: number) =>
  `it has ${roots === 0 ? 'no root' : `${roots} roots`}: a CAR with exactly one root can be imported, such as ` +
  '`ipfs dag export <cid>` makes'

const invalid = (message: string, cause?: unknown) =>
  new StorageError('invalid_object', `Not a valid CAR: ${message}`, { cause })

/** The beginning of a CARv1. */
export function carHeader(root: CID): Uint8Array {
  const header = encodeCbor({ version: 1, roots: [root] })
  return Buffer.concat([encodeVarint(header.length), header])
}

/** A block in CAR format, in two parts, so that its bytes are not copied. */
export function carSection({ cid, bytes }: Block): [head: Uint8Array, bytes: Uint8Array] {
  return [Buffer.concat([encodeVarint(cid.bytes.length + bytes.length), cid.bytes]), bytes]
}
