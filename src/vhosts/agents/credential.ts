/**
 * How a client of an agent's own host says who it is: a header; or the gateway token, and it alone,
 * in `?token=`, in a cookie, or in the first message of its WebSocket (`greeting.ts`). Cookies come with requests that other sites make a browser send, so what changes
 * something needs more than one.
 */
import type { Request, Response } from 'express'
import { GATEWAY_TOKEN } from '../../agents/access.ts'
import { forbidden, messages, unauthorized } from '../../errors.ts'
import { isUpgrade } from '../../http/upgrade.ts'

export const COOKIE = 'gw_token'
const SAFE = ['GET', 'HEAD', 'OPTIONS']

export interface Credential {
  by: 'header' | 'query' | 'cookie'
  /** The value of the Authorization header. */
  authorization: string
}

/**
 * The credential of a request, a header before a token in the query before a cookie; undefined where there is none.
 * @param own the agent's gateway token, as this process knows it: of several cookies, which a page of a host beside may
 *   have set, the one that holds it counts.
 * @throws ApiError 401 for a token in the query that is no gateway token.
 */
export function readCredential(
  { headers, url }: Pick<Request, 'headers' | 'url'>,
  own?: string,
): Credential | undefined {
  if (headers.authorization !== undefined) return { by: 'header', authorization: headers.authorization }
  const token = splitToken(url).token
  if (token !== undefined) {
    if (!GATEWAY_TOKEN.test(token)) throw unauthorized(messages.badToken, 'bad_token')
    return { by: 'query', authorization: `Bearer ${token}` }
  }
  const cookies = readCookies(headers.cookie ?? '')
  const kept = cookies.find((token) => token === own) ?? cookies[0]
  return kept === undefined ? undefined : { by: 'cookie', authorization: `Bearer ${kept}` }
}

/** Takes `token` out of the query of a path; the rest stays as it was written. */
export function splitToken(url: string): { url: string; token: string | undefined } {
  const [path = '', ...rest] = url.split('?')
  const parts = rest.join('?').split('&').filter(Boolean)
  const otherParameters = parts.filter((part) => !part.startsWith('token='))
  const token = parts.find((part) => part.startsWith('token='))?.slice('token='.length)
  return { url: otherParameters.length > 0 ? `${path}?${otherParameters.join('&')}` : path, token }
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
export function refuseEmbedded(req: Request, { by }: Pick<Credential, 'by'>): void {
  if (by !== 'cookie' || isPageOrFromHere(req)) return
  throw forbidden('A cookie is no permission for other sites: send the token in a header', 'cross_site')
}

function isPageOrFromHere(req: Request): boolean {
  const {
    'sec-fetch-site': site,
    'sec-fetch-mode': mode,
    'sec-fetch-dest': dest = 'document',
    referer = '',
    accept = '',
  } = req.headers
  if (site !== undefined)
    return site === 'none' || site === 'same-origin' || (mode === 'navigate' && dest === 'document')
  // Browsers say nothing of this to a host on plain HTTP, `localhost` apart.
  if (/\btext\/html\b/.test(accept) || isFromHere(req)) return true
  return URL.canParse(referer) && new URL(referer).host === req.host
}

function isFromHere(req: Request): boolean {
  const { origin, 'sec-fetch-site': site } = req.headers
  if (site !== undefined && site !== 'same-origin') return false
  if (origin === undefined) return site === 'same-origin'
  // The scheme is left out: a proxy in front may have taken TLS off.
  return URL.canParse(origin) && new URL(origin).host === req.host
}

function readCookies(header: string): string[] {
  const pairs = header.split(';').map((pair) => pair.trim().split('='))
  return pairs.flatMap(([name, value = '']) => (name === COOKIE && GATEWAY_TOKEN.test(value) ? value : []))
}

/** True for a browser's request for a page to show, as opposed to a program's. */
export function isNavigation(req: Request): boolean {
  const { method, headers } = req
  if (method !== 'GET' || isUpgrade(req)) return false
  const mode = headers['sec-fetch-mode']
  return mode === undefined ? /\btext\/html\b/.test(headers.accept ?? '') : mode === 'navigate'
}

/**
 * Puts the token of a page's address into a cookie, and leads to the same address without it. From another host it
 * is the page that leads on: a redirect that began elsewhere gets no cookie there, or is taken for what that page loads.
 * @param url path and query of the address, without the token.
 */
export function showWithCookie(
  req: Request,
  res: Response,
  { gatewayToken, url, isSecure }: { gatewayToken: string; url: string; isSecure: boolean },
): void {
  // The page that leads on would tell the next one its whole address.
  res.set({ 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' })
  res.cookie(COOKIE, gatewayToken, { httpOnly: true, sameSite: 'strict', secure: isSecure || req.secure })
  // A path that begins with two slashes would be taken for a host.
  const address = url.replace(/^[/\\]+/, '/')
  const { 'sec-fetch-site': site = 'none' } = req.headers
  if (site === 'cross-site' || site === 'same-site') res.set('Refresh', `0; url=${address}`).status(200).end()
  else res.set('Location', address).status(303).end()
}
