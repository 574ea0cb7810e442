/**
 * CORS: which pages of other origins may call a route and read its answers. A route declares it once, and both its preflight
 * and its answers follow from that. No answer ever allows credentials, so a browser never lends a session's cookie to
 * another origin.
 */
import type { Request, Response } from 'express'

/** Headers of answers that a page may read, besides those that browsers always show. */
const EXPOSED = [
  'Content-Disposition',
  'Content-Length',
  'ETag',
  'Error-Code',
  'Error-Detail',
  'Location',
  'Next-Page-Token',
  'Operation-Id',
  'RateLimit-Limit',
  'RateLimit-Remaining',
  'RateLimit-Reset',
  'Retry-After',
  'Tus-Extension',
  'Tus-Resumable',
  'Tus-Version',
  'Upload-Cid',
  'Upload-Expires',
  'Upload-Length',
  'Upload-Metadata',
  'Upload-Offset',
  'X-Request-Id',
].join(', ')
/** How long browsers keep the answer to a preflight; none of them keeps it for longer. */
const PREFLIGHT_SECONDS = '7200'
/** Headers that a page may send, besides those that its preflight names. */
const ALLOWED = 'Authorization, Content-Type, Idempotency-Key, Prefer, Source'
/** The name of a header that a page may ask for; only the dashboard sends those of sessions. */
const REQUESTED = /^(?!berth-)[\w!#$%&'*+.^`|~-]+$/i

/** The part of a route's declaration that says who may call it. */
export interface Callers {
  scope: unknown
  session?: unknown
  /** The origins whose pages may call the route: `any`, or the API's `own`; see {@link isOpenToPages}. */
  origins?: 'any' | 'own' | undefined
}

/** True for a route that pages of any origin may call: by default each route with a key, except those of sessions. */
export const isOpenToPages = ({ origins, scope, session }: Callers): boolean =>
  origins === undefined ? scope !== null && !session : origins === 'any'

/** Lets pages of any origin read the answer, whether it is a success or an error. */
export function openToPages(res: Response): void {
  res.set({ 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': EXPOSED })
}

/** Answers what a preflight asks: the methods of the path, and the headers that the page wants to send. */
export function allowPages(req: Request, res: Response, methods: Iterable<string>): void {
  openToPages(res)
  const names = (req.get('access-control-request-headers') ?? '').split(',').map((name) => name.trim())
  res.set({
    'Access-Control-Allow-Methods': [...methods].join(', '),
    'Access-Control-Allow-Headers': [ALLOWED, ...names.filter((name) => REQUESTED.test(name))].join(', '),
    'Access-Control-Max-Age': PREFLIGHT_SECONDS,
  })
  res.vary('Access-Control-Request-Headers')
}
