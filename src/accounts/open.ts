import type { Request } from 'express'
import type { Core } from '../core.ts'
import type { Route } from '../http/route.ts'
import { Authenticator } from './authenticator.ts'
import { feedbackRoutes } from './feedback-routes.ts'
import { identityRoutes } from './identity-routes.ts'
import { invitationRoutes } from './invitation-routes.ts'
import { keyRoutes } from './key-routes.ts'
import { KeyService } from './keys.ts'
import { memberRoutes } from './member-routes.ts'
import { challengeOf, issuerOf, metadataRoutes } from './oauth/metadata.ts'
import { oauthRoutes, tokenRoute } from './oauth/oauth-routes.ts'
import { openIdProvider } from './openid-provider.ts'
import { passkeyRoutes } from './passkey-routes.ts'
import { programRoutes } from './program-routes.ts'
import type { AccountServices } from './services.ts'
import { sessionRoutes } from './session-routes.ts'
import { workspaceKeyRoutes } from './workspace-key-routes.ts'
import { workspaceRoutes } from './workspace-routes.ts'

const KEY_USES_MS = 2000

export interface Accounts {
  authenticator: Authenticator
  services: AccountServices
  routes: Route[]
  /** How clients of `/mcp` get a key through the browser; undefined without a dashboard, which asks for consent. */
  oauth: { routes: Route[]; challenge(req: Request): string } | undefined
}

/** Workspaces, members, API keys and sign-in. */
export function openAccounts(core: Core): Accounts {
  const { config, pool, prisma, signingKeys, notifications, parts } = core
  const idleSeconds = config.BERTH_SESSIONS.idleHours * 3600
  const authenticator = new Authenticator(pool, signingKeys, notifications, idleSeconds)
  const flush = () => authenticator.uses.flush()
  // It stops after the server, so that the last requests are included.
  parts.addLoop('uses of keys', KEY_USES_MS, flush, flush)
  const services: AccountServices = {
    ...core,
    keys: new KeyService(prisma, signingKeys[0]),
    forgetKeys: () => authenticator.forgetKeys(),
    provider: openIdProvider(config),
  }
  const routes = [
    ...keyRoutes(services),
    ...workspaceRoutes(services),
    ...memberRoutes(services),
    ...invitationRoutes(services),
    ...workspaceKeyRoutes(services),
    ...sessionRoutes(services),
    ...passkeyRoutes(services),
    ...identityRoutes(services),
    ...programRoutes(services),
    ...feedbackRoutes(services),
    ...oauthRoutes(services),
  ]
  const publicUrl = config.PUBLIC_URL
  const oauth = {
    routes: [...metadataRoutes(publicUrl), tokenRoute(services)],
    challenge: (req: Request) => challengeOf(issuerOf(req, publicUrl)),
  }
  return { authenticator, services, routes, oauth: config.BERTH_DASHBOARD === 'on' ? oauth : undefined }
}
