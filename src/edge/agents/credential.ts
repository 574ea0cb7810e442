/**
 * How a client of an agent's own host says who it is (compatibility 2.1): a header; or the gateway token, and it alone,
 * in `?token=` or in a cookie. Cookies come with requests that other sites make a browser send, so what changes
 * something needs more than one.
 */
import type { Request } from 'express'
import { GATEWAY_TOKEN } from '../../agents/access.ts'
import { forbidden, messages, unauthorized } from '../../errors.ts'
import { isUpgrade } from '../../http/upgrade.ts'

export const COOKIE = 'gw_token'
const SAFE = ['GET', 'HEAD', 'OPTIONS']

export interface Credential {
  by: 'header' | 'query' | 'cookie'
  /** As the Authorization header has it. */
  authorization: string
}

/**
 * The credential of a request, a header before a token in the query before a cookie; undefined where there is none.
 * @throws ApiError 401 for a token in the query that is no gateway token.
 */
export function readCredential({ headers, url }: Pick<Request, 'headers' | 'url'>): Credential | undefined {
  if (headers.authorization !== undefined) return { by: 'header', authorization: headers.authorization }
  const token = splitToken(url).token
  if (token !== undefined) {
    if (!GATEWAY_TOKEN.test(token)) throw unauthorized(messages.badToken, 'bad_token')
    return { by: 'query', authorization: `Bearer ${token}` }
  }
  const kept = readCookie(headers.cookie ?? '')
  return kept === undefined ? undefined : { by: 'cookie', authorization: `Bearer ${kept}` }
}

/** Takes `token` out of the query of a path; the rest stays as it was written. */
export function splitToken(url: string): { url: string; token: string | undefined } {
  const [path = '', ...rest] = url.split('?')
  const parts = rest.join('?').split('&').filter(Boolean)
  const others = parts.filter((part) => !part.startsWith('token='))
  const token = parts.find((part) => part.startsWith('token='))?.slice('token='.length)
  return { url: others.length > 0 ? `${path}?${others.join('&')}` : path, token }
}

/**
 * Refuses what another site may have made a browser send: a request with a cookie for its credential that changes
 * something or opens a WebSocket, unless the browser says that it comes from a page of this very host.
 * @throws ApiError 403
 */
export function refuseForeign(req: Request, { by }: Credential): void {
  const isHarmless = SAFE.includes(req.method) && !isUpgrade(req)
  if (by !== 'cookie' || isHarmless || isFromHere(req)) return
  throw forbidden('A cookie is no permission for other sites: send the token in a header', 'cross_site')
}

/**
 * Refuses what a page elsewhere has a browser load with its cookie, beside whole pages: programs may do anything on GET,
 * and a script is read by whoever loads it. Hosts beside this one are other agents', and the same site to browsers.
 * @throws ApiError 403
 */
export function refuseEmbedded({ headers }: Pick<Request, 'headers'>, { by }: Pick<Credential, 'by'>): void {
  const {
    'sec-fetch-site': site = 'none',
    'sec-fetch-mode': mode,
    'sec-fetch-dest': dest = 'document',
  } = headers
  const isPage = mode === 'navigate' && dest === 'document'
  if (by !== 'cookie' || isPage || site === 'none' || site === 'same-origin') return
  throw forbidden('A cookie is no permission for other sites: send the token in a header', 'cross_site')
}

function isFromHere(req: Request): boolean {
  const { origin, 'sec-fetch-site': site } = req.headers
  if (site !== undefined && site !== 'same-origin') return false
  if (origin === undefined) return site === 'same-origin'
  // The scheme is left out: a proxy in front may have taken TLS off.
  return URL.canParse(origin) && new URL(origin).host === req.host
}

function readCookie(header: string): string | undefined {
  const values = header.split(';').map((pair) => pair.trim().split('='))
  return values.find(([name, value = '']) => name === COOKIE && GATEWAY_TOKEN.test(value))?.[1]
}

/** Whether a browser asks for a page to show, as opposed to what a program reads. */
export function isNavigation(req: Request): boolean {
  const { method, headers } = req
  if (method !== 'GET' || isUpgrade(req)) return false
  const mode = headers['sec-fetch-mode']
  return mode === undefined ? /\btext\/html\b/.test(headers.accept ?? '') : mode === 'navigate'
}
