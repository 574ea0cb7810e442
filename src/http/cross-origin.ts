/**
 * CORS: which pages of other origins may call a route and read its responses. A route declares it once, and both its
 * preflight and its responses follow from that. No response ever allows credentials, so a browser never sends a session
 * cookie from another origin.
 */
import type { Request, Response } from 'express'

/** Response headers that a page may read, besides those that browsers always expose. */
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
/** How long browsers cache a preflight; none of them caches it longer. */
const PREFLIGHT_SECONDS = '7200'
/** Headers that a page may send, in addition to those that its preflight names. */
const ALLOWED = 'Authorization, Content-Type, Idempotency-Key, Prefer, Source'
/** The name of a header that a page may request; only the dashboard sends session headers. */
const REQUESTED = /^(?!berth-)[\w!#$%&'*+.^`|~-]+$/i

/** The part of a route's declaration that determines who may call it. */
export interface Callers {
  scope: unknown
  session?: unknown
  /** The origins whose pages may call the route: `any`, or the API's `own`; see {@link isOpenToPages}. */
  origins?: 'any' | 'own' | undefined
}

/** True if pages of any origin may call a route: by default every route with a key, except session routes. */
export const isOpenToPages = ({ origins, scope, session }: Callers): boolean =>
  origins === undefined ? scope !== null && !session : origins === 'any'

/** Lets pages of any origin read the response, whether it is a success or an error. */
export function openToPages(res: Response): void {
  res.set({ 'Access-Control-Allow-Origin': '*', 'Access-Control-Expose-Headers': EXPOSED })
}

/** Answers a preflight: the methods of the path, and the headers that the page wants to send. */
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
