/**
 * Builds a commit's tree as UnixFS from the previous snapshot and the changes since: reads only changed blobs, and
 * writes only directories that lead to them. The CID equals that of a full import of the same files (`unixfs-v1-2025`,
 * as `ipfs add -r` creates it), provided that the previous CID did.
 */
import * as dagPb from '@ipld/dag-pb'
import type { CID } from 'multiformats/cid'
import type { TreeChange } from '../../../agentd/repository/protocol.ts'
import { readWhole } from '../../lib/read.ts'
import { untilAborted } from '../../lib/signals.ts'
import { assertEntryName } from '../../storage/dag/folder.ts'
import type { ReadBlock } from '../../storage/dag/path.ts'
import { listDirectory } from '../../storage/dag/unixfs.ts'
import { decodeUnixFs } from '../../storage/dag/unixfs-node.ts'
import { type Entry, writeDirectory, writeFile, writeSymlink } from '../../storage/dag/unixfs-write.ts'
import { type PutBlock, type Storage, StorageError } from '../../storage/port.ts'

export interface SnapshotSource {
  /** The snapshot that `changes` are relative to; null if they are all the files. Berth has it pinned. */
  base: CID | null
  changes: AsyncIterable<TreeChange>
  /** Reads up to 1000 blobs, in any order. The caller reads each to its end before asking for the next. */
  read: (blobs: string[]) => AsyncIterable<{ blob: string; content: AsyncIterable<Uint8Array> }>
  signal: AbortSignal
}

/** Number of blobs requested at a time. */
const BATCH = 1000
/** Maximum target length of a symbolic link on Linux (PATH_MAX). */
const TARGET_BYTES = 4095
/** Memory limit for changes: more than half a million paths of typical length. */
const BYTES_LIMIT = 256 * 1024 * 1024
/**
 * Memory per name in the tree in addition to its path: for a file, and for each folder that contains only this file.
 */
const NAME_BYTES = 300
/**
 * Maximum number of folders above a file. Readers of a DAG also bound its depth, including shards and the levels of
 * files.
 */
const DEPTH_LIMIT = 200

interface ChangedFile {
  blob: string
  isSymlink: boolean
  /** The entry, once its content is written. */
  entry?: Entry
}

/** The changes at a name: of the file, within the folder, or both if one replaced the other. */
interface Change {
  file?: ChangedFile | 'removed'
  folder?: ChangedFolder
}

type ChangedFolder = Map<string, Change>

/**
 * Stores a snapshot and pins it.
 * @returns its CID, and the number and bytes of the blocks put for it.
 * @throws StorageError as `Storage.build`; also `invalid_object` for an invalid file name or a missing blob, and
 *   `too_large`. Errors of the sources pass unchanged.
 */
export async function buildSnapshot(
  storage: Storage,
  source: SnapshotSource,
): Promise<{ cid: CID; blocks: number; bytes: number }> {
  const { base, signal } = source
  const total = { blocks: 0, bytes: 0 }
  const make = async (putBlock: PutBlock): Promise<CID> => {
    const known = new Set<string>()
    const put: PutBlock = async (block) => {
      const name = `${block.cid}`
      if (known.has(name)) return
      known.add(name)
      total.blocks++
      total.bytes += block.bytes.length
      await putBlock(block)
    }
    // A base directory that comes out unchanged need not be put again.
    const read: ReadBlock = (cid) => {
      known.add(`${cid}`)
      return storage.block(cid, { signal })
    }
    const { root, files } = await collectChanges(untilAborted(source.changes, signal))
    await writeBlobs(files, source, put)
    const entries = await applyChanges(root, base, read, put, signal)
    return (await writeDirectory(entries, put)).cid
  }
  const cid = await storage.build(make, { base, signal })
  return { cid, ...total }
}

/**
 * Converts changes to a tree of folders.
 * @throws StorageError `invalid_object` for an invalid path, `too_large`, or errors of `changes`.
 */
