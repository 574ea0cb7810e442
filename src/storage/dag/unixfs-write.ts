/**
 * Writes UnixFS files, symbolic links, directories and small folders (`unixfs-v1-2025`); the importer creates large trees.
 * The dashboard uses this in a browser to pack folders, so it uses nothing from Node.
 */
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { type InProgressImportResult, importFile, type WritableStorage } from 'ipfs-unixfs-importer'
import { DirSharded } from 'ipfs-unixfs-importer/utils'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { sha256 } from 'multiformats/hashes/sha2'
import { encode as encodeVarint } from 'uint8-varint'
import type { PutBlock } from '../port.ts'

/** The CID profile of Berth's imports (IPIP-499): CIDv1, raw leaves, chunks of 1 MiB, 1,024 links per node. */
export const PROFILE = 'unixfs-v1-2025'

/** The profile of imports that request a CIDv0: leaves of 256 KiB in dag-pb, 174 links per node. */
export const PROFILE_V0 = 'unixfs-v0-2015'

/** One byte more than a chunk of the profile, so that the chunk size, leaves and root all affect the CID. */
export const PROBE_BYTES = new Uint8Array(1024 * 1024 + 1)

/** The CID of {@link PROBE_BYTES} under {@link PROFILE}. */
export const PROBE_CID = CID.parse('bafybeihd4yzq7n5umhjngdum4r6k2to7egxfkf2jz6thvwzf6djus22cmq')

/** Bytes of a chunk of the profile; a file up to this size is one leaf. */
const LEAF_BYTES = 1_048_576
/** The profile shards a directory whose block would be larger. */
const SHARD_ABOVE = 262_144
/** Blocks of a file in memory at a time, at 1 MiB each. */
const BLOCKS_AT_ONCE = 8

/** An entry of a directory; `size` includes the DAG's own overhead (`Tsize`). */
export interface Entry {
  cid: CID
  size: number
}

/** Adapts `put` to the importer's store interface. */
export function importerStore(put: PutBlock): WritableStorage {
  return {
    put: async (cid, bytes) => {
      if (!(bytes instanceof Uint8Array)) throw new TypeError('The importer hands over whole blocks')
      await put({ cid, bytes })
      return cid
    },
  }
}

/**
 * Writes a file as it arrives, a few blocks at a time. A file with a single leaf is that leaf: the importer takes ten
 * times as long.
 * @param blocksAtOnce with 1, leaves are put in the order of the file.
 */
export async function writeFile(
  content: AsyncIterable<Uint8Array>,
  put: PutBlock,
  blocksAtOnce = BLOCKS_AT_ONCE,
): Promise<Entry> {
  const chunks = content[Symbol.asyncIterator]()
  const begin: Uint8Array[] = []
  let size = 0
  for (; size <= LEAF_BYTES; ) {
    const { done, value } = await chunks.next()
    if (done) return writeLeaf(concat(begin), put)
    begin.push(value)
    size += value.length
  }
  async function* whole(): AsyncGenerator<Uint8Array> {
    yield* begin.splice(0)
    yield* { [Symbol.asyncIterator]: () => chunks }
  }
  return writeNodes(whole(), put, blocksAtOnce)
}

async function writeLeaf(bytes: Uint8Array, put: PutBlock): Promise<Entry> {
  const cid = CID.createV1(raw.code, await sha256.digest(bytes))
  await put({ cid, bytes })
  return { cid, size: bytes.length }
}

async function writeNodes(
  content: AsyncIterable<Uint8Array>,
  put: PutBlock,
  blockWriteConcurrency: number,
): Promise<Entry> {
  const options = { profile: PROFILE, blockWriteConcurrency } as const
  const { cid, size } = await importFile({ content }, importerStore(put), options)
  return { cid, size: Number(size) }
}

/** Writes a symbolic link. The importer only accepts text as the target. */
export function writeSymlink(target: Uint8Array, put: PutBlock): Promise<Entry> {
  return writeNode(encode(new UnixFS({ type: 'symlink', data: target }), []), [], put)
}

/** Written files by name, in the folders that will contain them. */
export type Folder = Map<string, Entry | Folder>

/** Puts a file into a folder. A folder replaces a file of its name, and a file replaces a folder. */
export function placeFile(root: Folder, names: readonly string[], file: Entry): void {
  const last = names.at(-1)
  if (last === undefined) return
  let folder = root
  for (const name of names.slice(0, -1)) {
    let next = folder.get(name)
    if (!(next instanceof Map)) {
      next = new Map()
      folder.set(name, next)
    }
    folder = next
  }
  folder.set(last, file)
}

