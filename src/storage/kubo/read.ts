import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { MIME_SAMPLE, mimeTypeOf } from '../mime.ts'
import { type DagStat, StorageError } from '../port.ts'
import { asStorageError } from './errors.ts'
import type { KuboRpc } from './rpc.ts'

const STAT_MS = 30_000
const IDLE_MS = 30_000
/** Deepest nesting of directories. */
const DEPTH_LIMIT = 256

/** What `ls` says an entry is: the type numbers of UnixFS. */
const DIRECTORY = 1
const FILE = 2

interface LsRow {
  Objects: { Links: { Name: string; Hash: string; Size: number; Type: number }[] }[]
}

/** Bytes of a UnixFS file that Kubo has. Kubo checks blocks as it reads them; a short answer is an error. */
export async function* readFile(
  rpc: KuboRpc,
  cid: CID,
  range: { path?: string; offset?: number; length?: number; signal: AbortSignal },
): AsyncGenerator<Uint8Array> {
  const { path, offset, length, signal } = range
  if (length === 0) return
  try {
    const arg = path ? `/ipfs/${cid}/${path}` : `/ipfs/${cid}`
    yield* rpc.bytes(
      'cat',
      { arg, offset, length, offline: true, progress: false },
      { signal, idleMs: IDLE_MS },
    )
  } catch (error) {
    throw asStorageError(error)
  }
}

/** Describes a DAG that Kubo has, see `Storage.stat`. What is not UnixFS counts as one file of the size of its blocks. */
export async function statDag(rpc: KuboRpc, cid: CID, signal: AbortSignal): Promise<DagStat> {
  try {
    const root = await statRoot(rpc, cid, signal)
    if (!root) return { ...(await statBlocks(rpc, cid, signal)), mimeType: 'application/octet-stream' }
    if (root.Type === 'directory')
      return { ...(await statDirectory(rpc, cid, signal)), mimeType: 'directory' }
    const sample: Uint8Array[] = []
    for await (const chunk of readFile(rpc, cid, { length: MIME_SAMPLE, signal })) sample.push(chunk)
    return { size: root.Size, files: 1, mimeType: await mimeTypeOf(Buffer.concat(sample)) }
  } catch (error) {
    throw asStorageError(error)
  }
}

/** Null for what is not UnixFS. */
async function statRoot(
  rpc: KuboRpc,
  cid: CID,
  signal: AbortSignal,
): Promise<{ Type: string; Size: number } | null> {
  try {
    return await rpc.call(
      'files/stat',
      { arg: `/ipfs/${cid}`, offline: true },
      { signal, deadlineMs: STAT_MS },
    )
  } catch (error) {
    const meaning = asStorageError(error)
    if (meaning instanceof StorageError && meaning.code === 'invalid_object') return null
    throw meaning
  }
}

async function statBlocks(
  rpc: KuboRpc,
  cid: CID,
  signal: AbortSignal,
): Promise<{ size: number; files: number }> {
  const params = { arg: `${cid}`, progress: false, offline: true }
  const { TotalSize } = await rpc.call<{ TotalSize: number }>('dag/stat', params, {
    signal,
    deadlineMs: STAT_MS,
  })
  return { size: TotalSize, files: 1 }
}

async function statDirectory(
  rpc: KuboRpc,
  cid: CID,
  signal: AbortSignal,
  depth = 0,
): Promise<{ size: number; files: number }> {
  if (depth > DEPTH_LIMIT) throw new StorageError('invalid_object', `Directory ${cid} is nested too deep`)
  const total = { size: 0, files: 0 }
  const params = { arg: `${cid}`, 'resolve-type': true, size: true, stream: true, offline: true }
  for await (const row of rpc.rows<LsRow>('ls', params, { signal, idleMs: IDLE_MS })) {
    for (const { Hash, Size, Type } of row.Objects.flatMap(({ Links }) => Links)) {
      const child = CID.parse(Hash)
      const isFile = Type === FILE || child.code === raw.code
      const { size, files } = isFile
        ? { size: Size, files: 1 }
        : await (Type === DIRECTORY
            ? statDirectory(rpc, child, signal, depth + 1)
            : statBlocks(rpc, child, signal))
      total.size += size
      total.files += files
    }
  }
  return total
}
