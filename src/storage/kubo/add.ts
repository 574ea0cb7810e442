import { Readable } from 'node:stream'
import { CID } from 'multiformats/cid'
import { ImportMeter } from '../import-meter.ts'
import { type AddEntry, type DagStat, StorageError } from '../port.ts'
import { PROBE_BYTES, PROBE_CID, PROFILE } from '../profile.ts'
import { asStorageError } from './errors.ts'
import { multipart, single } from './multipart.ts'
import type { KuboRpc } from './rpc.ts'

const PROBE_MS = 10_000
/** Most time that Kubo takes to finish an import, once it has all the bytes. */
const IDLE_MS = 60_000

/** Of `unixfs-v0-2015`, all that Kubo takes as parameters. When a directory is sharded stays a setting of the node. */
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

/** Imports files, see `Storage.add`. The root is not pinned. */
export async function importFiles(
  rpc: KuboRpc,
  entries: AsyncIterable<AddEntry>,
  { cidVersion, signal }: { cidVersion?: 0 | 1; signal: AbortSignal },
): Promise<DagStat & { cid: CID }> {
  const meter = new ImportMeter()
  let file: string | null = null
  let directory: string | null = null
  try {
    const profile = cidVersion === 0 ? V0_PARAMS : {}
    const params = { pin: false, 'wrap-with-directory': true, progress: false, ...profile }
    const call = { signal, idleMs: IDLE_MS, body: multipart(meter.watch(entries, signal)) }
    for await (const { Name, Hash } of rpc.rows<AddRow>('add', params, call)) {
      if (Name === '') directory = Hash
      else if (Name === meter.paths[0]) file = Hash
    }
  } catch (error) {
    throw asStorageError(error)
  }
  const root = meter.isFile ? file : directory
  if (!root) throw new StorageError('unavailable', 'Kubo ended add without a result')
  return { cid: CID.parse(root), ...(await meter.stat()) }
}

/** Checks that Kubo builds the DAGs of the profile by default. @throws Error naming the command that makes it do so. */
export async function checkProfile(rpc: KuboRpc, signal: AbortSignal): Promise<void> {
  const params = { 'only-hash': true, pin: false, progress: false }
  const { Hash } = await rpc.call<AddRow>('add', params, {
    signal,
    deadlineMs: PROBE_MS,
    body: multipart(single('probe', Readable.from([PROBE_BYTES]))),
  })
  if (Hash === `${PROBE_CID}`) return
  throw new Error(
    `Kubo does not import as ${PROFILE}: run \`ipfs config profile apply ${PROFILE}\` on the node and restart it`,
  )
}
