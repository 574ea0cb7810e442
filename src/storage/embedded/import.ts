import { type ImporterOptions, importer } from 'ipfs-unixfs-importer'
import type { CID } from 'multiformats/cid'
import { ImportMeter } from '../import-meter.ts'
import type { AddEntry, DagStat, PutBlock } from '../port.ts'
import { PROBE_BYTES, PROBE_CID, PROFILE, PROFILE_V0 } from '../profile.ts'
import { importerStore } from '../unixfs-write.ts'
import type { BlockFolder } from './blocks.ts'
import { treeBuilder } from './tree.ts'
import { WriteBehind } from './write-behind.ts'

/** Imports files as UnixFS, see `Storage.add`. The root is not pinned. */
export async function importFiles(
  entries: AsyncIterable<AddEntry>,
  blocks: BlockFolder,
  { cidVersion, signal }: { cidVersion?: 0 | 1; signal: AbortSignal },
): Promise<DagStat & { cid: CID }> {
  const meter = new ImportMeter()
  const writes = new WriteBehind(blocks)
  const put: PutBlock = async ({ cid, bytes }) => {
    signal.throwIfAborted()
    await writes.put(cid, bytes)
  }

  // Entries of an upload come one after the other on one stream, so they are read one at a time.
  const options: ImporterOptions =
    cidVersion === 0
      ? { profile: PROFILE_V0, wrapWithDirectory: true, fileImportConcurrency: 1 }
      : { profile: PROFILE, treeBuilder: treeBuilder(put), fileImportConcurrency: 1 }
  let file: CID | null = null
  let directory: CID | null = null
  for await (const { cid, path } of importer(meter.watch(entries, signal), importerStore(put), options)) {
    if (path === '') directory = cid
    else if (path === meter.paths[0]) file = cid
  }
  await writes.settle()
  const cid = meter.isFile ? file : directory
  if (!cid) throw new Error('The importer ended without a root')
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
