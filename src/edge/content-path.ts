import type { CID } from 'multiformats/cid'
import { badRequest, notFound } from '../errors.ts'
import { parseCid } from '../files/cid.ts'
import type { Network } from '../storage/port.ts'

/** What the path of a gateway's URL asks for. */
export interface ContentPath {
  network: Network
  cid: CID
  /** The names below the CID, decoded. */
  names: string[]
  /** The path is spelled as a directory's: with a slash at its end. */
  endsInSlash: boolean
  /** For `X-Ipfs-Path`: the path in IPFS, encoded as in the URL. */
  ipfsPath: string
}

const PATH = /^\/(ipfs|files)\/([^/]+)(\/.*)?$/

/**
 * Reads `/ipfs/{cid}[/path]`, content of the public network, and `/files/{cid}[/path]`, of the private one.
 * `URL` has taken out `.` and `..`, also encoded ones, as browsers do.
 * @throws ApiError 400 for a CID or an encoding that is none, 404 for every other path.
 */
export function parseContentPath({ pathname }: URL): ContentPath {
  const [, root, first, rest = ''] = PATH.exec(pathname) ?? []
  if (root === undefined || first === undefined) {
    throw notFound('A gateway has content only: /ipfs/<cid>, and /files/<cid> with a signature')
  }
  const names = rest.split('/').filter(Boolean).map(decode)
  // A name in a directory has neither: what is asked for cannot be there.
  if (names.some((name) => /[/\0]/.test(name))) throw notFound('path: no entry has such a name')
  return {
    network: root === 'ipfs' ? 'public' : 'private',
    cid: parseCid(decode(first)),
    names,
    endsInSlash: rest.endsWith('/'),
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
