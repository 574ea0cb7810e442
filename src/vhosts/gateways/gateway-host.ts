/**
 * The IPFS gateway: what a workspace keeps, at its gateways' hosts. Only content of
 * the workspace is served, from blocks that are here: no request asks the network for anything. Image options
 * (`img-width` and so on) are ignored: images leave as they are.
 */
import type { Request, RequestHandler, Response } from 'express'
import type { Pool } from '../../db/pool.ts'
import { ApiError, badRequest, notFound } from '../../errors.ts'
import type { RequestCounts } from '../../files/analytics/request-counts.ts'
import type { Gateway, GatewayService } from '../../files/gateways/gateways.ts'
import type { UrlSigner } from '../../files/signed-url.ts'
import type { AddressLimits } from '../../http/address-limits.ts'
import { abortOnDisconnect } from '../../http/disconnect.ts'
import type { Bounds } from '../../lib/bounds.ts'
import { clientAddress } from '../../lib/net/ip-address.ts'
import { isLeafCodec } from '../../storage/codecs.ts'
import type { Storages } from '../../storage/open.ts'
import type { Storage } from '../../storage/port.ts'
import { orNothing, requestHost } from '../hosts.ts'
import { cacheControl, checkSignature, checkToken, tokenQuery } from './access.ts'
import { type ContentPath, findIndex, findKept, type KeptContent, parseContentPath, walk } from './content.ts'
import { countAnswer } from './count.ts'
import { disposition, fileRepresentation } from './file.ts'
import { askedFormat, blockRepresentation, carRepresentation } from './formats.ts'
import { type ListingDetails, listingRepresentation } from './listing.ts'
import { type Representation, respond } from './respond.ts'

export interface GatewayParts {
  pool: Pool
  gateways: GatewayService
  signer: UrlSigner
  storages: Storages
  bounds: Bounds
  addresses: AddressLimits
  /** Undefined where nothing is counted. */
  counts: RequestCounts | undefined
}

const METHODS = 'GET, HEAD, OPTIONS'
/** Longest answer: a file may have any number of bytes, and whoever reads on asks for a range. */
const ANSWER_MS = 6 * 3_600_000
/** Most time to find out what is at a path, and what type it has. Sending has bounds of its own, see `respond.ts`. */
const LOOK_MS = 30_000
/**
 * Any site may read what a gateway serves: whether the client may is decided by what the URL or a header
 * carries, never by a cookie that a browser would add.
 */
const EVERY_ANSWER = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': METHODS,
  'Access-Control-Allow-Headers':
    'Content-Type, If-None-Match, Range, User-Agent, X-Pinata-Gateway-Token, X-Requested-With',
  'Access-Control-Expose-Headers':
    'Content-Disposition, Content-Length, Content-Range, ETag, X-Ipfs-Path, X-Ipfs-Roots, X-Request-Id',
  'X-Content-Type-Options': 'nosniff',
  // For errors: answers with content replace it.
  'Cache-Control': 'no-store',
}

/** Answers every request for a host that is or could be a gateway's. */
export function gatewayHandler(parts: GatewayParts): RequestHandler {
  return async (req, res) => {
    res.set(EVERY_ANSWER)
    parts.addresses.countRequest(req)
    const found = await parts.gateways.findServed(req.host)
    if (!found) throw notFound('There is no gateway at this host')
    if (req.method === 'OPTIONS') return void res.status(204).set('Access-Control-Max-Age', '86400').end()
    if (req.method !== 'GET' && req.method !== 'HEAD') {
      throw new ApiError(405, 'method_not_allowed', `A gateway answers ${METHODS} only`, {
        headers: { allow: METHODS },
      })
    }
    // Put together as text: against a base, a target like //host/path would change the host.
    const address = `https://${req.host}${req.url}`
    if (!URL.canParse(address)) throw badRequest('Host: not a host')
    const url = new URL(address)
    const { gateway } = found
    const path = parseContentPath(url, found.cid)
    if (path.network === 'public') checkToken(parts.gateways, gateway, req, url)
    else checkSignature(parts.signer, gateway, url)
    const holder = { address: clientAddress(req.ip), workspaceId: gateway.workspaceId }
    await parts.bounds.run('downloads', holder, () => serve(parts, gateway, path, url, req, res))
  }
}

/** Answers requests for the custom domains of gateways by `handler`; those for any other host go on. */
export function customGatewayHandler(
  { gateways, bounds }: Pick<GatewayParts, 'gateways' | 'bounds'>,
  handler: RequestHandler,
): RequestHandler {
  return async (req, res, next) => {
    const by = { address: clientAddress(req.ip) }
    const found = await orNothing(
      gateways.findCustom(requestHost(req), (read) => bounds.run('hostLookups', by, read)),
    )
    return found ? handler(req, res, next) : next()
  }
}

