import * as dagPb from '@ipld/dag-pb'
import { fileTypeFromBuffer } from 'file-type'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { ignoring } from '../../errors.ts'
import { untilAborted } from '../../lib/signals.ts'
import { type AddEntry, type DagStat, StorageError } from '../port.ts'
import { undecodable } from './codecs.ts'
import { BYTES_PER_BLOCK, FREE_BLOCKS, FREE_STRUCTURE_BYTES } from './limits.ts'
import type { ReadBlock } from './path.ts'
import type { DagPbLinks } from './pb-links.ts'
import { type Descent, descend, ROOT } from './unixfs.ts'
import { decodeUnixFs, type UnixFsNode } from './unixfs-node.ts'

/** Leaves of one node that are requested in one call. */
const BATCH = 256
/** Nodes that are read ahead: the leaves of many files are nodes, and each read is a call. */
const READ_AHEAD = 8
/** The largest values of the columns for sizes and numbers of files; larger sums are capped. */
const SIZE_LIMIT = Number.MAX_SAFE_INTEGER
const FILES_LIMIT = 2 ** 31 - 1

/** A node's own blocks. Each call has its own limit, and throws `not_found` if a block is missing. */
export interface LocalBlocks {
  /** The bytes of a block. */
  read: ReadBlock
  /** The sizes of up to 256 blocks of the raw codec, in their order. */
  sizes(cids: CID[]): Promise<number[]>
  /** The size of a piece of a file that is a node without links, if known; such a block exists. */
  pieceSize?(cid: CID): Promise<number | undefined>
  /** The size of all the blocks of a DAG, each counted once. */
  totalSize(cid: CID): Promise<number>
  /** The first bytes of a file. */
  sample(cid: CID): Promise<Uint8Array>
}

interface Measure {
  size: number
  /** The number of blocks that a reader of it meets: a block that is linked twice is met twice. */
  blocks: number
  files: number
  type: 'file' | 'directory' | 'other'
}

/**
 * Describes a DAG; see `Storage.stat` and {@link DagStat}.
 * @throws StorageError `invalid_object` if it is nested too deeply or has a hollow file (see `limits.ts`), whatever
 *   `blocks` throws, or the signal's reason.
 */
export async function describeDag(root: CID, blocks: LocalBlocks, signal: AbortSignal): Promise<DagStat> {
  const { type, size, files } = await measureDag(root, blocks, signal)
  const total = { size, files }
  if (type === 'directory') return { ...total, mimeType: 'directory' }
  if (type === 'other') return { ...total, mimeType: 'application/octet-stream' }
  return { ...total, mimeType: await mimeTypeOf(await sampleOf(root, blocks)) }
}

/** Empty if a file's nodes contradict each other, so that it cannot be read as one. */
const sampleOf = async (file: CID, blocks: LocalBlocks): Promise<Uint8Array> =>
  (await blocks.sample(file).catch(ignoring('invalid_object'))) ?? new Uint8Array()

