/** The API of `web`: its application, and the port that also serves all other hosts. */
import type { Express, RequestHandler } from 'express'
import packageJson from '../../package.json' with { type: 'json' }
import type { Authenticator } from '../accounts/authenticator.ts'
import type { Accounts } from '../accounts/open.ts'
import type { AgentAccess } from '../agents/access.ts'
import { urlOf } from '../agents/urls.ts'
import type { Core } from '../core.ts'
import type { Guard, RouteServices } from '../http/admission.ts'
import { dashboard } from '../http/dashboard.ts'
import { documentRoutes } from '../http/docs.ts'
import { healthRoutes } from '../http/health.ts'
import { type Listening, listen } from '../http/listen.ts'
import type { Route } from '../http/route.ts'
import { createServer } from '../http/server.ts'
import { clientAddress } from '../lib/net/ip-address.ts'
import { trustProxies } from '../lib/net/trusted-proxies.ts'
import type { Readiness } from '../lib/readiness.ts'
import { mcpRoute } from '../mcp/mcp-route.ts'

/** Decides who may call: API keys, sessions, and agents' tokens. */
export function guardOf(
  { authenticator }: { authenticator: Authenticator },
  { services: { access } }: { services: { access: AgentAccess } },
): Guard {
  return {
    authenticate: async (header, audience) =>
      (authenticator.isKey(header) ? undefined : await access.authenticate(header)) ??
      (await authenticator.authenticate(header, audience)),
    authenticateSession: (cookie) => authenticator.authenticateSession(cookie),
    authorize: (...asked) => access.authorize(...asked),
    admitToWorkspace: (...asked) => access.admitToWorkspace(...asked),
  }
}

/** The features' routes, and those of health, of the documentation and of the dashboard. */
export function createApi(
  { config, log, bounds, parts }: Core,
  options: {
    routes: Route[]
    readiness: Readiness
    services: RouteServices
    vhosts: RequestHandler
    controls: RequestHandler[]
    oauth: Accounts['oauth']
  },
): Express {
  const { services, vhosts, controls, oauth } = options
  const routes = [...options.routes, ...healthRoutes(options.readiness)]
  const isDashboardOn = config.BERTH_DASHBOARD === 'on'
  const documented = documentRoutes(routes, {
    publicUrl: config.PUBLIC_URL,
    version: packageJson.version,
    home: isDashboardOn ? '/dashboard' : '/docs',
  })
  // They are not in the document, because other specifications describe their requests and responses.
  const publicUrl = config.PUBLIC_URL
  const { version } = packageJson
  const mcp = mcpRoute({ routes, publicUrl, version, challenge: oauth?.challenge, log, bounds, parts })
  const app = createServer({
    routes: [...routes, ...documented, mcp.route, ...(oauth?.routes ?? [])],
    services,
    vhosts,
    controls,
    pages: isDashboardOn ? dashboard(config.BERTH_GATEWAY_DOMAIN) : undefined,
    gatewayUrl: urlOf(config, `<gateway>.${config.BERTH_GATEWAY_DOMAIN}`),
    log,
  })
  mcp.use(app)
  parts.add('names of proxies', trustProxies(app, config.BERTH_TRUST_PROXY, log))
  return app
}

/** Serves the application on PORT and HOST. Connections from trusted proxies are not counted. */
export async function openServer({ config, bounds, parts }: Core, app: Express): Promise<Listening> {
  const isProxy = (address = '') => app.get('trust proxy fn')(address, 0)
  const server = await listen(app, {
    port: config.PORT,
    host: config.HOST,
    admit: (address) =>
      isProxy(address) ? () => {} : bounds.take('connections', { address: clientAddress(address) }),
  })
  parts.add('server', () => server.close())
  return server
}
