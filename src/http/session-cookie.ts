/** The cookies of dashboard sessions and sign-ins, and the proof that a request came from the dashboard. */
import type { Request, Response } from 'express'
import { forbidden, messages } from '../errors.ts'

/** Required on requests that change something: a page of another origin cannot add it without a preflight. */
const HEADER = 'berth-session'
/** The workspace that the page shows: another tab may have moved the session to another workspace. */
const WORKSPACE = 'berth-workspace'
const READS = ['GET', 'HEAD', 'OPTIONS']

type CookieName = 'session' | 'oidc'

/**
 * Browsers also accept a `Secure` cookie from this machine over http. The prefix keeps pages on hosts below this one,
 * such as agents' pages, from setting it.
 */
const isTrustworthy = ({ secure, hostname }: Request) =>
  secure || /^(127(\.\d+){3}|\[::1\]|(.+\.)?localhost)$/.test(hostname)
const fullName = (req: Request, name: CookieName) => `${isTrustworthy(req) ? '__Host-' : ''}berth-${name}`

/**
 * The session of a request without a key.
 * @throws ApiError 403 if another origin sent it.
 */
export function sessionOf(req: Request): string | undefined {
  if (req.headers.authorization !== undefined) return undefined
  const cookie = readCookie(req, 'session')
  if (cookie === undefined) return undefined
  requireSameOrigin(req)
  if (!READS.includes(req.method) && req.headers[HEADER] !== '1')
    throw forbidden(messages.otherOrigin, 'other_origin')
  return cookie
}

/** @throws ApiError 403 if the session has moved to another workspace than the page's. */
export function requireWorkspace(req: Request, workspaceId: string): void {
  const shown = req.headers[WORKSPACE]
  if (shown !== undefined && shown !== workspaceId)
    throw forbidden('You have gone to another workspace: load the page again', 'other_workspace')
}

/** @throws ApiError 403 if a page of another origin sent the request. Programs send no origin. */
export function requireSameOrigin(req: Request): void {
  const { origin, 'sec-fetch-site': site } = req.headers
  const isOther = origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === req.host)
  if (isOther || (site !== undefined && site !== 'same-origin' && site !== 'none'))
    throw forbidden(messages.otherOrigin, 'other_origin')
}

/** Stores a session in the browser until it ends; an empty value deletes it. */
export function setSessionCookie(req: Request, res: Response, value: string, expires: Date): void {
  setCookie(req, res, { name: 'session', value, expires, sameSite: 'strict' })
}

/**
 * Stores a sign-in in the browser while its user is at the OpenID provider. `Lax`, because the browser comes back from
 * another site.
 */
export function setOidcCookie(req: Request, res: Response, value: string, expires: Date): void {
  setCookie(req, res, { name: 'oidc', value, expires, sameSite: 'lax' })
}

/** The cookie of {@link setOidcCookie}. */
export const oidcCookieOf = (req: Request): string | undefined => readCookie(req, 'oidc')

interface Cookie {
  name: CookieName
  value: string
  expires: Date
  sameSite: 'strict' | 'lax'
}

function setCookie(req: Request, res: Response, { name, value, ...options }: Cookie): void {
  const secure = isTrustworthy(req)
  res.cookie(fullName(req, name), value, { ...options, secure, httpOnly: true, path: '/' })
}

function readCookie(req: Request, name: CookieName): string | undefined {
  const prefix = `${fullName(req, name)}=`
  const pairs = req.headers.cookie?.split(';').map((pair) => pair.trim())
  return pairs?.find((pair) => pair.startsWith(prefix))?.slice(prefix.length)
}
