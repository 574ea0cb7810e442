import { importer } from 'ipfs-unixfs-importer'
import type { CID } from 'multiformats/cid'
import { PROFILE } from '../../storage/dag/unixfs-write.ts'
import type { PutBlock, Storage } from '../../storage/port.ts'
import type { SkillFile } from '../skills/files.ts'

/** The CID that `Storage.add` would create for a folder of these files, even for a single file. */
export const folderCid = (files: readonly SkillFile[]): Promise<CID> => makeFolder(files, async () => {})

/** Stores a folder of files and pins it. */
export const storeFolder = (
  storage: Storage,
  files: readonly SkillFile[],
  signal: AbortSignal,
): Promise<CID> => storage.build((put) => makeFolder(files, put), { base: null, signal })

async function makeFolder(files: readonly SkillFile[], put: PutBlock): Promise<CID> {
  const store = {
    async put(cid: CID, bytes: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>): Promise<CID> {
      if (!(bytes instanceof Uint8Array)) throw new TypeError('The importer hands over whole blocks')
      await put({ cid, bytes })
      return cid
    },
  }
  const entries = files.map(({ path, bytes }) => ({ path, content: bytes }))
  let root: CID | undefined
  for await (const { cid, path } of importer(entries, store, { profile: PROFILE, wrapWithDirectory: true }))
    if (path === '') root = cid
  if (!root) throw new Error('The importer ended without a root')
  return root
}