/** Writes a folder and the folders in it. */
export async function writeFolder(folder: Folder, put: PutBlock): Promise<Entry> {
  const entries = new Map<string, Entry>()
  for (const [name, entry] of folder) {
    entries.set(name, entry instanceof Map ? await writeFolder(entry, put) : entry)
  }
  return writeDirectory(entries, put)
}

/** Writes a folder of files. Its CID is the one that `Storage.add` creates for several files, even for a single file. */
export async function writeFiles(
  files: Iterable<{ path: string; bytes: Uint8Array }>,
  put: PutBlock,
): Promise<CID> {
  const root: Folder = new Map()
  for (const { path, bytes } of files) {
    placeFile(root, path.split('/'), await writeFile(once(bytes), put))
  }
  return (await writeFolder(root, put)).cid
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

/** Writes a directory, sharded if necessary. */
export async function writeDirectory(entries: Map<string, Entry>, put: PutBlock): Promise<Entry> {
  const links = Array.from(entries, ([Name, { cid, size }]) => ({ Name, Hash: cid, Tsize: size }))
  const flat = encode(new UnixFS({ type: 'directory' }), links)
  return flat.length > SHARD_ABOVE ? writeShards(entries, put) : writeNode(flat, links, put)
}

async function writeShards(entries: Map<string, Entry>, put: PutBlock): Promise<Entry> {
  const props = { root: true, dir: true, path: '', dirty: true, flat: false }
  const directory = new DirSharded(props, { cidVersion: 1 })
  for (const [name, { cid, size }] of entries) {
    await directory.put(name, { cid, size: BigInt(size) } as InProgressImportResult)
  }
  let root: Entry | null = null
  for await (const { cid, size } of directory.flush(importerStore(put))) root = { cid, size: Number(size) }
  if (!root) throw new Error('The importer ended without a directory')
  return root
}

async function writeNode(bytes: Uint8Array, links: dagPb.PBLink[], put: PutBlock): Promise<Entry> {
  const cid = CID.createV1(dagPb.code, await sha256.digest(bytes))
  await put({ cid, bytes })
  return { cid, size: links.reduce((sum, { Tsize = 0 }) => sum + Tsize, bytes.length) }
}

function concat(parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const all = new Uint8Array(parts.reduce((length, part) => length + part.length, 0))
  let length = 0
  for (const part of parts) {
    all.set(part, length)
    length += part.length
  }
  return all
}

const encode = (unixfs: UnixFS, links: dagPb.PBLink[]): Uint8Array =>
  dagPb.encode(dagPb.prepare({ Data: unixfs.marshal(), Links: links }))

/*
 * `ipfs-unixfs` writes sizes from 2 GiB up to 4 GiB as one wrong byte, and leaves uninitialised memory in the rest of
 * the field: the varint writer of its `protons-runtime` (7.1.2, and 8.0.1 as well) treats the lower half of a number as
 * signed. A file with such a size, or with such a part, would get a different CID each time and could not be read back.
 * So such files are encoded here; `UnixFS` encodes all others.
 */

const GIB = 2 ** 30
/** Tags of the fields of a UnixFS message (`unixfs.proto`): number and wire type. */
const TAG = { type: 0x08, data: 0x12, fileSize: 0x18, blockSize: 0x20 }
const FILE = 2

const original = UnixFS.prototype.marshal
UnixFS.prototype.marshal = function (this: UnixFS) {
  const hasBrokenSize = this.type === 'file' && [this.fileSize(), ...this.blockSizes].some(isBroken)
  return hasBrokenSize ? marshalFile(this) : original.call(this)
}

const isBroken = (size: bigint): boolean => size >= 2 * GIB && size < 4 * GIB

/** A file without a mode or a time: Berth sets neither. */
function marshalFile(file: UnixFS): Uint8Array<ArrayBuffer> {
  const size = (tag: number, bytes: bigint) => [Uint8Array.of(tag), encodeVarint(Number(bytes))]
  const content = file.data?.length ? [...size(TAG.data, BigInt(file.data.length)), file.data] : []
  const parts = [
    Uint8Array.of(TAG.type, FILE),
    ...content,
    ...size(TAG.fileSize, file.fileSize()),
    ...file.blockSizes.flatMap((bytes) => size(TAG.blockSize, bytes)),
  ]
  return concat(parts)
}
