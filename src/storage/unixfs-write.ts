/** Files, symbolic links and directories of UnixFS (`unixfs-v1-2025`), each on its own: the importer makes whole trees. */
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { type InProgressImportResult, importFile, type WritableStorage } from 'ipfs-unixfs-importer'
import { DirSharded } from 'ipfs-unixfs-importer/utils'
import { CID } from 'multiformats/cid'
import { sha256 } from 'multiformats/hashes/sha2'
import type { PutBlock } from './port.ts'
import { PROFILE } from './profile.ts'

/** The profile shards a directory whose block would be larger. */
const SHARD_ABOVE = 262_144
/** Blocks of a file that are in memory together, at 1 MiB each. */
const BLOCKS_AT_ONCE = 8

/** What a directory links to; `size` with the DAG's own overhead (`Tsize`). */
export interface Entry {
  cid: CID
  size: number
}

/** A store, as the importer has it, that blocks are put to. */
export function importerStore(put: PutBlock): WritableStorage {
  return {
    put: async (cid, bytes) => {
      if (!(bytes instanceof Uint8Array)) throw new TypeError('The importer hands over whole blocks')
      await put({ cid, bytes })
      return cid
    },
  }
}

/** Writes a file as it comes, a few blocks at a time. */
export async function writeFile(content: AsyncIterable<Uint8Array>, put: PutBlock): Promise<Entry> {
  const options = { profile: PROFILE, blockWriteConcurrency: BLOCKS_AT_ONCE } as const
  const { cid, size } = await importFile({ content }, importerStore(put), options)
  return { cid, size: Number(size) }
}

/** Writes a symbolic link. The importer takes a target as text only. */
export function writeSymlink(target: Uint8Array, put: PutBlock): Promise<Entry> {
  return writeNode(encode(new UnixFS({ type: 'symlink', data: target }), []), [], put)
}

/** Writes a directory, sharded where it has to be. */
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

const encode = (unixfs: UnixFS, links: dagPb.PBLink[]): Uint8Array =>
  dagPb.encode(dagPb.prepare({ Data: unixfs.marshal(), Links: links }))
