import type { CID } from 'multiformats/cid'
import { ignoring } from '../../errors.ts'
import { StorageError } from '../port.ts'
import { assertSupported, blockKey, inlineBytes, isLeafCodec, readLinks } from './codecs.ts'
import { nameOf } from './contents.ts'
import { Frontier, Visited } from './frontier.ts'
import { distinctLinks, OverBounds } from './links.ts'

/** Blocks that are looked up or retrieved at a time. */
const CONCURRENCY = 32

/** Blocks by CID, in a folder or a backup. */
export interface StoredBlocks {
  /** The verified bytes of a block; null if it is missing or damaged. */
  read(cid: CID): Promise<Uint8Array | null>
  /** The size of a block, which counts as used from now on; null if it is missing. */
  use(cid: CID): Promise<number | null>
  write(cid: CID, bytes: Uint8Array): Promise<void>
}

export interface WalkOptions {
  blocks: StoredBlocks
  /** Gets and verifies a block that is not in the folder. Null: such a block ends the walk as `not_found`. */
  retrieve: ((cid: CID, signal: AbortSignal) => Promise<Uint8Array>) | null
  /** Called for each block that is now in the folder. `totalBytes` is set only for the root. */
  onBlock?: (block: { bytes: number; totalBytes?: number | null }) => void
  /** Called for each block that may have links and has none. */
  onLeaf?: (cid: CID, bytes: Uint8Array) => void
  signal: AbortSignal
}

/**
 * Visits every block of a DAG and stores the missing ones. A parent is stored before its children
 * are requested, so everything that has arrived can be reached from the root: a later walk continues
 * from there, and GC can tell what belongs to it.
 *
 * @returns the number of blocks and bytes of the DAG, each block counted once (see {@link Visited}).
 * @throws StorageError `invalid_object`, `not_found`, `unavailable`, whatever `retrieve` throws, or the signal's reason.
 */
export async function walkDag(root: CID, options: WalkOptions): Promise<{ blocks: number; bytes: number }> {
  const { blocks, onBlock } = options
  const ended = new AbortController()
  const signal = AbortSignal.any([options.signal, ended.signal])
  const visited = new Visited()
  const total = { blocks: 0, bytes: 0 }
  let underWay = 0
  let failure: { error: unknown } | null = null
  let wake = () => {}

  const retrieve = async (cid: CID): Promise<Uint8Array> => {
    if (!options.retrieve) throw new StorageError('not_found', `Block ${cid} is not stored here`)
    const bytes = await options.retrieve(cid, signal)
    await blocks.write(cid, bytes)
    return bytes
  }

  const frontier = new Frontier(
    async (cid) => (await distinctLinks(cid, (await blocks.read(cid)) ?? (await retrieve(cid)))).links,
  )

  const visit = async (cid: CID): Promise<void> => {
    assertSupported(cid)
    let bytes = await blocks.use(cid)
    let totalBytes: number | null = null
    if (isLeafCodec(cid)) {
      totalBytes = bytes ??= (await retrieve(cid)).length
    } else {
      const block = (bytes === null ? null : await blocks.read(cid)) ?? (await retrieve(cid))
      const read = await distinctLinks(cid, block)
      if (read.links.length > 0) frontier.push(cid)
      else options.onLeaf?.(cid, block)
      totalBytes = read.totalBytes
      bytes = block.length
    }
    total.blocks++
    total.bytes += bytes
    onBlock?.(cid === root ? { bytes, totalBytes } : { bytes })
  }

  const start = (cid: CID): void => {
    if (!visited.add(cid)) return
    underWay++
    visit(cid)
      .catch((error) => {
        failure ??= { error }
      })
      .finally(() => {
        underWay--
        wake()
      })
  }

  const onAbort = () => wake()
  signal.addEventListener('abort', onAbort)
  try {
    start(root)
    for (;;) {
      signal.throwIfAborted()
      if (failure) throw (failure as { error: unknown }).error
      if (underWay < CONCURRENCY && !frontier.isEmpty) {
        const cid = await frontier.next()
        if (cid) start(cid)
        continue
      }
      if (underWay === 0) return total
      await new Promise<void>((resolve) => {
        wake = resolve
      })
    }
  } finally {
    signal.removeEventListener('abort', onAbort)
    ended.abort()
  }
}

/** The keys of all blocks that can be reached from the roots. Missing blocks are skipped. */
export async function reachable(
  roots: Iterable<CID> | AsyncIterable<CID>,
  blocks: Pick<StoredBlocks, 'read'>,
  signal: AbortSignal,
): Promise<Set<string>> {
  const marked = new Set<string>()
  const visited = new Set<string>()
  const frontier = new Frontier(async (cid) => linksOf(cid, await blocks.read(cid)))
  const reach = (cid: CID): void => {
    if (!inlineBytes(cid)) marked.add(blockKey(cid))
    if (isLeafCodec(cid)) return
    if (visited.has(nameOf(cid))) return
    visited.add(nameOf(cid))
    frontier.push(cid)
  }
  for await (const root of roots) {
    reach(root)
    for (let cid = await frontier.next(); cid; cid = await frontier.next()) {
      signal.throwIfAborted()
      reach(cid)
    }
  }
  return marked
}

async function linksOf(cid: CID, bytes: Uint8Array | null): Promise<CID[]> {
  if (!bytes) return []
  const found = await distinctLinks(cid, bytes)
    .catch((error) => {
      // At any cost: blocks whose link was not seen would be removed.
      if (error instanceof OverBounds) return readLinks(cid, bytes)
      throw error
    })
    // A pin in progress may have a root or a block that turns out to be invalid.
    .catch(ignoring('invalid_object'))
  return found?.links ?? []
}
