/**
 * The IPFS gateway: serves the content that a workspace keeps, on its gateways' hosts. It serves only the workspace's
 * content, from local blocks: no request uses the network.
 */
import type { Request, RequestHandler, Response } from 'express'
import { ApiError, badRequest, notFound } from '../../errors.ts'
import type { RequestCounts } from '../../files/analytics/request-counts.ts'
import { canonicalCid, parseCid } from '../../files/cid.ts'
import type { Gateway } from '../../files/gateways/gateways.ts'
import type { FileServices } from '../../files/services.ts'
import { abortOnDisconnect } from '../../http/disconnect.ts'
import { transferOf } from '../../http/request-transfer.ts'
import { clientAddress } from '../../lib/net/ip-address.ts'
import { cachingBlocks } from '../../storage/block-cache.ts'
import { isLeafCodec } from '../../storage/dag/codecs.ts'
import { InnerCids } from '../../storage/dag/inner-cids.ts'
import { orNothing, requestHost } from '../hosts.ts'
import { checkSignature, checkToken } from './access.ts'
import { type ContentPath, checkLabel, findServed, parseContentPath } from './content.ts'
import { countAnswer } from './count.ts'
import { askedFormat } from './formats.ts'
import type { Images } from './images/images.ts'
import { KeptLookups } from './kept.ts'
import { sendServed } from './serve.ts'

export interface GatewayParts extends FileServices {
  /** Undefined if nothing is counted. */
  counts: RequestCounts | undefined
  images: Images
}

const METHODS = 'GET, HEAD, OPTIONS'
/** Time limit for a response: a file may have any number of bytes, and clients can continue with a range. */
const ANSWER_MS = 6 * 3_600_000
/** Time limit for finding the content at a path, and its type. Sending has separate limits; see `respond.ts`. */
const POLL_MS = 30_000
/**
 * Any site may read a gateway's responses: the permission is in the URL or a header, never in a cookie that a browser
 * would add.
 */
const EVERY_ANSWER = {
  'Access-Control-Allow-Origin': '*',
  'Access-Control-Allow-Methods': METHODS,
  'Access-Control-Allow-Headers':
    'Content-Type, If-None-Match, Range, User-Agent, X-Pinata-Gateway-Token, X-Requested-With',
  'Access-Control-Expose-Headers':
    'Content-Disposition, Content-Length, Content-Range, ETag, Pinata-Signature, X-Chunked-Output, X-Ipfs-Path, X-Ipfs-Roots, ' +
    'X-Request-Id, X-Stream-Output',
  'X-Content-Type-Options': 'nosniff',
  // For errors: responses with content replace it.
  'Cache-Control': 'no-store',
}

/** Handles every request for a host that is or could be a gateway's. */
export function gatewayHandler(parts: GatewayParts): RequestHandler {
  const serving = {
    ...parts,
    lookups: new KeptLookups(parts.pool),
    inner: new InnerCids(parts.storages.public),
    storages: {
      public: cachingBlocks(parts.storages.public),
      private: cachingBlocks(parts.storages.private),
    },
  }
  return async (req, res, next) => {
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
    // Concatenated as text: with a base URL, a target like //host/path would change the host.
    const address = `https://${req.host}${req.url}`
    if (!URL.canParse(address)) throw badRequest('Host: not a host')
    const url = new URL(address)
    const { gateway } = found
    const linked = found.cid === undefined ? linkedPath(url) : undefined
    if (linked !== undefined) return res.redirect(301, linked)
    const path = readPath(url, found, res)
    if (!path) return
    if (path.network === 'public') checkToken(parts.gateways, gateway, req, url)
    else checkSignature(parts.signer, gateway, url)
    if (gateway.cidHosts && path.network === 'public' && !path.isAtOwnHost) {
      return res.redirect(301, ownAddress(req, parts.gateways.hostOf(gateway.domain), path, url))
    }
    const holder = { address: clientAddress(req.ip), workspaceId: gateway.workspaceId }
    const work = () => serve(serving, { gateway, path, url, req, res })
    await parts.bounds.run('downloads', holder, work, transferOf(req, res, next))
  }
}

