/** The common part of all ways to sign in: the permission check, and the response with a session cookie. */

import type { Request, Response } from 'express'
import { z } from 'zod'
import { noteCaller } from '../http/audit.ts'
import { timestamp, uuid } from '../http/fields.ts'
import { requireSameOrigin, setSessionCookie } from '../http/session-cookie.ts'
import type { AccountServices } from './services.ts'
import type { Browser, Opened, SessionLimits } from './sessions.ts'

export const opened = z.object({ id: uuid, expiresAt: timestamp })

/** `workspaceId` of a sign-in. */
export const signInWorkspace = z
  .uuid('must be the id of a workspace')
  .optional()
  .describe(
    'Where to sign in, for a user of several workspaces. Default: the workspace of their newest session, or else the one they joined first.',
  )

/** How long sessions last. */
export const sessionLimits = ({ config }: AccountServices): SessionLimits => ({
  hours: config.BERTH_SESSIONS.hours,
  idleHours: config.BERTH_SESSIONS.idleHours,
})

/**
 * Signs in, and gives the browser the session cookie.
 * @param via the caller's credential for the audit: the link, or the session that was opened.
 * @throws ApiError 403 for a page of another origin, 429 if the address was rejected too often, and whatever `open`
 *   throws.
 */
export async function signIn(
  services: AccountServices,
  { req, res, via }: { req: Request; res: Response; via: 'link' | 'session' },
  open: (browser: Browser) => Promise<Opened>,
): Promise<{ body: { data: z.output<typeof opened> } }> {
  requireSameOrigin(req)
  const browser = { userAgent: req.headers['user-agent'], limits: sessionLimits(services) }
  const { id, workspaceId, userId, cookie, expiresAt } = await services.addresses.signIn(req, () =>
    open(browser),
  )
  noteCaller(res, { via, workspaceId, userId, keyId: id })
  setSessionCookie(req, res, cookie, expiresAt)
  return { body: { data: { id, expiresAt: expiresAt.toISOString() } } }
}

/** The URL of the dashboard: PUBLIC_URL, or without it the origin that the request names. */
export function dashboardUrl(req: Request, publicUrl: string | undefined): URL | undefined {
  const own = `${req.protocol}://${req.host}`
  return publicUrl ? new URL(publicUrl) : URL.canParse(own) ? new URL(own) : undefined
}
