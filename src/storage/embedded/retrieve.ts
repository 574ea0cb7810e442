import { setTimeout as sleep } from 'node:timers/promises'
import type { CID } from 'multiformats/cid'
import { BLOCK_LIMIT } from '../dag/car.ts'
import { isLeafCodec } from '../dag/codecs.ts'
import { type StoredBlocks, walkDag } from '../dag/walk.ts'
import { badHostNode, type PinOptions, StorageError } from '../port.ts'
import { throttleProgress } from '../progress.ts'
import { WriteBehind } from './import.ts'
import type { BlockNetwork } from './network.ts'
import type { Pieces } from './pieces.ts'
import type { NodeBlocks } from './place.ts'
import { search } from './search.ts'

/** How long already connected peers have to respond if no host node could be reached. */
const GRACE_MS = 2_000
const REPEAT_SEARCH_MS = 30_000

export interface RetrieveDeps {
  blocks: NodeBlocks
  pieces: Pieces
  /** Starts the network side if it is not running yet. @throws StorageError if there is none. */
  network: () => Promise<BlockNetwork>
  routingUrl: string | null
}

/**
 * Retrieves a whole DAG into the folder. The network is used only if a block is missing.
 * @throws StorageError `stalled`, `bad_host_node`, `too_large`, `invalid_object`, `no_space`, `unavailable`, with `offline` also `not_found`, or the signal's reason.
 */
export async function retrieveDag(
  cid: CID,
  options: PinOptions,
  deps: RetrieveDeps,
): Promise<{ blocks: number; bytes: number }> {
  const { stallMs, maxBytes } = options
  const failed = new AbortController()
  const signal = AbortSignal.any([options.signal, failed.signal])
  const progress = throttleProgress(options.onProgress)
  let blocks = 0
  let bytes = 0
  let totalBytes: number | null = null
  let lastBlockAt = Date.now()

  const stalled = () =>
    failed.abort(new StorageError('stalled', `No block arrived for ${stallMs} ms (${blocks} before)`))
  const stall = setTimeout(stalled, stallMs)

  const onUnreachable = async (failures: Map<string, unknown>) => {
    await sleep(Math.min(GRACE_MS, stallMs / 2), undefined, { signal, ref: false }).catch(() => {})
    if (blocks > 0) return
    failed.abort(badHostNode(failures))
  }

  let retrieval: Promise<ReturnType<BlockNetwork['retrieval']>> | null = null
  const startSearch = async () => {
    await deps.blocks.admit()
    const network = await deps.network()
    stall.refresh()
    void search(cid, {
      network,
      origins: options.origins ?? [],
      routingUrl: deps.routingUrl,
      repeatMs: Math.min(REPEAT_SEARCH_MS, stallMs / 2),
      isIdle: () => Date.now() - lastBlockAt > stallMs / 4,
      onUnreachable: (failures) => void onUnreachable(failures),
      signal,
    })
    return network.retrieval()
  }

  const retrieve = async (missing: CID, wantSignal: AbortSignal) => {
    retrieval ??= startSearch()
    const bytes = await (await retrieval)(missing, wantSignal)
    if (bytes.length <= BLOCK_LIMIT) return bytes
    throw new StorageError(
      'invalid_object',
      `Block ${missing} has ${bytes.length} bytes, more than ${BLOCK_LIMIT}`,
    )
  }

  // A node is stored before its children are requested; leaves need not be, until the DAG is pinned.
  const writes = new WriteBehind(deps.blocks)
  const stored: StoredBlocks = {
    read: (cid) => deps.blocks.read(cid),
    use: (cid) => deps.blocks.use(cid),
    write: (cid, bytes) =>
      deps.blocks.gathers && isLeafCodec(cid) ? writes.put(cid, bytes) : deps.blocks.write(cid, bytes),
  }

  progress.report({ phase: 'searching', blocks, bytes, totalBytes })
  try {
    const total = await walkDag(cid, {
      blocks: stored,
      signal,
      retrieve: options.offline ? null : retrieve,
      onLeaf: (leaf, block) => deps.pieces.note(leaf, block),
      onBlock: (block) => {
        blocks++
        bytes += block.bytes
        totalBytes = block.totalBytes ?? totalBytes
        lastBlockAt = Date.now()
        stall.refresh()
        if (maxBytes != null && bytes > maxBytes) {
          failed.abort(new StorageError('too_large', `The DAG has more than ${maxBytes} bytes`))
        }
        progress.report({ phase: 'retrieving', blocks, bytes, totalBytes })
      },
    })
    await writes.settle()
    signal.throwIfAborted()
    progress.flush()
    return total
  } finally {
    clearTimeout(stall)
    failed.abort()
  }
}
