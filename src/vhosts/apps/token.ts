/**
 * The gateway token of a visitor to an agent's pages. Nothing else that looks like a credential is Berth's there: it
 * may be the program's own, and is forwarded to it; the token itself never is.
 */
import type { IncomingHttpHeaders } from 'node:http'
import { isSameToken } from '../../agents/access.ts'
import { COOKIE } from '../agents/credential.ts'

export interface Visit {
  /** The place of the token; undefined if there is none, or it is another token. */
  by: 'header' | 'query' | 'cookie' | undefined
  /** The rest of the request's target, headers and cookies. */
  url: string
  authorization: string | undefined
  cookie: string | undefined
}

/** Extracts an agent's token from a request. */
export function readVisit(
  { url, headers }: { url: string; headers: IncomingHttpHeaders },
  gatewayToken: string,
): Visit {
  const { authorization } = headers
  const isToken = (text: string | undefined) => text !== undefined && isSameToken(text, gatewayToken)
  const inHeader = isToken(/^Bearer +(\S+)$/i.exec(authorization ?? '')?.[1])
  const query = withoutToken(url, isToken)
  const cookies = (headers.cookie ?? '').split(';').map((pair) => pair.trim())
  const tokenCookies = cookies.filter((pair) => pair.startsWith(`${COOKIE}=`))
  const inCookie = tokenCookies.some((pair) => isToken(pair.slice(COOKIE.length + 1)))
  return {
    by: inHeader ? 'header' : query.found ? 'query' : inCookie ? 'cookie' : undefined,
    url: query.url,
    authorization: inHeader ? undefined : authorization,
    cookie: cookies.filter((pair) => pair !== '' && !tokenCookies.includes(pair)).join('; ') || undefined,
  }
}

/** Removes `token=` from a query if it is the token; the rest stays unchanged. */
function withoutToken(url: string, isToken: (text: string) => boolean): { url: string; found: boolean } {
  const [path = '', ...rest] = url.split('?')
  const parts = rest.join('?').split('&')
  const otherParameters = parts.filter(
    (part) => !(part.startsWith('token=') && isToken(part.slice('token='.length))),
  )
  if (otherParameters.length === parts.length) return { url, found: false }
  return { url: otherParameters.length > 0 ? `${path}?${otherParameters.join('&')}` : path, found: true }
}
