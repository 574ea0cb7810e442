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
import type { BlockFolder } from './blocks.ts'
import { Leaves } from './leaves.ts'

/** Imports files as UnixFS; see `Storage.add`. The root is not pinned. */
export async function importFiles(
  entries: AsyncIterable<AddEntry>,
  blocks: BlockFolder,
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
      : { profile: PROFILE, treeBuilder: treeBuilder(put), fileImportConcurrency: 1, chunker, bufferImporter }
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
 * one, and does not treat `\/` in a path as a slash: in these cases, the CID would differ from Kubo's.
 */
function treeBuilder(put: PutBlock): TreeBuilder {
  return async function* build(files) {
    const root: Folder = new Map()
    for await (const file of files) {
      const { cid, size, path = '' } = file
      placeFile(root, path.split('/').filter(Boolean), { cid, size: Number(size) })
      yield file
    }
    const { cid, size } = await writeFolder(root, put)
    yield { cid, size: BigInt(size), path: '' }
  }
}

/** Stores the blocks of a DAG being built; see `Storage.build`. The caller pins it. @returns its root. */
export async function buildBlocks(
  make: (put: PutBlock) => Promise<CID>,
  base: CID | null,
  blocks: BlockFolder,
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

/** Blocks that are written at a time. */
const WRITES = 16

/** Writes blocks in parallel: one after the other, many small files would each wait for the disk. */
export class WriteBehind {
  readonly #blocks: BlockFolder
  readonly #underWay = new Set<Promise<void>>()

  constructor(blocks: BlockFolder) {
    this.#blocks = blocks
  }

  /**
   * Accepts a block once there is room for it.
   * @param onWritten is called when it is on disk, and its bytes may change.
   * @throws what an earlier write threw.
   */
  async put(cid: CID, bytes: Uint8Array, onWritten?: () => void): Promise<void> {
    // A finished write wakes all waiting calls, and only one of them may continue.
    while (this.#underWay.size >= WRITES) await Promise.race(this.#underWay)
    const write = this.#write(cid, bytes)
    this.#underWay.add(write)
    write.then(
      () => {
        this.#underWay.delete(write)
        onWritten?.()
      },
      () => {}, // stays, so that the next call throws it
    )
  }

  /** Waits until every block is on disk. */
  async settle(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async #write(cid: CID, bytes: Uint8Array): Promise<void> {
    // A block of the wrong size was truncated by a failing disk.
    const size = await this.#blocks.use(cid, { findAside: false })
    if (size !== bytes.length) await this.#blocks.write(cid, bytes)
  }
}

/** Stores the blocks of a CAR; see `Storage.importCar`. The caller pins it. @returns its root. */
export async function importCar(
  stream: AsyncIterable<Uint8Array>,
  blocks: BlockFolder,
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
