import type { TreeBuilder } from 'ipfs-unixfs-importer'
import type { PutBlock } from '../port.ts'
import { type Entry, writeDirectory } from '../unixfs-write.ts'

type Folder = Map<string, Entry | Folder>

/**
 * Puts files into directories, for the importer. Its own tree builder leaves directories out when it counts how large
 * one is, and takes `\/` in a path for no slash: where it did, the CID would not be Kubo's.
 */
export function treeBuilder(put: PutBlock): TreeBuilder {
  return async function* build(files) {
    const root: Folder = new Map()
    for await (const file of files) {
      const { cid, size, path = '' } = file
      place(root, path.split('/').filter(Boolean), { cid, size: Number(size) })
      yield file
    }
    const { cid, size } = await writeFolder(root, put)
    yield { cid, size: BigInt(size), path: '' }
  }
}

function place(root: Folder, names: string[], file: Entry): void {
  const last = names.pop()
  if (last === undefined) return
  let folder = root
  for (const name of names) {
    let next = folder.get(name)
    if (!(next instanceof Map)) folder.set(name, (next = new Map()))
    folder = next
  }
  folder.set(last, file)
}

async function writeFolder(folder: Folder, put: PutBlock): Promise<Entry> {
  const entries = new Map<string, Entry>()
  for (const [name, entry] of folder) {
    entries.set(name, entry instanceof Map ? await writeFolder(entry, put) : entry)
  }
  return writeDirectory(entries, put)
}
