import { randomUUID } from 'node:crypto'
import { Readable } from 'node:stream'
import { CID } from 'multiformats/cid'
import { untilAborted } from '../../lib/signals.ts'
import { buildDag } from '../dag/build.ts'
import { carHeader, carSection, openCar } from '../dag/car.ts'
import { ImportMeter } from '../dag/measure.ts'
import { PROBE_BYTES, PROBE_CID, PROFILE } from '../dag/unixfs-write.ts'
import {
  type AddEntry,
  type AddOptions,
  type Block,
  type DagStat,
  type ImportOptions,
  type PutBlock,
  StorageError,
} from '../port.ts'
import { asStorageError } from './kubo-errors.ts'
import { blockReader } from './read.ts'
import type { KuboStream } from './stream.ts'

/** Maximum time for Kubo to finish an import, once it has all bytes. */
const IDLE_MS = 60_000
const PROBE_MS = 10_000

/**
 * The parameters of `unixfs-v0-2015` that Kubo accepts. The size at which a directory is sharded remains a setting of
 * the node.
 */
const V0_PARAMS = {
  'cid-version': 0,
  'raw-leaves': false,
  chunker: 'size-262144',
  'max-file-links': 174,
  'max-hamt-fanout': 256,
}

interface AddRow {
  Name: string
  Hash: string
}

/** Imports files; see `Storage.add`. The root is not pinned. */
export async function importFiles(
  stream: KuboStream,
  entries: AsyncIterable<AddEntry>,
  { cidVersion, folder, signal }: AddOptions,
): Promise<DagStat & { cid: CID }> {
  const meter = new ImportMeter()
  /** The single file, or the folder that may contain all of them. */
  let top: string | null = null
  let directory: string | null = null
  try {
    const profile = cidVersion === 0 ? V0_PARAMS : {}
    const params = { pin: false, 'wrap-with-directory': true, progress: false, ...profile }
    const call = { signal, idleMs: IDLE_MS, body: multipart(meter.watch(entries, signal)) }
    for await (const { Name, Hash } of stream.rows<AddRow>('add', params, call)) {
      if (Name === '') directory = Hash
      else if (Name === meter.paths[0]?.split('/')[0]) top = Hash
    }
  } catch (error) {
    throw asStorageError(error)
  }
  const root = meter.isFile || folder?.() ? top : directory
  if (!root) throw new StorageError('unavailable', 'Kubo ended add without a result')
  return { cid: CID.parse(root), ...(await meter.stat()) }
}

/** The body of a call that takes files: each file is a part whose name is its path. */
function multipart(entries: AsyncIterable<AddEntry>): {
  type: string
  content: AsyncIterable<Uint8Array>
} {
  const boundary = `berth-${randomUUID()}`
  async function* content(): AsyncGenerator<Uint8Array> {
    for await (const entry of entries) {
      const name = encodeURIComponent(entry.path)
      yield Buffer.from(
        `--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${name}"\r\n` +
          'Content-Type: application/octet-stream\r\n\r\n',
      )
      yield* entry.content
      yield Buffer.from('\r\n')
    }
    yield Buffer.from(`--${boundary}--\r\n`)
  }
  return { type: `multipart/form-data; boundary=${boundary}`, content: content() }
}

/** A source with a single file as its only entry. */
async function* single(path: string, content: AsyncIterable<Uint8Array>): AsyncGenerator<AddEntry> {
  yield { path, content }
}

interface ImportRow {
  Stats?: { BlockCount: number }
}

/**
 * Stores the blocks of a CAR; see `Storage.importCar`. The caller pins it. Kubo gets them as a newly written CAR, so
 * that it sees only verified content. @returns its root.
 */
export async function importCar(
  stream: KuboStream,
  source: AsyncIterable<Uint8Array>,
  { isOwn, signal }: ImportOptions,
): Promise<CID> {
  const car = await openCar(untilAborted(source, signal), isOwn)
  await storeBlocks(stream, car.root, car.blocks, signal)
  return car.root
}

/**
 * Lets Kubo store blocks, in a single call, as they arrive.
 * @param root The root in the header of the transferred CAR, which Kubo ignores.
 * @throws StorageError, or whatever `blocks` throws.
 */
async function storeBlocks(
  stream: KuboStream,
  root: CID,
  blocks: AsyncIterable<Block>,
  signal: AbortSignal,
): Promise<void> {
  let sent = 0
  let stored: number | undefined
  async function* car(): AsyncGenerator<Uint8Array> {
    yield carHeader(root)
    for await (const block of blocks) {
      sent++
      yield* carSection(block)
    }
  }
  const params = { 'pin-roots': false, stats: true, offline: true }
  const call = { signal, idleMs: IDLE_MS, body: multipart(single('car', car())) }
  try {
    for await (const row of stream.rows<ImportRow>('dag/import', params, call)) {
      stored = row.Stats?.BlockCount ?? stored
    }
  } catch (error) {
    throw asStorageError(error)
  }
  if (stored !== sent) throw new StorageError('unavailable', `Kubo stored ${stored} of ${sent} blocks`)
}

/** A CAR begins with its root, which is not known yet: an empty identity CID takes its place. */
const NO_ROOT = CID.parse('bafkqaaa')

/**
 * Stores the blocks of a DAG being built; see `Storage.build`. The caller pins it. They are sent to Kubo in a single
 * call, as they arrive. @returns its root.
 */
export async function buildBlocks(
  stream: KuboStream,
  make: (put: PutBlock) => Promise<CID>,
  base: CID | null,
  signal: AbortSignal,
): Promise<CID> {
  const { readable, writable } = new TransformStream<Block, Block>()
  const blocks = writable.getWriter()
  const ended = new AbortController()
  const combined = AbortSignal.any([signal, ended.signal])
  const node = { read: blockReader(stream, combined), write: (block: Block) => blocks.write(block) }
  const sending = async (): Promise<void> => {
    await storeBlocks(stream, NO_ROOT, readable, combined)
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
    // Also ends the other side: a block that waits to be sent, or the wait for the next one.
    ended.abort(error)
    blocks.abort(error).catch(() => {})
    throw error
  }
}

/** Checks that Kubo builds the DAGs of the profile by default. @throws Error naming the command that configures it. */
export async function checkProfile(stream: KuboStream, signal: AbortSignal): Promise<void> {
  const params = { 'only-hash': true, pin: false, progress: false }
  const { Hash } = await stream.call<AddRow>('add', params, {
    signal,
    deadlineMs: PROBE_MS,
    body: multipart(single('probe', Readable.from([PROBE_BYTES]))),
  })
  if (Hash === `${PROBE_CID}`) return
  throw new Error(
    `Kubo does not import as ${PROFILE}: run \`ipfs config profile apply ${PROFILE}\` on the node and restart it`,
  )
}
