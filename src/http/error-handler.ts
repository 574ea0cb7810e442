import type { ErrorRequestHandler, Request, RequestHandler } from 'express'
import { isContention, isDatabaseDown, isDatabaseFull } from '../db/database-errors.ts'
import { ApiError, badRequest, full, messages, notFound, unavailable } from '../errors.ts'
import { noSpace } from '../lib/disk-reserve.ts'
import type { Logger } from '../log.ts'
import { NodeFullError, StorageError } from '../storage/port.ts'
import { openToPages } from './cross-origin.ts'

/** The Git LFS API, where its client looks for it after each URL of an agent's repository. */
const LFS = /^\/v0\/agents\/[^/]+(?:\.git|\/git|\/git\.git)\/info\/lfs(?=\/|$)/

/**
 * Paths that clients have methods for, but Berth has no routes for. The response says so, so that nobody looks for a
 * mistake in the request.
 */
const NOT_OFFERED: [RegExp, string][] = [
  [/^\/v3\/vectorize(?=\/|$)/, 'Vectors are not offered: Berth has no index of what files mean'],
  [/^\/v3\/x402(?=\/|$)/, 'x402 is not offered: Berth sells nothing'],
  [
    /^\/v0\/credits(?=\/|$)/,
    'Credits are not offered: budgets limit what models cost, see GET /v0/model/budget',
  ],
  [LFS, 'Git LFS is not offered: push the files themselves, or upload them to IPFS and keep their CIDs'],
]

/** Responds to requests without a matching route. */
export const unknownRoute: RequestHandler = (req, res) => {
  openToPages(res)
  const notOffered = NOT_OFFERED.find(([paths]) => paths.test(req.path))
  if (notOffered) throw new ApiError(501, 'not_implemented', notOffered[1])
  throw notFound(`No such route: ${req.method} ${req.path}`)
}

/**
 * Content paths of gateways. The API's host serves none, because such content could act on the API with its reader's
 * session.
 */
const CONTENT = /^\/(?:ipfs|ipns|files)\/[^/]/

/** Responds to requests for content with the URL at which gateways serve it. */
export const pointToGateway =
  (gatewayUrl: string): RequestHandler =>
  (req, res, next) => {
    if (!CONTENT.test(req.path)) return next()
    openToPages(res)
    throw notFound(
      `No such route: ${req.method} ${req.path}. Gateways serve content: ${gatewayUrl}${req.path} (GET /v3/gateways has their names)`,
    )
  }

/**
 * True for a path of the Pinning Service API. That is a separate specification, whose clients expect an error's reason
 * and details where the contract has only a message.
 */
export const isPinningService = (path: string): boolean => /^\/psa(?=[/?]|$)/.test(path)

/** git shows plain text to its user; for any other type, it only shows the status. */
const isGit = (req: Request): boolean => /^git\//.test(req.get('user-agent') ?? '')

/** The single place where an error becomes a response: `{"error": "<message>"}` (contract 2.3, 7). */
export function errorHandler(log: Logger): ErrorRequestHandler {
  return (error, req, res, _next) => {
    const answer = toApiError(error)
    // The client has disconnected, or the response is half written: nothing more can be sent.
    if (res.headersSent || res.destroyed) return void res.destroy()
    // A path that cannot be decoded reaches no route, so no declaration let pages read the error.
    if (error instanceof URIError) openToPages(res)
    if (answer.status >= 500) (req.log ?? log).error({ err: error }, answer.message)
    res.status(answer.status).set({ 'Error-Code': answer.code, ...answer.headers })
    // Browsers may cache a 404 or 410 without revalidation, and a 410 permanently.
    if (!res.hasHeader('cache-control')) res.set('cache-control', 'no-store')
    const { code, message } = answer
    if (isGit(req)) return void res.type('text/plain').send(`${message}\n`)
    // A Git LFS client shows `message`.
    if (LFS.test(req.originalUrl))
      return void res.type('application/vnd.git-lfs+json').json({ error: message, message })
    const forClients = isPinningService(req.originalUrl)
      ? { reason: code.toUpperCase(), details: message }
      : message
    res.json({ error: forClients })
  }
}

/** The response for any thrown value. */
export function toApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error
  if (isDatabaseFull(error)) return full('No space left: the disk of PostgreSQL is full', error)
  if (isDatabaseDown(error)) return unavailable('Database unreachable', error)
  // Others have held the lock of a CID for seconds, as happens while its node hangs.
  if (isContention(error)) return unavailable(messages.ipfsUnreachable, error)
  if (error instanceof NodeFullError) return full(error.message, error)
  if (error instanceof StorageError && error.code === 'no_space') return noSpace(error.message, error)
  // Routes have already handled client errors: here, the node is unavailable or has lost a block.
  if (error instanceof StorageError) return unavailable(messages.ipfsUnreachable, error)
  // Errors of Express and its parsers: invalid JSON, a body that is too large, a path that cannot be decoded.
  const { status, type, message } = error as { status?: number; type?: string; message?: string }
  if (type === 'entity.parse.failed') return badRequest('body: not valid JSON')
  if (type === 'entity.too.large') return new ApiError(413, 'too_large', 'body: larger than 1 MiB')
  if (typeof status === 'number' && status >= 400 && status < 500) {
    return new ApiError(status, 'bad_request', message ?? 'Bad request')
  }
  return new ApiError(500, 'internal', 'Internal server error', { cause: error })
}