export async function collectChanges(
  changes: AsyncIterable<TreeChange>,
): Promise<{ root: ChangedFolder; files: ChangedFile[] }> {
  const root: ChangedFolder = new Map()
  const files: ChangedFile[] = []
  let bytes = 0
  for await (const change of changes) {
    const { place, made } = placeOf(root, change.path)
    bytes += NAME_BYTES * Math.max(made, 1) + 2 * change.path.length
    if (bytes > BYTES_LIMIT) throw new StorageError('too_large', 'There are too many changes')
    if ('removed' in change) {
      // git names both the folder and the file that replaced it, in its own order.
      place.file ??= 'removed'
      continue
    }
    const file = { blob: change.blob, isSymlink: change.mode === '120000' }
    place.file = file
    files.push(file)
  }
  return { root, files }
}

/** The place of a path, and the number of new names on the way. */
function placeOf(root: ChangedFolder, path: string): { place: Change; made: number } {
  const names = path.split('/')
  if (names.length > DEPTH_LIMIT) throw new StorageError('invalid_object', 'A file is nested too deeply')
  let folder = root
  let place: Change = {}
  let made = 0
  for (const [i, name] of names.entries()) {
    assertEntryName(name)
    const known = folder.get(name)
    place = known ?? {}
    if (!known) {
      folder.set(name, place)
      made++
    }
    if (i < names.length - 1) folder = place.folder ??= new Map()
  }
  return { place, made }
}

/** Writes the content of all changed files, each blob once, and records it in them. */
async function writeBlobs(files: ChangedFile[], source: SnapshotSource, put: PutBlock): Promise<void> {
  const { signal } = source
  // A link's target is stored as another node than a file with the same content.
  for (const isSymlink of [false, true]) {
    const byBlob = Map.groupBy(
      files.filter((file) => file.isSymlink === isSymlink),
      ({ blob }) => blob,
    )
    const blobs = [...byBlob.keys()]
    for (let start = 0; start < blobs.length; start += BATCH) {
      for await (const { blob, content } of untilAborted(
        source.read(blobs.slice(start, start + BATCH)),
        signal,
      )) {
        const bytes = untilAborted(content, signal)
        const entry = isSymlink
          ? await writeSymlink(await readWhole(bytes, TARGET_BYTES, tooLongLink), put)
          : await writeFile(bytes, put)
        for (const file of byBlob.get(blob) ?? []) file.entry = entry
      }
    }
  }
}

const tooLongLink = () => new StorageError('invalid_object', 'A symbolic link is too long')

/**
 * The entries of a directory after its changes. Like git, it contains no empty directories.
 * @param base the previous directory; null if there was none.
 */
async function applyChanges(
  changes: ChangedFolder,
  base: CID | null,
  read: ReadBlock,
  put: PutBlock,
  signal: AbortSignal,
): Promise<Map<string, Entry>> {
  const entries = new Map<string, Entry>()
  if (base)
    for await (const { name, cid, size } of listDirectory(base, read, signal))
      entries.set(name, { cid, size })
  for (const [name, { file, folder }] of changes) {
    signal.throwIfAborted()
    if (file && file !== 'removed') {
      // A file that replaces a folder removes its contents.
      entries.set(name, written(file))
      continue
    }
    const before = entries.get(name)
    entries.delete(name)
    if (!folder) continue
    const folderBefore = before && !file && (await isDirectory(before.cid, read)) ? before.cid : null
    const inside = await applyChanges(folder, folderBefore, read, put, signal)
    if (inside.size > 0) entries.set(name, await writeDirectory(inside, put))
  }
  return entries
}

function written({ blob, entry }: ChangedFile): Entry {
  if (!entry) throw new StorageError('invalid_object', `The content of ${blob} was not given`)
  return entry
}

async function isDirectory(cid: CID, read: ReadBlock): Promise<boolean> {
  if (cid.code !== dagPb.code) return false
  return decodeUnixFs(await read(cid))?.unixfs.isDirectory() ?? false
}
