/**
 * The part of `Storage.build` that both drivers share: every link must lead to a block that was put, or that is in the
 * base.
 */
import type { CID } from 'multiformats/cid'
import { orAborted } from '../../lib/signals.ts'
import { type PutBlock, StorageError } from '../port.ts'
import { BLOCK_LIMIT } from './car.ts'
import { assertSupported, inlineBytes, isLeafCodec, matches } from './codecs.ts'
import { BLOCKS_LIMIT, Contents, nameOf } from './contents.ts'
import { distinctLinks } from './links.ts'
import type { ReadBlock } from './path.ts'

/** Blocks of the base that are read at a time. */
const READS = 16

/**
 * Runs `make` and stores the blocks that it puts, each block once.
 * @param node.read Reads a block of the base.
 * @param node.write Stores a verified block.
 * @returns the root, whose blocks have all been passed to `write` or are in `base`.
 * @throws StorageError as documented for `Storage.build`, errors of `make` or the node, or the signal's reason.
 */
export async function buildDag(
  make: (put: PutBlock) => Promise<CID>,
  base: CID | null,
  node: { read: ReadBlock; write: PutBlock },
  signal: AbortSignal,
): Promise<CID> {
  const contents = new Contents()
  let underWay = 0
  const take: PutBlock = async ({ cid, bytes }) => {
    signal.throwIfAborted()
    assertSupported(cid)
    if (inlineBytes(cid) || contents.has(cid)) return
    if (bytes.length > BLOCK_LIMIT) throw invalid(`block ${cid} has ${bytes.length} bytes`)
    if (!(await matches(cid, bytes))) throw invalid(`block ${cid} is damaged`)
    await contents.add(cid, (await distinctLinks(cid, bytes)).links)
    if (contents.size > BLOCKS_LIMIT) {
      throw new StorageError('too_large', `The DAG has more than ${BLOCKS_LIMIT} new blocks`)
    }
    await node.write({ cid, bytes })
  }
  const put: PutBlock = async (block) => {
    underWay++
    await take(block)
    underWay--
  }
  const root = await orAborted(make(put), signal)
  if (underWay > 0) throw new Error('A block was put that nobody waited for, or that was refused')
  assertSupported(root)
  contents.owe(root)
  await settle(contents, base, node.read, signal)
  return root
}

/**
 * Checks that all missing blocks are in the base. It first reads the blocks of the base that the new DAG does not
 * reuse: the replaced ones, whose links mostly occur in their replacements too. Only if a block came from another place
 * does it scan the rest.
 */
async function settle(
  contents: Contents,
  base: CID | null,
  read: ReadBlock,
  signal: AbortSignal,
): Promise<void> {
  const visited = new Set<string>()
  const replaced: CID[] = []
  const kept: CID[] = []
  const visit = (cid: CID): void => {
    const isKept = contents.settle(cid)
    if (isLeafCodec(cid) || visited.has(nameOf(cid))) return
    visited.add(nameOf(cid))
    const ahead = isKept ? kept : replaced
    ahead.push(cid)
  }
  if (base) visit(base)
  while (contents.missing > 0) {
    signal.throwIfAborted()
    const batch = (replaced.length > 0 ? replaced : kept).splice(0, READS)
    if (batch.length === 0) throw invalid(`blocks neither new nor in ${base}: ${contents.missing}`)
    const blocks = await Promise.all(batch.map(async (cid) => ({ cid, bytes: await read(cid) })))
    for (const { cid, bytes } of blocks) {
      for (const link of (await distinctLinks(cid, bytes)).links) visit(link)
    }
  }
}

const invalid = (message: string) => new StorageError('invalid_object', `Not a DAG to keep: ${message}`)
