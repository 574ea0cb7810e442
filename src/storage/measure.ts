import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { mimeTypeOf } from './mime.ts'
import { type DagStat, StorageError } from './port.ts'
import { type Descent, decodeUnixFs, descend, type ReadBlock, ROOT, type UnixFsNode } from './unixfs.ts'

/** Leaves of one node that are asked for in one call. */
const BATCH = 256
/** What the columns hold that sizes and numbers of files end up in; larger sums stay there. */
const SIZE_LIMIT = Number.MAX_SAFE_INTEGER
const FILES_LIMIT = 2 ** 31 - 1

/** A node's own blocks. Each call has its own bound, and throws `not_found` where a block is missing. */
export interface LocalBlocks {
  /** The bytes of a block. */
  read: ReadBlock
  /** The sizes of up to 256 blocks of the raw codec, in their order. */
  sizes(cids: CID[]): Promise<number[]>
  /** The size of all the blocks of a DAG, each counted once. */
  totalSize(cid: CID): Promise<number>
  /** The first bytes of a file. */
  sample(cid: CID): Promise<Uint8Array>
}

interface Measure {
  size: number
  files: number
  type: 'file' | 'directory' | 'other'
}

/**
 * Describes a DAG, see `Storage.stat` and {@link DagStat}.
 * @throws StorageError `invalid_object` when it is nested too deep, whatever `blocks` throws, or the signal's reason.
 */
export async function describeDag(root: CID, blocks: LocalBlocks, signal: AbortSignal): Promise<DagStat> {
  const { type, ...total } = await measureDag(root, blocks, signal)
  if (type === 'directory') return { ...total, mimeType: 'directory' }
  if (type === 'other') return { ...total, mimeType: 'application/octet-stream' }
  return { ...total, mimeType: await mimeTypeOf(await sampleOf(root, blocks)) }
}

/** Empty for a file whose nodes contradict themselves, so that it cannot be read as one. */
async function sampleOf(file: CID, blocks: LocalBlocks): Promise<Uint8Array> {
  try {
    return await blocks.sample(file)
  } catch (error) {
    if (error instanceof StorageError && error.code === 'invalid_object') return new Uint8Array()
    throw error
  }
}

async function measureDag(root: CID, blocks: LocalBlocks, signal: AbortSignal): Promise<Measure> {
  // Every node is remembered, as a few nodes can have more paths than anybody can walk.
  const measured = new Map<string, Measure>()

  const measure = async (cid: CID, above: Descent): Promise<Measure> => {
    signal.throwIfAborted()
    const known = measured.get(`${cid}`)
    if (known) return known
    const node = cid.code === dagPb.code ? decodeUnixFs(await blocks.read(cid)) : null
    const result = node
      ? await measureNode(node, descend(above, cid, node.links.length))
      : ({ size: await blocks.totalSize(cid), files: 1, type: 'other' } as const)
    measured.set(`${cid}`, result)
    return result
  }

  const measureNode = async ({ unixfs, links }: UnixFsNode, here: Descent): Promise<Measure> => {
    const isDirectory = unixfs.isDirectory()
    let size = isDirectory ? 0 : (unixfs.data?.length ?? 0)
    let files = 0
    const add = (child: Measure) => {
      size = Math.min(size + child.size, SIZE_LIMIT)
      files = Math.min(files + child.files, FILES_LIMIT)
    }
    const cids = links.map(({ Hash }) => Hash)
    const leaves = cids.filter(({ code }) => code === raw.code)
    for (let i = 0; i < leaves.length; i += BATCH) {
      signal.throwIfAborted()
      for (const leaf of await blocks.sizes(leaves.slice(i, i + BATCH))) add(leafOf(leaf))
    }
    // One after the other: side by side, the whole DAG would be in memory.
    for (const cid of cids) if (cid.code !== raw.code) add(await measure(cid, here))
    if (isDirectory) return { size, files, type: 'directory' }
    return { size, files: 1, type: unixfs.type === 'symlink' ? 'other' : 'file' }
  }

  return root.code === raw.code ? leafOf((await blocks.sizes([root]))[0] ?? 0) : measure(root, ROOT)
}

/** A raw block is a whole small file, or a piece of a larger one. */
const leafOf = (size: number): Measure => ({ size, files: 1, type: 'file' })
