import { importer } from 'ipfs-unixfs-importer'
import type { CID } from 'multiformats/cid'
import { type AddEntry, StorageError } from '../port.ts'
import { PROBE_BYTES, PROBE_CID, PROFILE, PROFILE_V0 } from '../profile.ts'
import { untilAborted } from '../until-aborted.ts'
import type { BlockFolder } from './blocks.ts'
import { WriteBehind } from './write-behind.ts'

/**
 * Imports files as UnixFS, see `Storage.add`.
 * @returns the root and the bytes of all the files together.
 */
export async function importFiles(
  entries: AsyncIterable<AddEntry>,
  blocks: BlockFolder,
  { cidVersion, signal }: { cidVersion?: 0 | 1; signal: AbortSignal },
): Promise<{ cid: CID; size: number }> {
  let size = 0
  const paths: string[] = []

  async function* content(chunks: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
    for await (const chunk of untilAborted(chunks, signal)) {
      size += chunk.length
      yield chunk
    }
  }
  async function* candidates() {
    for await (const entry of untilAborted(entries, signal)) {
      paths.push(entry.path)
      yield { path: entry.path, content: content(entry.content) }
    }
  }
  const writes = new WriteBehind(blocks)
  const store = {
    put: async (
      cid: CID,
      bytes: Uint8Array | Iterable<Uint8Array> | AsyncIterable<Uint8Array>,
    ): Promise<CID> => {
      signal.throwIfAborted()
      if (!(bytes instanceof Uint8Array)) throw new TypeError('The importer hands over whole blocks')
      await writes.put(cid, bytes)
      return cid
    },
  }

  // Entries of an upload come one after the other on one stream, so they are read one at a time.
  const profile = cidVersion === 0 ? PROFILE_V0 : PROFILE
  const options = { profile, wrapWithDirectory: true, fileImportConcurrency: 1 } as const
  let file: CID | null = null
  let directory: CID | null = null
  for await (const { cid, path } of importer(candidates(), store, options)) {
    if (path === '') directory = cid
    else if (path === paths[0]) file = cid
  }
  await writes.settle()
  const [path] = paths
  if (path === undefined) throw new StorageError('invalid_object', 'There is nothing to add')
  const cid = paths.length === 1 && !path.includes('/') ? file : directory
  if (!cid) throw new Error('The importer ended without a root')
  return { cid, size }
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
