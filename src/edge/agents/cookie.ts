import type { Request, Response } from 'express'
import { COOKIE } from './credential.ts'

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
  // Not a host: what begins with two slashes would be one.
  const address = url.replace(/^[/\\]+/, '/')
  const { 'sec-fetch-site': site = 'none' } = req.headers
  if (site === 'cross-site' || site === 'same-site') res.set('Refresh', `0; url=${address}`).status(200).end()
  else res.set('Location', address).status(303).end()
}
