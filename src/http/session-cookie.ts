/** The cookie of a session of the dashboard, and what a request with it must show: that it came from the dashboard itself. */
import type { Request, Response } from 'express'
import { forbidden, messages } from '../errors.ts'

/** A request that changes something has it: a page of another origin cannot add it without asking the API first. */
const HEADER = 'berth-session'
const READS = ['GET', 'HEAD', 'OPTIONS']

/**
 * Browsers take a `Secure` cookie from this machine over http as well; the prefix keeps pages of hosts below this one, such
 * as those of agents, from setting it.
 */
const isTrustworthy = ({ secure, hostname }: Request) =>
  secure || /^(127(\.\d+){3}|\[::1\]|(.+\.)?localhost)$/.test(hostname)
const cookieName = (req: Request) => (isTrustworthy(req) ? '__Host-berth-session' : 'berth-session')

/**
 * The session of a request that has no key.
 * @throws ApiError 403 where another origin sent it.
 */
export function sessionOf(req: Request): string | undefined {
  if (req.headers.authorization !== undefined) return undefined
  const prefix = `${cookieName(req)}=`
  const cookie = req.headers.cookie
    ?.split(';')
    .map((pair) => pair.trim())
    .find((pair) => pair.startsWith(prefix))
  if (cookie === undefined) return undefined
  requireSameOrigin(req)
  if (!READS.includes(req.method) && req.headers[HEADER] !== '1')
    throw forbidden(messages.otherOrigin, 'other_origin')
  return cookie.slice(prefix.length)
}

/** @throws ApiError 403 for what a page of another origin sent. Programs say nothing of an origin. */
export function requireSameOrigin(req: Request): void {
  const { origin, 'sec-fetch-site': site } = req.headers
  const isOther = origin !== undefined && !(URL.canParse(origin) && new URL(origin).host === req.host)
  if (isOther || (site !== undefined && site !== 'same-origin' && site !== 'none'))
    throw forbidden(messages.otherOrigin, 'other_origin')
}

/** Has the browser keep a session until it ends; an empty one is forgotten. */
export function setSessionCookie(req: Request, res: Response, value: string, expires: Date): void {
  const options = { httpOnly: true, sameSite: 'strict', path: '/', expires } as const
  res.cookie(cookieName(req), value, { ...options, secure: isTrustworthy(req) })
}