async function measureDag(root: CID, blocks: LocalBlocks, signal: AbortSignal): Promise<Measure> {
  // Every node is remembered, because a few nodes can have more paths than anyone can walk.
  const measured = new Map<string, Measure>()
  const begun = new Map<string, Promise<Uint8Array>>()
  /** Bytes of the nodes besides file content, each node counted once. */
  let structure = 0

  const readAhead = (children: Counted[]) => {
    for (const { cid } of children) {
      const key = `${cid}`
      if (begun.size >= READ_AHEAD) return
      if (cid.code !== dagPb.code || measured.has(key) || begun.has(key)) continue
      const bytes = blocks.read(cid)
      bytes.catch(() => {}) // it is awaited when its node is measured, or another error came first
      begun.set(key, bytes)
    }
  }
  const read = (cid: CID) => {
    const bytes = begun.get(`${cid}`) ?? blocks.read(cid)
    begun.delete(`${cid}`)
    return bytes
  }

  const measure = async (cid: CID, above: Descent): Promise<Measure> => {
    signal.throwIfAborted()
    const known = measured.get(`${cid}`)
    if (known) return known
    const bytes = cid.code === dagPb.code ? await read(cid) : null
    const node = bytes && decodeUnixFs(bytes)
    if (node) structure += bytes.length - contentOf(node)
    const result = node
      ? await measureNode(cid, node, descend(above, cid, node.links.length))
      : ({ size: await blocks.totalSize(cid), blocks: 1, files: 1, type: 'other' } as const)
    measured.set(`${cid}`, result)
    return result
  }

  const measureNode = async (cid: CID, { unixfs, links }: UnixFsNode, here: Descent): Promise<Measure> => {
    const isDirectory = unixfs.isDirectory()
    let size = contentOf({ unixfs })
    let met = 1
    let files = 0
    const add = (child: Measure, times: number) => {
      size = Math.min(size + child.size * times, SIZE_LIMIT)
      met = Math.min(met + child.blocks * times, SIZE_LIMIT)
      files = Math.min(files + child.files * times, FILES_LIMIT)
    }
    const { leaves, nodes } = await countLinks(cid, links)
    for (let i = 0; i < leaves.length; i += BATCH) {
      signal.throwIfAborted()
      const some = leaves.slice(i, i + BATCH)
      const sizes = await blocks.sizes(some.map((leaf) => leaf.cid))
      for (const [index, leaf] of some.entries()) add(leafOf(sizes[index] ?? 0), leaf.times)
    }
    const unknown: Counted[] = []
    for (let i = 0; i < nodes.length; i += BATCH) {
      signal.throwIfAborted()
      const some = nodes.slice(i, i + BATCH)
      const sizes = await Promise.all(some.map(({ cid }) => blocks.pieceSize?.(cid)))
      for (const [index, node] of some.entries()) {
        const known = sizes[index]
        if (known === undefined) unknown.push(node)
        else add(leafOf(known), node.times)
      }
    }
    // The children are measured one after another: in parallel, the whole DAG would be in memory.
    for (const [index, child] of unknown.entries()) {
      readAhead(unknown.slice(index, index + READ_AHEAD))
      add(await measure(child.cid, here), child.times)
    }
    if (isDirectory) return { size, blocks: met, files, type: 'directory' }
    if (met > FREE_BLOCKS && size / BYTES_PER_BLOCK < met) {
      throw new StorageError('invalid_object', `${cid} is a file of ${met} blocks with ${size} bytes in them`)
    }
    return { size, blocks: met, files: 1, type: unixfs.type === 'symlink' ? 'other' : 'file' }
  }

  if (root.code === raw.code) return leafOf((await blocks.sizes([root]))[0] ?? 0)
  const total = await measure(root, ROOT)
  return { ...total, size: Math.max(total.size, Math.min(structure - FREE_STRUCTURE_BYTES, SIZE_LIMIT)) }
}

/** The bytes of a file, or of a link's target, that are inside the node. */
const contentOf = ({ unixfs }: Pick<UnixFsNode, 'unixfs'>): number =>
  unixfs.isDirectory() ? 0 : (unixfs.data?.length ?? 0)

/** A raw block is a whole small file, or a piece of a larger one. */
const leafOf = (size: number): Measure => ({ size, blocks: 1, files: 1, type: 'file' })

interface Counted {
  cid: CID
  /** How often the node links to it. */
  times: number
}

/** The CIDs that a node links to, each once: blocks of the raw codec, and others. */
async function countLinks(cid: CID, links: DagPbLinks): Promise<{ leaves: Counted[]; nodes: Counted[] }> {
  const counted = new Map<string, Counted>()
  try {
    for await (const some of links.some()) {
      for (const { Hash } of some) {
        const known = counted.get(`${Hash}`)
        if (known) known.times++
        else counted.set(`${Hash}`, { cid: Hash, times: 1 })
      }
    }
  } catch (error) {
    throw undecodable(cid, error as Error)
  }
  const all = [...counted.values()]
  const isLeaf = (link: Counted) => link.cid.code === raw.code
  return { leaves: all.filter(isLeaf), nodes: all.filter((link) => !isLeaf(link)) }
}