/** Passes requests for gateways' custom domains to `handler`; requests for any other host continue. */
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

/** Parses the path of a request. A gateway with CID hosts is for people, so it reports a malformed path as text. */
function readPath(
  url: URL,
  { gateway, cid }: { gateway: Gateway; cid: string | undefined },
  res: Response,
): ContentPath | undefined {
  try {
    return parseContentPath(url, cid)
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 400 || !gateway.cidHosts) throw error
    res.status(400).type('text/plain').send(`invalid path "${url.pathname}": ${error.message}\n`)
    return undefined
  }
}

/** The path of an `ipfs:` link, with which browsers call a gateway that handles them: `/ipfs/?uri=ipfs://<cid>/…`. */
function linkedPath({ pathname, searchParams }: URL): string | undefined {
  const uri = searchParams.get('uri')
  if (uri === null || !/^\/ipfs\/?$/.test(pathname)) return undefined
  const [, cid = '', rest = ''] = /^ipfs:\/\/([^/?#\n]+)([/?#].*)?$/.exec(uri) ?? []
  parseCid(cid)
  return `/ipfs/${cid}${rest}`
}

/**
 * The URL of public content on its own origin, with the request's port.
 * @param host the gateway's: a custom domain has no CID hosts.
 * @throws ApiError 400 if a CID cannot be a host name.
 */
function ownAddress(req: Request, host: string, { cid, ipfsPath }: ContentPath, { search }: URL): string {
  const rest = /^\/ipfs\/[^/]+(\/.*)?$/.exec(ipfsPath)?.[1] ?? '/'
  const port = /:\d+$/.exec(req.host)?.[0] ?? ''
  return `${req.protocol}://${checkLabel(canonicalCid(cid))}.ipfs.${host}${port}${rest}${search}`
}

interface Exchange {
  gateway: Gateway
  path: ContentPath
  url: URL
  req: Request
  res: Response
}

interface ServingParts extends GatewayParts {
  lookups: KeptLookups
  inner: InnerCids
}

/** Finds the kept content, and sends the response. */
async function serve(
  { storages, bounds, counts, images, ...parts }: ServingParts,
  exchange: Exchange,
): Promise<void> {
  const { gateway, path, req, res } = exchange
  const storage = storages[path.network]
  const gone = abortOnDisconnect(res)
  const answerTimer = setTimeout(() => gone.abort(), ANSWER_MS)
  const lookTimer = setTimeout(() => gone.abort(), POLL_MS)
  const found = () => clearTimeout(lookTimer)
  try {
    const kept = await findServed(parts, gateway, path, storage, gone.signal)
    if (!kept) throw notKept(req)
    if (kept.signature !== null) res.set('Pinata-Signature', kept.signature)
    if (counts) countAnswer(counts, gateway, path, kept, req, res)
    const answer = () => sendServed(storage, kept, { ...exchange, images, signal: gone.signal, found })
    const holder = { address: clientAddress(req.ip), workspaceId: gateway.workspaceId }
    const isCar = askedFormat(req, exchange.url)?.format === 'car'
    const bounded = () => (isCar ? bounds.run('carDownloads', holder, answer) : answer())
    // Content of a single block is sent at once.
    if (isLeafCodec(kept.cid)) await bounded()
    else await bounds.run('dagDownloads', { cid: `${kept.cid}` }, bounded)
  } finally {
    clearTimeout(answerTimer)
    clearTimeout(lookTimer)
  }
}

/** A client that only wants cached content gets 412, as from a cache. */
function notKept(req: Request): ApiError {
  const onlyIfCached = /\bonly-if-cached\b/.test(req.get('cache-control') ?? '')
  return onlyIfCached ? new ApiError(412, 'not_cached', 'cid: not kept here') : notFound('cid: not kept here')
}
