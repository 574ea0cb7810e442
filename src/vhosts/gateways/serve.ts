/** The response of a gateway that serves some content: in the requested format, or as a redirect. */
import * as dagPb from '@ipld/dag-pb'
import type { Request, Response } from 'express'
import type { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { ApiError, notFound } from '../../errors.ts'
import type { Gateway } from '../../files/gateways/gateways.ts'
import { isInnerShard } from '../../storage/dag/inner-shards.ts'
import { showName } from '../../storage/dag/names.ts'
import { bytesOfFile } from '../../storage/dag/unixfs.ts'
import { decodeUnixFs } from '../../storage/dag/unixfs-node.ts'
import type { Storage } from '../../storage/port.ts'
import { cacheControl, pageCacheControl, tokenOf, withoutToken } from './access.ts'
import { type ContentPath, findIndex, type Walked, walk } from './content.ts'
import { disposition, fileRepresentation } from './file.ts'
import { askedFormat, blockRepresentation, carRepresentation, type Format } from './formats.ts'
import type { Images } from './images/images.ts'
import { askedImage } from './images/options.ts'
import { imageRepresentation } from './images/representation.ts'
import type { KeptContent } from './kept.ts'
import { type ListingDetails, listingRepresentation } from './listing.ts'
import { objectRepresentation } from './objects.ts'
import { findRule } from './redirects-file.ts'
import { checkMatch, hasFresh, type Representation, respond } from './respond.ts'
import { tarRepresentation } from './tar.ts'

export interface Serving {
  gateway: Gateway
  path: ContentPath
  url: URL
  req: Request
  res: Response
  images: Images
  signal: AbortSignal
  /** Call it when the response begins. */
  found: () => void
}

/** Responds to a request that may read. @throws ApiError 404 if a path leads nowhere, and the errors of each format. */
export async function sendServed(storage: Storage, kept: KeptContent, serving: Serving): Promise<void> {
  const { gateway, path, url, req, res, signal, found } = serving
  const asked = askedFormat(req, url)
  const headers = {
    'Cache-Control': cacheControl(path.network, gateway),
    'X-Ipfs-Path': path.ipfsPath,
    Vary: 'Accept',
  }
  const tag = tagOfFile(kept.cid, asked?.format, serving)
  if (tag !== undefined) checkMatch(req, tag)
  if (tag !== undefined && hasFresh(req, res, tag)) {
    return void res
      .status(304)
      .set({ ...headers, ETag: tag, 'X-Ipfs-Roots': `${kept.cid}` })
      .end()
  }
  const located = await locate(storage, kept.cid, asked?.format, serving)
  if ('location' in located) {
    found()
    return res.set(headers).redirect(located.status, located.location)
  }
  const { walked, status } = located
  const send = (form: Representation) => {
    found()
    const roots = { 'X-Ipfs-Roots': walked.roots.join(',') }
    return respond(req, res, { ...headers, ...roots }, { ...form, ...(status !== 200 && { status }) }, signal)
  }
  const format = asked?.format
  if (format === 'raw') return send(blockRepresentation(walked, url))
  if (format === 'car') return send(carRepresentation(storage, walked, asked?.parameters, url))
  if (format === 'tar' && walked.entry.type !== 'other') return send(tarRepresentation(storage, walked, url))
  const object = objectRepresentation(walked, format, url)
  if (!object) return send(await unixFsRepresentation(storage, kept, walked, format, serving))
  return send(format === 'html' ? asPage(object, path, gateway) : object)
}

/**
 * The tag of content that is certainly a file because of its CID: then nothing has to be read to know it. Otherwise
 * undefined.
 */
function tagOfFile(
  cid: CID,
  format: Format | undefined,
  { path, url, req, images }: Serving,
): string | undefined {
  const isFile = cid.code === raw.code && path.names.length === 0 && !path.endsInSlash
  const isAsIs =
    (format === undefined || format === 'html') && !(images.isOn && askedImage(url, req.get('accept')))
  return isFile && isAsIs ? `"${cid}"` : undefined
}

/** A page that the gateway generates is not cached as long as content. */
const asPage = (form: Representation, { network }: ContentPath, gateway: Gateway): Representation => ({
  ...form,
  headers: { ...form.headers, ...pageCacheControl(network, gateway) },
})

type Located = { walked: Walked; status: number } | { location: string; status: number }

/** Finds the content of the path. If a site does not have it, the site's rules decide, at the CID's own host. */
async function locate(
  storage: Storage,
  root: CID,
  format: Format | undefined,
  { path, url, signal }: Serving,
): Promise<Located> {
  const { names, endsInSlash } = path
  const isBlocks = format === 'raw' || format === 'car' || format === 'tar'
  try {
    const walked = await walk(storage, root, names, signal)
    const { type } = walked.entry
    if (isBlocks) return { walked, status: 200 }
    if (type === 'file' && endsInSlash) throw notFound('path: not a directory')
    // Relative links of a page need the slash. A signature is valid for one URL, so it does not work with another one.
    if (type === 'directory' && endsInSlash === false && path.network === 'public') {
      // A path that begins with two slashes would be treated as a host.
      return { location: `${url.pathname.replace(/^\/+/, '/')}/${url.search}`, status: 301 }
    }
    return { walked, status: 200 }
  } catch (error) {
    const isMissing = error instanceof ApiError && error.status === 404
    if (!isMissing || !path.isAtOwnHost || isBlocks) throw error
    const outcome = await findRule(storage, root, names, url.searchParams, signal)
    if (!outcome) throw error
    if ('location' in outcome) return withoutToken(outcome)
    return { walked: await walk(storage, root, outcome.names, signal), status: outcome.status }
  }
}

/** A file or a directory. @throws ApiError 406 for a format that it does not have, and if it is neither of them. */
async function unixFsRepresentation(
  storage: Storage,
  kept: KeptContent,
  { entry, block, name }: Walked,
  format: Format | undefined,
  serving: Serving,
): Promise<Representation> {
  const { gateway, path, url, req, res, images, signal } = serving
  if (format === 'dag-json' || format === 'dag-cbor') {
    throw new ApiError(406, 'not_acceptable', `format: ${entry.cid} is not ${format}, and not converted`)
  }
  if (entry.type === 'other') return symlinkRepresentation(entry.cid, block)
  const file = entry.type === 'file' ? { entry, block, name } : await findIndex(storage, entry.cid, signal)
  if (!file) {
    if (await isInnerShard(storage, { cid: entry.cid, block }, signal)) throw innerShard(entry.cid)
    return asPage(
      listingRepresentation(storage, entry.cid, listingDetails(gateway, path, url, req)),
      path,
      gateway,
    )
  }
  const fileName = file.name ?? kept.name
  const details = {
    cid: file.entry.cid,
    size: file.entry.size ?? 0,
    names: [url.searchParams.get('filename'), fileName],
    mimeType: file.name === null ? kept.mimeType : null,
    bytes: bytesOfFile(file.entry.cid, file.block),
  }
  const form = await fileRepresentation(res, storage, details, signal)
  const shownName = file.name === null ? (kept.name ?? `${file.entry.cid}`) : showName(file.name)
  // A directory has the tag of its own CID, even if its index is sent.
  const original = {
    ...form,
    etag: `"${entry.cid}"`,
    headers: { ...form.headers, ...disposition(url, shownName) },
  }
  const asked = images.isOn ? askedImage(url, req.get('accept')) : undefined
  if (!asked) return original
  const source = {
    cid: `${details.cid}`,
    size: details.size,
    workspaceId: gateway.workspaceId,
    isPublic: path.network === 'public',
    read: (until: AbortSignal) => form.read(0, details.size, until),
  }
  return imageRepresentation(source, original, shownName, asked, serving)
}

const innerShard = (cid: CID) =>
  new ApiError(
    406,
    'not_acceptable',
    `cid: ${cid} is a shard within a directory: ask for the directory, or for format=raw or format=car`,
  )

/** A symbolic link is not followed: its content is its target. @throws ApiError 406 for any other node. */
function symlinkRepresentation(cid: CID, block: Uint8Array): Representation {
  const node = cid.code === dagPb.code ? decodeUnixFs(block) : null
  if (node?.unixfs.type !== 'symlink') {
    throw new ApiError(406, 'not_acceptable', 'Neither file nor directory: ask for format=raw or format=car')
  }
  const target = node.unixfs.data ?? new Uint8Array()
  return {
    etag: `"${cid}"`,
    size: target.length,
    headers: { 'Content-Type': 'inode/symlink' },
    async *read(from, to) {
      yield target.subarray(from, to)
    },
  }
}

function listingDetails(gateway: Gateway, path: ContentPath, url: URL, req: Request): ListingDetails {
  const { network, names, isAtOwnHost } = path
  const [, root = '', cid = '', ...rest] = path.ipfsPath.split('/')
  const all = [cid, ...names]
  if (network === 'private') return { root: 'files', names: all, links: null }
  const here = ['', ...(isAtOwnHost ? [] : [root, cid]), ...rest.filter(Boolean)].join('/')
  const paths = isAtOwnHost ? `//${req.host.replace(/^[^.]+\.ipfs\./i, '')}/ipfs` : '/ipfs'
  return { root, names: all, links: { here, paths, query: tokenOf(url), byCid: gateway.innerCids } }
}