/** Bytes from the beginning of a file that determine its type. */
export const MIME_SAMPLE = 4100
/** More than the longest magic number at the beginning of a format. */
const FILLED_BYTES = 64

/**
 * Text formats of `file-type`. The magic numbers of binary formats may be words: a table may begin with `BMI`, but the
 * header of a bitmap contains zeros.
 */
const TEXT_FORMATS =
  /^(text\/|application\/(pdf|rtf|postscript|eps|xml|pgp-encrypted|x-ms-regedit)$|model\/stl$|[\w.-]+\/[\w.-]+\+xml$)/

/** The MIME type of a file, detected from its first {@link MIME_SAMPLE} bytes. */
export async function mimeTypeOf(sample: Uint8Array): Promise<string> {
  const isTextual = isText(sample)
  const known = (await fileTypeFromBuffer(sample))?.mime
  const isCredible = known !== undefined && (!isTextual || TEXT_FORMATS.test(known))
  if (isCredible && (await isTypeOfItsBytes(sample, known))) return known
  return isTextual ? 'text/plain' : 'application/octet-stream'
}

/** False for a type that `file-type` only detects from the zeros with which it pads a short sample. */
async function isTypeOfItsBytes(sample: Uint8Array, type: string): Promise<boolean> {
  if (sample.length >= MIME_SAMPLE) return true
  const other = Buffer.concat([sample], sample.length + FILLED_BYTES).fill(0x5a, sample.length)
  return (await fileTypeFromBuffer(other))?.mime === type
}

function isText(sample: Uint8Array): boolean {
  if (sample.length === 0 || sample.includes(0)) return false
  try {
    // A character may be cut off at the end of the sample; `stream` allows that.
    new TextDecoder('utf-8', { fatal: true }).decode(sample, { stream: true })
    return true
  } catch {
    return false
  }
}

/** Measures files during their import, so that the node does not have to be asked for their sizes and types. */
export class ImportMeter {
  readonly paths: string[] = []
  readonly #sample: Uint8Array[] = []
  #sampled = 0
  #size = 0

  /** The unchanged entries, to be read once. Ends when the signal fires, even while a source hangs. */
  async *watch(entries: AsyncIterable<AddEntry>, signal: AbortSignal): AsyncGenerator<AddEntry> {
    for await (const { path, content } of untilAborted(entries, signal)) {
      this.paths.push(path)
      yield { path, content: this.#count(untilAborted(content, signal), this.paths.length === 1) }
    }
  }

  async *#count(content: AsyncIterable<Uint8Array>, isFirst: boolean): AsyncGenerator<Uint8Array> {
    for await (const chunk of content) {
      this.#size += chunk.length
      if (isFirst && this.#sampled < MIME_SAMPLE) {
        // A copy: a small view would keep the whole chunk in memory.
        const part = Uint8Array.from(chunk.subarray(0, MIME_SAMPLE - this.#sampled))
        this.#sample.push(part)
        this.#sampled += part.length
      }
      yield chunk
    }
  }

  /**
   * True if the root is the file itself, and not a directory around it.
   * @throws StorageError `invalid_object` if there was no entry.
   */
  get isFile(): boolean {
    const [path] = this.paths
    if (path === undefined) throw new StorageError('invalid_object', 'There is nothing to add')
    return this.paths.length === 1 && !path.includes('/')
  }

  /** The result of `Storage.stat` for the import, once it has ended. */
  async stat(): Promise<DagStat> {
    const mimeType = this.isFile ? await mimeTypeOf(Buffer.concat(this.#sample)) : 'directory'
    return { size: this.#size, files: this.paths.length, mimeType }
  }
}
