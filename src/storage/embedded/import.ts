import { type ImporterOptions, importer, type TreeBuilder } from 'ipfs-unixfs-importer'
import type { CID } from 'multiformats/cid'
import { untilAborted } from '../../lib/signals.ts'
import { buildDag } from '../dag/build.ts'
import { openCar } from '../dag/car.ts'
import { ImportMeter } from '../dag/measure.ts'
import { readBlock } from '../dag/read.ts'
import { resolvePath } from '../dag/unixfs.ts'
import {
  type Folder,
  importerStore,
  PROBE_BYTES,
  PROBE_CID,
  PROFILE,
  PROFILE_V0,
  placeFile,
  writeFolder,
} from '../dag/unixfs-write.ts'
import type { AddEntry, AddOptions, DagStat, ImportOptions, PutBlock } from '../port.ts'
import { Leaves } from './leaves.ts'
import type { NodeBlocks } from './place.ts'

/** Imports files as UnixFS; see `Storage.add`. The root is not pinned. */
export async function importFiles(
  entries: AsyncIterable<AddEntry>,
  blocks: NodeBlocks,
  { cidVersion, folder, signal }: AddOptions,
): Promise<DagStat & { cid: CID }> {
  const meter = new ImportMeter()
  const writes = new WriteBehind(blocks)
  const leaves = new Leaves()
  const put: PutBlock = async ({ cid, bytes }) => {
    signal.throwIfAborted()
    await writes.put(cid, bytes, () => leaves.giveBack(bytes))
  }

  // Entries of an upload arrive one after the other on one stream, so they are read one at a time.
  const { chunker, bufferImporter } = leaves
  const options: ImporterOptions =
    cidVersion === 0
      ? { profile: PROFILE_V0, wrapWithDirectory: true, fileImportConcurrency: 1 }
      : {
          profile: PROFILE,
          treeBuilder: treeBuilder(put, meter),
          fileImportConcurrency: 1,
          chunker,
          bufferImporter,
        }
  let file: CID | null = null
  let directory: CID | null = null
  for await (const { cid, path } of importer(meter.watch(entries, signal), importerStore(put), options)) {
    if (path === '') directory = cid
    else if (path === meter.paths[0]) file = cid
  }
  await writes.settle()
  const root = meter.isFile ? file : directory
  if (!root) throw new Error('The importer ended without a root')
  const path = folder?.()
  const { cid } = path
    ? await resolvePath(root, path, (cid) => readBlock(cid, blocks), signal)
    : { cid: root }
  return { cid, ...(await meter.stat()) }
}

/** Checks that this installation builds the DAGs of the profile. @throws Error */
export async function checkProfile(): Promise<void> {
  const source = [{ path: 'probe', content: PROBE_BYTES }]
  for await (const { cid } of importer(source, { put: async (cid) => cid }, { profile: PROFILE })) {
    if (!cid.equals(PROBE_CID)) {
      throw new Error(
        `ipfs-unixfs-importer makes ${cid} of the ${PROFILE} probe, not ${PROBE_CID}: reinstall the dependencies`,
      )
    }
  }
}

/**
 * Puts files into directories, for the importer. Its own tree builder ignores directories when it measures the size of
 * one, and does not treat `\/` in a path as a slash: in these cases, the CID would differ from Kubo's. A single file gets
 * no directory.
 */
function treeBuilder(put: PutBlock, meter: ImportMeter): TreeBuilder {
  return async function* build(files) {
    const root: Folder = new Map()
    for await (const file of files) {
      const { cid, size, path = '' } = file
      placeFile(root, path.split('/').filter(Boolean), { cid, size: Number(size) })
      yield file
    }
    if (meter.isFile) return
    const { cid, size } = await writeFolder(root, put)
    yield { cid, size: BigInt(size), path: '' }
  }
}

/** Stores the blocks of a DAG being built; see `Storage.build`. The caller pins it. @returns its root. */
export async function buildBlocks(
  make: (put: PutBlock) => Promise<CID>,
  base: CID | null,
  blocks: NodeBlocks,
  signal: AbortSignal,
): Promise<CID> {
  const writes = new WriteBehind(blocks)
  const node = {
    read: (cid: CID) => readBlock(cid, blocks),
    write: ({ cid, bytes }: { cid: CID; bytes: Uint8Array }) => writes.put(cid, bytes),
  }
  const root = await buildDag(make, base, node, signal)
  await writes.settle()
  return root
}

/** Writes blocks in parallel: one after the other, many small files would each wait for the disk or the network. */
export class WriteBehind {
  readonly #blocks: NodeBlocks
  readonly #underWay = new Set<Promise<void>>()
  #bytes = 0

  constructor(blocks: NodeBlocks) {
    this.#blocks = blocks
  }

  /**
   * Accepts a block once there is room for it.
   * @param onWritten is called when it is stored, and its bytes may change.
   * @throws what an earlier write threw.
   */
  async put(cid: CID, bytes: Uint8Array, onWritten?: () => void): Promise<void> {
    // A finished write wakes all waiting calls, and only one of them may continue.
    const { window } = this.#blocks
    while (this.#underWay.size >= window.blocks || this.#bytes >= window.bytes)
      await Promise.race(this.#underWay)
    const write = this.#blocks.store(cid, bytes)
    this.#underWay.add(write)
    this.#bytes += bytes.length
    write.then(
      () => {
        this.#underWay.delete(write)
        this.#bytes -= bytes.length
        onWritten?.()
      },
      () => {}, // stays, so that the next call throws it
    )
  }

  /** Waits until every block is stored. */
  async settle(): Promise<void> {
    this.#blocks.flush()
    await Promise.all(this.#underWay)
  }
}

/** Stores the blocks of a CAR; see `Storage.importCar`. The caller pins it. @returns its root. */
export async function importCar(
  stream: AsyncIterable<Uint8Array>,
  blocks: NodeBlocks,
  { isOwn, signal }: ImportOptions,
): Promise<CID> {
  const car = await openCar(untilAborted(stream, signal), isOwn)
  const writes = new WriteBehind(blocks)
  for await (const { cid, bytes } of car.blocks) {
    await writes.put(cid, bytes)
  }
  await writes.settle()
  return car.root
}
