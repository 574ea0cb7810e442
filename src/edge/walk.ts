import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { notFound } from '../errors.ts'
import { type DagEntry, type Storage, StorageError } from '../storage/port.ts'

const INDEX = 'index.html'

export interface Walked {
  entry: DagEntry
  /** The last name on the way; null for the root itself. */
  name: string | null
  /** The CIDs on the way, from the root to the entry. */
  roots: CID[]
  /** The whole file, where it has been read already. */
  bytes?: Uint8Array
}

/** Follows names below a root. @throws ApiError 404 where one is missing, or is looked for in a file. */
export async function walk(
  storage: Storage,
  root: CID,
  names: string[],
  signal: AbortSignal,
): Promise<Walked> {
  const [first, ...others] = names
  if (first === undefined) return { ...(await readRoot(storage, root, signal)), name: null, roots: [root] }
  const step = (cid: CID, path: string) =>
    storage.resolve(cid, { path, signal }).catch((error) => {
      throw isMissing(error) ? notFound('path: does not exist') : error
    })
  let walked: Walked = { entry: await step(root, first), name: first, roots: [root] }
  for (const name of others) {
    const { entry, roots } = walked
    walked = { entry: await step(entry.cid, name), name, roots: [...roots, entry.cid] }
  }
  return { ...walked, roots: [...walked.roots, walked.entry.cid] }
}

/** Most small files are one raw block: with its size comes the block itself, in one call. */
async function readRoot(
  storage: Storage,
  cid: CID,
  signal: AbortSignal,
): Promise<Pick<Walked, 'entry' | 'bytes'>> {
  if (cid.code !== raw.code) return { entry: await storage.resolve(cid, { signal }) }
  const bytes = await storage.block(cid, { signal })
  return { entry: { cid, type: 'file', size: bytes.length }, bytes }
}

/** The file that stands for a directory; undefined where it has none. */
export async function findIndex(
  storage: Storage,
  directory: CID,
  signal: AbortSignal,
): Promise<{ entry: DagEntry; name: string } | undefined> {
  try {
    const entry = await storage.resolve(directory, { path: INDEX, signal })
    return entry.type === 'file' ? { entry, name: INDEX } : undefined
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof StorageError && (error.code === 'not_found' || error.code === 'invalid_object')
