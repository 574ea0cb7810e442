/**
 * How a client of an agent's own host authenticates. It sends a header, or only the gateway token in `?token=`, in a
 * cookie, or in the first message of its WebSocket (`first-message-auth.ts`). Other sites can make a browser send cookies, so
 * requests that change something need more than a cookie.
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
 * The credential of a request: a header wins over a token in the query, and that over a cookie; undefined if there is
 * none.
 * @param own the agent's gateway token, as this process knows it. If there are several cookies, some of which a page on
 *   a neighbouring host may have set, the cookie with this token counts.
 * @throws ApiError 401 if the token in the query is not a gateway token.
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

/** Removes `token` from the query of a path; the rest stays unchanged. */
export function splitToken(url: string): { url: string; token: string | undefined } {
  const [path = '', ...rest] = url.split('?')
  const parts = rest.join('?').split('&').filter(Boolean)
  const otherParameters = parts.filter((part) => !part.startsWith('token='))
  const token = parts.find((part) => part.startsWith('token='))?.slice('token='.length)
  return { url: otherParameters.length > 0 ? `${path}?${otherParameters.join('&')}` : path, token }
}

/**
 * Rejects requests that another site may have triggered: a cookie authenticates them, and they change something or open
 * a WebSocket. They are allowed if the browser declares that they come from a page on this very host.
 * @throws ApiError 403
 */
export function refuseForeign(req: Request, { by }: Credential): void {
  const isHarmless = SAFE.includes(req.method) && !isUpgrade(req)
  if (by !== 'cookie' || isHarmless || isFromHere(req)) return
  throw forbidden('A cookie is no permission for other sites: send the token in a header', 'cross_site')
}

/**
 * Rejects resources, other than whole pages, that a page elsewhere makes a browser load with its cookie: programs may
 * do anything on GET, and any page that loads a script can read it. Hosts next to this one are other agents', but the
 * same site to browsers.
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
  // Browsers do not send this information to a host on plain HTTP, except `localhost`.
  if (/\btext\/html\b/.test(accept) || isFromHere(req)) return true
  return URL.canParse(referer) && new URL(referer).host === req.host
}

function isFromHere(req: Request): boolean {
  const { origin, 'sec-fetch-site': site } = req.headers
  if (site !== undefined && site !== 'same-origin') return false
  if (origin === undefined) return site === 'same-origin'
  // The scheme is ignored: a proxy in front may have terminated TLS.
  return URL.canParse(origin) && new URL(origin).host === req.host
}

function readCookies(header: string): string[] {
  const pairs = header.split(';').map((pair) => pair.trim().split('='))
  return pairs.flatMap(([name, value = '']) => (name === COOKIE && GATEWAY_TOKEN.test(value) ? value : []))
}

/** True for a browser's request for a page to display, as opposed to a program's request. */
export function isNavigation(req: Request): boolean {
  const { method, headers } = req
  if (method !== 'GET' || isUpgrade(req)) return false
  const mode = headers['sec-fetch-mode']
  return mode === undefined ? /\btext\/html\b/.test(headers.accept ?? '') : mode === 'navigate'
}

/**
 * Stores the token of a page's URL in a cookie, and redirects to the same URL without it. If the request came from
 * another host, a page does the redirect: an HTTP redirect that began elsewhere gets no cookie, or counts as loaded by
 * that page.
 * @param url path and query of the URL, without the token.
 */
export function showWithCookie(
  req: Request,
  res: Response,
  { gatewayToken, url, isSecure }: { gatewayToken: string; url: string; isSecure: boolean },
): void {
  // Otherwise the redirecting page would send its whole URL to the next one.
  res.set({ 'Cache-Control': 'no-store', 'Referrer-Policy': 'no-referrer' })
  res.cookie(COOKIE, gatewayToken, { httpOnly: true, sameSite: 'strict', secure: isSecure || req.secure })
  // A path that begins with two slashes would be treated as a host.
  const address = url.replace(/^[/\\]+/, '/')
  const { 'sec-fetch-site': site = 'none' } = req.headers
  if (site === 'cross-site' || site === 'same-site') res.set('Refresh', `0; url=${address}`).status(200).end()
  else res.set('Location', address).status(303).end()
}
