/** From the path of a gateway's URL to the content that it names, among what the workspace of the gateway keeps. */
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import type { Pool } from '../../db/pool.ts'
import { findGatewayContent } from '../../db/statements/gateways.ts'
import { badRequest, notFound } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import type { Gateway } from '../../files/gateways/gateways.ts'
import { currentSwap } from '../../files/swaps.ts'
import { type DagEntry, type Network, type Storage, StorageError } from '../../storage/port.ts'

export interface ContentPath {
  network: Network
  cid: CID
  /** The names below the CID, decoded. */
  names: string[]
  /** The path is spelled as a directory's: with a slash at its end. Undefined at the root of a CID's host. */
  endsInSlash: boolean | undefined
  /** For `X-Ipfs-Path`: the path in IPFS, encoded as in the URL. */
  ipfsPath: string
}

const PATH = /^\/(ipfs|files)\/([^/]+)(\/.*)?$/

/**
 * Reads `/ipfs/{cid}[/path]`, content of the public network, and `/files/{cid}[/path]`, of the private one.
 * `URL` has taken out `.` and `..`, also encoded ones, as browsers do.
 * @param hostCid the CID at whose host the path is: it has that content alone, from its root on.
 * @throws ApiError 400 for a malformed CID or encoding, 404 for every other path.
 */
export function parseContentPath({ pathname }: URL, hostCid?: string): ContentPath {
  const [, root, first, rest = ''] = PATH.exec(hostCid ? `/ipfs/${hostCid}${pathname}` : pathname) ?? []
  if (root === undefined || first === undefined) {
    throw notFound('A gateway has content only: /ipfs/<cid>, and /files/<cid> with a signature')
  }
  const names = rest.split('/').filter(Boolean).map(decode)
  // A name in a directory has neither a slash nor a NUL: the path leads nowhere.
  if (names.some((name) => /[/\0]/.test(name))) throw notFound('path: no entry has such a name')
  return {
    network: root === 'ipfs' ? 'public' : 'private',
    cid: parseCid(decode(first)),
    names,
    endsInSlash: hostCid && rest === '/' ? undefined : rest.endsWith('/'),
    ipfsPath: `/ipfs/${first}${rest}`,
  }
}

function decode(segment: string): string {
  try {
    return decodeURIComponent(segment)
  } catch (error) {
    throw badRequest(`path: ${(error as Error).message}`)
  }
}

/** A file of the gateway's workspace. */
export interface KeptContent {
  cid: CID
  name: string | null
  mimeType: string | null
}

/**
 * The file that a gateway serves for a CID: what the CID is swapped to, where the gateway has the plugin, else
 * the content itself. Undefined where the gateway's workspace does not keep it on this network, or no more.
 */
export async function findKept(
  pool: Pool,
  { workspaceId, hasSwaps }: Gateway,
  network: Network,
  asked: CID,
): Promise<KeptContent | undefined> {
  const original = canonicalCid(asked)
  const swapped = hasSwaps ? await currentSwap(pool, workspaceId, network, original) : null
  const canonical = swapped ?? original
  const found = await findGatewayContent.first(pool, workspaceId, network, canonical)
  return found && { cid: CID.parse(canonical), ...found }
}

const INDEX = 'index.html'

interface Walked {
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
