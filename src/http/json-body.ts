/** JSON bodies: their size limit, their time limit, and how many may be arriving at a time. */
import type { IncomingMessage } from 'node:http'
import express, { type Request, type RequestHandler } from 'express'
import { ApiError, contractError } from '../errors.ts'
import type { BoundKind, Bounds } from '../lib/bounds.ts'
import { clientAddress } from '../lib/net/ip-address.ts'
import { transferOf } from './request-transfer.ts'

/**
 * Reads the JSON body of a route into `req.body`.
 * @param route.scope null for a route without a key, whose bodies have lower limits.
 * @param route.invalidBody the contract's message for text that is not JSON.
 */
export function readJson(
  { scope, invalidBody }: { scope: unknown; invalidBody?: string },
  bounds: Bounds,
): RequestHandler[] {
  const rules = scope === null ? ANONYMOUS_BODY : KEYED_BODY
  return [limitBodyTime(rules), boundBodies(bounds, rules), bodyParser(invalidBody, rules)]
}

/** Limits of a JSON body. */
interface BodyRules {
  bytes: number
  ms: number
  kind: BoundKind
  /** A body up to this size does not count among the bodies that are arriving. */
  freeBytes: number
}
const KEYED_BODY: BodyRules = { bytes: 1_048_576, ms: 60_000, kind: 'jsonBodies', freeBytes: 16_384 }
const ANONYMOUS_BODY: BodyRules = { bytes: 16_384, ms: 10_000, kind: 'anonymousBodies', freeBytes: 0 }

/** Requests with an empty body, which the parser would take for `{}`. */
const withoutBody = new WeakSet<IncomingMessage>()
/** Every body is parsed as JSON, regardless of its Content-Type: `curl -d` declares it as a form. */
const jsonParser = ({ bytes: limit }: BodyRules) =>
  express.json({
    limit,
    strict: false,
    type: () => true,
    verify: (req, _res, body) => void (body.length === 0 && withoutBody.add(req)),
  })
const parsers = new Map([KEYED_BODY, ANONYMOUS_BODY].map((rules) => [rules, jsonParser(rules)]))

/**
 * Ends the wait for a JSON body: the server has no request timeout, because uploads take long. A request with neither
 * Content-Length nor Transfer-Encoding has an empty body (RFC 9112, 6.3), which nobody reads, so it never ends.
 */
const limitBodyTime =
  ({ ms }: BodyRules): RequestHandler =>
  (req, _res, next) => {
    if (!hasBody(req)) return next()
    const late = setTimeout(
      () => next(new ApiError(408, 'timeout', `body: did not arrive within ${ms / 1000} seconds`)),
      ms,
    )
    for (const event of ['end', 'close']) req.once(event, () => clearTimeout(late))
    next()
  }

const hasBody = ({ headers }: Request): boolean =>
  'content-length' in headers || 'transfer-encoding' in headers

/** Bounds the bodies that are arriving: a client may be slow, and the received part stays in memory. */
const boundBodies =
  (bounds: Bounds, { kind, freeBytes }: BodyRules): RequestHandler =>
  (req, res, next) => {
    const { 'content-length': length, 'content-encoding': encoding } = req.headers
    const isChunked = 'transfer-encoding' in req.headers
    const isFree = !isChunked && encoding === undefined && Number(length ?? 0) <= freeBytes
    if (isFree) return next()
    const holder = res.locals.principal ?? { address: clientAddress(req.ip) }
    const release = bounds.take(kind, holder, transferOf(req, res, next))
    for (const event of ['end', 'close']) req.once(event, release)
    next()
  }

/** Parses JSON; if the contract fixes a message for an invalid body, text that is not JSON gets that message too. */
function bodyParser(invalidBody: string | undefined, rules: BodyRules): RequestHandler {
  const parseJson = parsers.get(rules) as RequestHandler
  return (req, res, next) =>
    parseJson(req, res, (error?: unknown) => {
      if (withoutBody.has(req)) req.body = undefined
      if (!invalidBody) return next(error)
      const isNoJson = (error as { type?: string } | undefined)?.type === 'entity.parse.failed'
      next(isNoJson ? contractError(400, 'bad_request', invalidBody, 'body: not valid JSON') : error)
    })
}