/** Finds what is kept, and answers with it. */
async function serve(
  { pool, storages, bounds, counts }: GatewayParts,
  gateway: Gateway,
  path: ContentPath,
  url: URL,
  req: Request,
  res: Response,
): Promise<void> {
  const kept = await findKept(pool, gateway, path.network, path.cid)
  if (!kept) throw notKept(req)
  if (counts) countAnswer(counts, gateway, path, kept, req, res)
  const storage = storages[path.network]
  const answer = () => serveKept(storage, kept, gateway, path, url, req, res)
  // Content of one block is sent at once.
  if (isLeafCodec(kept.cid)) await answer()
  else await bounds.run('dagDownloads', { cid: `${kept.cid}` }, answer)
}

/** Answers a request that may read. */
async function serveKept(
  storage: Storage,
  kept: KeptContent,
  gateway: Gateway,
  path: ContentPath,
  url: URL,
  req: Request,
  res: Response,
): Promise<void> {
  const gone = abortOnDisconnect(res)
  const answerTimer = setTimeout(() => gone.abort(), ANSWER_MS)
  const lookTimer = setTimeout(() => gone.abort(), LOOK_MS)
  const found = () => clearTimeout(lookTimer)
  try {
    await sendKept(storage, kept, gateway, path, url, { req, res, signal: gone.signal, found })
  } finally {
    clearTimeout(answerTimer)
    clearTimeout(lookTimer)
  }
}

interface Exchange {
  req: Request
  res: Response
  signal: AbortSignal
  /** To be called when the answer begins. */
  found: () => void
}

/** Finds the representation that the request asks for, and sends it. */
async function sendKept(
  storage: Storage,
  kept: KeptContent,
  gateway: Gateway,
  path: ContentPath,
  url: URL,
  { req, res, signal, found }: Exchange,
): Promise<void> {
  const { network, names, endsInSlash } = path
  const { entry, name, roots, bytes } = await walk(storage, kept.cid, names, signal)
  const headers = {
    'Cache-Control': cacheControl(network, gateway),
    'X-Ipfs-Path': path.ipfsPath,
    'X-Ipfs-Roots': roots.join(','),
    Vary: 'Accept',
  }
  const send = (form: Representation) => {
    found()
    return respond(req, res, headers, form, signal)
  }

  const format = askedFormat(req, url)
  if (format === 'raw') return send(await blockRepresentation(storage, entry.cid, signal))
  if (format === 'car') return send(await carRepresentation(storage, entry, names, url, signal))
  if (entry.type === 'other') {
    throw new ApiError(406, 'not_acceptable', 'Neither file nor directory: ask for format=raw or format=car')
  }
  if (entry.type === 'file' && endsInSlash) throw notFound('path: not a directory')
  // Relative links of a page need the slash. A signature is good for one URL, and so needs no other.
  if (entry.type === 'directory' && endsInSlash === false && network === 'public') {
    // A path that begins with two slashes would be taken for a host.
    const address = url.pathname.replace(/^\/+/, '/')
    return res.set(headers).redirect(301, `${address}/${url.search}`)
  }
  const file = entry.type === 'file' ? { entry, name } : await findIndex(storage, entry.cid, signal)
  if (!file) return send(listingRepresentation(storage, entry.cid, listingDetails(path, url)))
  const form = await fileRepresentation(
    res,
    storage,
    {
      cid: file.entry.cid,
      size: file.entry.size ?? 0,
      name: file.name,
      mimeType: file.name === null ? kept.mimeType : null,
      bytes,
    },
    signal,
  )
  const named = disposition(url, file.name ?? kept.name ?? `${file.entry.cid}`)
  return send({ ...form, headers: { ...form.headers, ...named } })
}

const listingDetails = ({ network, cid, names }: ContentPath, url: URL): ListingDetails => ({
  title: ['', network === 'public' ? 'ipfs' : 'files', cid, ...names].join('/'),
  links: network === 'public' ? tokenQuery(url) : null,
  hasParent: names.length > 0,
})

/** A cache that is asked for what it has only says so with 412. */
function notKept(req: Request): ApiError {
  const onlyIfCached = /\bonly-if-cached\b/.test(req.get('cache-control') ?? '')
  return onlyIfCached ? new ApiError(412, 'not_cached', 'cid: not kept here') : notFound('cid: not kept here')
}
