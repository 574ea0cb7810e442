import { CID } from 'multiformats/cid'
import { buildDag } from '../build.ts'
import type { Block, PutBlock } from '../port.ts'
import { storeBlocks } from './car.ts'
import { blockReader } from './read.ts'
import type { KuboRpc } from './rpc.ts'

/** A CAR begins with its root, which is not known yet: an identity CID of nothing stands for it. */
const NO_ROOT = CID.parse('bafkqaaa')

/**
 * Stores the blocks of a DAG that is built, see `Storage.build`; the pin is the caller's. They go to Kubo in
 * one call, as they come. @returns its root.
 */
export async function buildBlocks(
  rpc: KuboRpc,
  make: (put: PutBlock) => Promise<CID>,
  base: CID | null,
  signal: AbortSignal,
): Promise<CID> {
  const { readable, writable } = new TransformStream<Block, Block>()
  const blocks = writable.getWriter()
  const ended = new AbortController()
  const combined = AbortSignal.any([signal, ended.signal])
  const node = { read: blockReader(rpc, combined), write: (block: Block) => blocks.write(block) }
  const sending = async (): Promise<void> => {
    await storeBlocks(rpc, NO_ROOT, readable, combined)
  }
  const building = async (): Promise<CID> => {
    const root = await buildDag(make, base, node, combined)
    await blocks.close()
    return root
  }
  try {
    const [root] = await Promise.all([building(), sending()])
    return root
  } catch (error) {
    // What is left of the two ends too: a block that waits to be sent, or the wait for the next one.
    ended.abort(error)
    blocks.abort(error).catch(() => {})
    throw error
  }
}
