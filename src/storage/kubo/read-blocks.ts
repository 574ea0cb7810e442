/**
 * Reads the blocks of a DAG that Kubo has. As a CAR (`dag/export`), they take Kubo and Berth twice as long: Kubo sends
 * each in several parts. `cat` reads many leaves in a single call; its output is split by the sizes that their parents
 * claim.
 */
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { BLOCK_LIMIT } from '../dag/car.ts'
import { inlineBytes, isLeafCodec, matches } from '../dag/codecs.ts'
import { Frontier, Visited } from '../dag/frontier.ts'
import { LARGE_BLOCK_BYTES, turn } from '../dag/limits.ts'
import { distinctLinks } from '../dag/links.ts'
import type { Block } from '../port.ts'
import { asStorageError } from './kubo-errors.ts'
import { IDLE_MS, readBlock } from './read.ts'
import type { KuboStream } from './stream.ts'

/** Leaves per call. Kubo holds all of them in memory, whatever size was claimed. */
const LEAVES = 32
/**
 * Bytes of blocks that are collected before they are passed on; the same number is being transferred at the same time.
 */
const BATCH_BYTES = 4 * 1024 * 1024
/** Nodes with links that are read ahead: of one parent, and in total. */
const AHEAD = 4
const MAX_AHEAD = 16

/** A block to pass on: one that was read, or a leaf that claims to have this many bytes. */
type Wanted = Block | { cid: CID; size: number }

/** See `Storage.blocks`. */
export async function* readBlocks(stream: KuboStream, root: CID, given: AbortSignal): AsyncGenerator<Block> {
  const ended = new AbortController()
  const signal = AbortSignal.any([given, ended.signal])
  let underWay: Promise<Block[]> | undefined
  try {
    for await (const batch of inBatches(walk(stream, root, signal))) {
      const next = readBatch(stream, batch, signal)
      next.catch(() => {}) // it is awaited below, or nobody continues to read
      if (underWay) yield* await underWay
      underWay = next
    }
    if (underWay) yield* await underWay
  } finally {
    ended.abort()
  }
}

/** All blocks of a DAG, each once and depth first; leaves with a known size are not read yet. */
async function* walk(stream: KuboStream, root: CID, signal: AbortSignal): AsyncGenerator<Wanted> {
  const visited = new Visited()
  const claimed = new WeakMap<CID, number>()
  const nodes = new NodesAhead((cid) => readBlock(stream, cid, signal), visited)
  let last: Block | undefined
  const frontier = new Frontier(async (cid) => {
    const bytes = last?.cid === cid ? last.bytes : await readBlock(stream, cid, signal)
    const { links, sizes } = await distinctLinks(cid, bytes)
    for (const [index, size] of sizes.entries()) {
      const link = links[index] as CID
      if (link.code === raw.code && size <= BLOCK_LIMIT) claimed.set(link, size)
    }
    nodes.announce(links.filter((link) => !isLeafCodec(link)))
    return links
  })
  for (let cid: CID | null = root; cid; cid = await frontier.next()) {
    signal.throwIfAborted()
    const size = claimed.get(cid)
    if (!visited.add(cid)) nodes.drop(cid)
    else if (size !== undefined && !inlineBytes(cid)) yield { cid, size }
    else {
      last = { cid, bytes: await nodes.take(cid) }
      if (!inlineBytes(cid)) yield last
      if (!isLeafCodec(cid)) frontier.push(cid)
    }
  }
}

/** Reads nodes ahead while their preceding siblings are walked. */
class NodesAhead {
  readonly #read: (cid: CID) => Promise<Uint8Array>
  readonly #visited: Visited
  readonly #ahead = new Map<CID, Promise<Uint8Array>>()
  /** The sibling to read once a node is taken. */
  readonly #later = new WeakMap<CID, CID>()

  /** @param visited nodes in it are not read again. */
  constructor(read: (cid: CID) => Promise<Uint8Array>, visited: Visited) {
    this.#read = read
    this.#visited = visited
  }

  /** Announces nodes that will be taken or dropped, in this order. */
  announce(siblings: CID[]): void {
    for (const [index, cid] of siblings.entries()) {
      const later = siblings[index + AHEAD]
      if (later) this.#later.set(cid, later)
      if (index < AHEAD) this.#begin(cid)
    }
  }

  take(cid: CID): Promise<Uint8Array> {
    const bytes = this.#ahead.get(cid) ?? this.#read(cid)
    this.drop(cid)
    return bytes
  }

  drop(cid: CID): void {
    this.#ahead.delete(cid)
    const later = this.#later.get(cid)
    if (later) this.#begin(later)
  }

  #begin(cid: CID): void {
    if (this.#ahead.size >= MAX_AHEAD || this.#visited.hasNode(cid)) return
    const bytes = this.#read(cid)
    bytes.catch(() => {}) // the caller that takes it gets the error
    this.#ahead.set(cid, bytes)
  }
}

async function* inBatches(wanted: AsyncIterable<Wanted>): AsyncGenerator<Wanted[]> {
  let batch: Wanted[] = []
  let bytes = 0
  let leaves = 0
  for await (const one of wanted) {
    batch.push(one)
    bytes += 'size' in one ? one.size : one.bytes.length
    if ('size' in one) leaves++
    if (leaves < LEAVES && bytes < BATCH_BYTES) continue
    yield batch
    batch = []
    bytes = 0
    leaves = 0
  }
  if (batch.length > 0) yield batch
}

async function readBatch(stream: KuboStream, batch: Wanted[], signal: AbortSignal): Promise<Block[]> {
  const leaves = batch.flatMap((one) => ('size' in one ? [one] : []))
  const all = leaves.length > 0 ? await catLeaves(stream, leaves, signal) : null
  const blocks: Block[] = []
  let at = 0
  for (const one of batch) {
    if ('bytes' in one) {
      blocks.push(one)
      continue
    }
    const { cid, size } = one
    const bytes = all?.subarray(at, at + size)
    at += size
    if (size > LARGE_BLOCK_BYTES) await turn()
    const isWhole = bytes?.length === size && (await matches(cid, bytes))
    blocks.push({ cid, bytes: isWhole ? bytes : await readBlock(stream, cid, signal) })
  }
  return blocks
}

/** The concatenated bytes of leaves; null if their number differs from the claimed one. */
async function catLeaves(
  stream: KuboStream,
  leaves: { cid: CID; size: number }[],
  signal: AbortSignal,
): Promise<Uint8Array | null> {
  const all = Buffer.allocUnsafeSlow(leaves.reduce((sum, { size }) => sum + size, 0))
  const params = { arg: leaves.map(({ cid }) => `/ipfs/${cid}`), offline: true, progress: false }
  let filled = 0
  try {
    for await (const chunk of stream.bytes('cat', params, { signal, idleMs: IDLE_MS })) {
      if (filled + chunk.length > all.length) return null
      all.set(chunk, filled)
      filled += chunk.length
    }
  } catch (error) {
    throw asStorageError(error)
  }
  return filled === all.length ? all : null
}
