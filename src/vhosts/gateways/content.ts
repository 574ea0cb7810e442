/**
 * Resolves the path of a gateway's URL to the content that it names, among the content that the gateway's workspace
 * keeps.
 */
import { CID } from 'multiformats/cid'
import type { Pool } from '../../db/pool.ts'
import { findSignature, listGatewayFiles } from '../../db/statements/gateways.ts'
import { ApiError, badRequest, notFound } from '../../errors.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import { LABEL_LENGTH } from '../../files/gateway-domain.ts'
import type { Gateway } from '../../files/gateways/gateways.ts'
import type { InnerCids } from '../../storage/dag/inner-cids.ts'
import { nameFromUrl } from '../../storage/dag/names.ts'
import { follow, InsideObject } from '../../storage/dag/path.ts'
import { entryOf } from '../../storage/dag/unixfs.ts'
import { type DagEntry, type Network, type Storage, StorageError } from '../../storage/port.ts'
import type { KeptContent, KeptLookups } from './kept.ts'

export interface ContentPath {
  network: Network
  cid: CID
  /** The names below the CID; see `names.ts`. */
  names: string[]
  /** Whether it is at the CID's own host, which is a separate origin. */
  isAtOwnHost: boolean
  /** Whether the path is spelled like a directory's, with a trailing slash. Undefined at the root of a CID's host. */
  endsInSlash: boolean | undefined
  /** For `X-Ipfs-Path`: the path in IPFS, encoded as in the URL. */
  ipfsPath: string
}

/** @throws ApiError 400 if a CID cannot be a host's label. */
export function checkLabel(cid: string): string {
  if (cid.length <= LABEL_LENGTH) return cid
  throw badRequest(`cid: ${cid}: CID incompatible with DNS label length limit of ${LABEL_LENGTH}`)
}

const PATH = /^\/(ipfs|files)\/([^/]+)(\/.*)?$/

/**
 * Parses `/ipfs/{cid}[/path]`, content of the public network, and `/files/{cid}[/path]`, of the private one. `URL` has
 * already resolved `.` and `..`, including encoded ones, as browsers do.
 * @param hostCid the CID whose host the path is on: that host serves only its content, from the root.
 * @throws ApiError 400 for a malformed CID or encoding, 404 for every other path.
 */
export function parseContentPath({ pathname }: URL, hostCid?: string): ContentPath {
  const [, root, first, rest = ''] = PATH.exec(hostCid ? `/ipfs/${hostCid}${pathname}` : pathname) ?? []
  if (root === undefined || first === undefined) {
    throw notFound('A gateway has content only: /ipfs/<cid>, and /files/<cid> with a signature')
  }
  if (hostCid) checkLabel(hostCid)
  // An encoded slash is a slash too, as in Kubo: no name contains a slash.
  const path = rest.replaceAll(/%2f/gi, '/')
  const names = path.split('/').filter(Boolean).map(decode)
  if (names.some((name) => name === '.' || name === '..')) throw notFound('path: no entry has such a name')
  return {
    network: root === 'ipfs' ? 'public' : 'private',
    cid: parseCid(decode(first)),
    names,
    isAtOwnHost: hostCid !== undefined,
    endsInSlash: hostCid && path === '/' ? undefined : path.endsWith('/'),
    ipfsPath: `/ipfs/${first}${rest}`,
  }
}

function decode(segment: string): string {
  if (/%(?![0-9a-f]{2})/i.test(segment)) throw badRequest('path: URI malformed')
  return nameFromUrl(segment)
}

/** How many of a workspace's files, newest first, are searched for an inner CID. */
const FILES_LOOKED_AT = 2000

/**
 * Finds what a gateway serves for a CID: a file (see {@link KeptLookups.find}) or, if the gateway's owner allows it,
 * content inside a public file of the workspace.
 */
export async function findServed(
  { pool, lookups, inner }: { pool: Pool; lookups: KeptLookups; inner: InnerCids },
  gateway: Gateway,
  { network, cid: asked }: ContentPath,
  storage: Storage,
  signal: AbortSignal,
): Promise<KeptContent | undefined> {
  const kept = await lookups.find(gateway, network, asked)
  if (kept || network !== 'public' || !gateway.innerCids) return kept
  if (!(await isHere(storage, asked, signal))) return undefined
  const files = await listGatewayFiles.run(pool, gateway.workspaceId, FILES_LOOKED_AT)
  for (const file of files.rows) {
    signal.throwIfAborted()
    if (!(await inner.has(CID.parse(file.cid), asked))) continue
    // A file with this CID may have been signed, and deleted.
    const signed =
      gateway.showsSignatures &&
      (await findSignature.first(pool, gateway.workspaceId, network, canonicalCid(asked)))
    return { cid: asked, name: null, mimeType: null, signature: signed ? signed.signature : null }
  }
  return undefined
}

/** True if the store has a block: a block that it lacks is in no file. */
async function isHere(storage: Storage, cid: CID, signal: AbortSignal): Promise<boolean> {
  try {
    await storage.block(cid, { signal })
    return true
  } catch (error) {
    if (isMissing(error)) return false
    throw error
  }
}

const INDEX = 'index.html'

export interface Walked {
  entry: DagEntry
  /** The block of the entry. */
  block: Uint8Array
  /** The last name on the way; null for the root itself. */
  name: string | null
  /** The CIDs on the way, from the root to the entry. */
  roots: CID[]
  /** The blocks on the way, without the entry's own, but including directory shards. */
  path: CID[]
}

/**
 * Follows names below a root.
 * @throws ApiError 404 if a name is missing, or is below a file; 501 if they lead to a value inside a block.
 */
export async function walk(
  storage: Storage,
  root: CID,
  names: string[],
  signal: AbortSignal,
): Promise<Walked> {
  const path: CID[] = []
  const read = (cid: CID) => {
    path.push(cid)
    return storage.block(cid, { signal })
  }
  const roots = await follow(root, names, read, signal).catch((error) => {
    if (error instanceof InsideObject)
      throw new ApiError(501, 'not_implemented', 'path: leads to a value within a block')
    throw isMissing(error) && names.length > 0 ? notFound('path: does not exist') : error
  })
  const cid = roots.at(-1) ?? root
  const block = await storage.block(cid, { signal })
  return { entry: entryOf(cid, block), block, name: names.at(-1) ?? null, roots, path }
}

/** The index file that is served for a directory, with its block; undefined if it has none. */
export async function findIndex(
  storage: Storage,
  directory: CID,
  signal: AbortSignal,
): Promise<Pick<Walked, 'entry' | 'block' | 'name'> | undefined> {
  const read = (cid: CID) => storage.block(cid, { signal })
  try {
    const cid = (await follow(directory, [INDEX], read, signal)).at(-1) ?? directory
    const block = await read(cid)
    const entry = entryOf(cid, block)
    return entry.type === 'file' ? { entry, block, name: INDEX } : undefined
  } catch (error) {
    if (isMissing(error)) return undefined
    throw error
  }
}

const isMissing = (error: unknown): boolean =>
  error instanceof StorageError && (error.code === 'not_found' || error.code === 'invalid_object')
