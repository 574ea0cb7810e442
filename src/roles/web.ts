import { openAccounts } from '../accounts/open.ts'
import { adminRoutes } from '../admin/admin-routes.ts'
import { openAgents } from '../agents/open.ts'
import { openAudit } from '../audit/open.ts'
import type { Config } from '../config.ts'
import { openEvents } from '../events/open.ts'
import { nodeRoutes } from '../files/node-routes.ts'
import { openFiles } from '../files/open.ts'
import { Bounds } from '../lib/bounds.ts'
import type { Logger } from '../log.ts'
import { openModels } from '../models/open.ts'
import { operationRoutes } from '../operations/operation-routes.ts'
import { openHosts } from '../vhosts/open.ts'
import { openAskPort, ServedNames } from '../vhosts/tls-ask.ts'
import { addDeliveries } from '../webhooks/deliveries.ts'
import { webhookRoutes } from '../webhooks/webhook-routes.ts'
import { createApi, guardOf, openServer } from './api.ts'
import { openCore } from './core.ts'
import { openOperatorPorts } from './operator-ports.ts'
import { counted, type RunningRole } from './running-role.ts'
import { openWebHealth } from './web-health.ts'

/**
 * The web role: the API and all other hosts, the dispatcher of operations, and the ids of events.
 * @param bounds limits on the work in progress.
 */
export async function openWeb(config: Config, log: Logger, bounds = new Bounds()): Promise<RunningRole> {
  const { dispatcher, ...core } = await openCore(config, log, bounds)
  const { parts, operations } = core
  const accounts = openAccounts(core)
  const readiness = openWebHealth(core, dispatcher)
  const agents = openAgents(core)
  const files = await openFiles(core)
  const models = openModels(core)
  const { audit, routes: auditRoutes } = openAudit(core)
  const events = openEvents(core, addDeliveries)
  const services = { ...core, guard: guardOf(accounts, agents), calls: agents.calls, audit }
  const hosts = openHosts(core, { agents, files, services })
  await openOperatorPorts(core)
  const app = createApi(core, {
    routes: [
      ...events.routes,
      ...files.routes,
      ...accounts.routes,
      ...webhookRoutes(core),
      ...adminRoutes({ ...accounts.services, readiness }),
      ...auditRoutes,
      ...operationRoutes({ ...core, withdraw: files.withdraw }),
      ...agents.routes,
      ...models.routes,
      ...hosts.routes,
      ...nodeRoutes(core),
    ],
    readiness,
    services,
    vhosts: hosts.handler,
    controls: [models.control, agents.control],
    oauth: accounts.oauth,
  })
  dispatcher.start()
  parts.add('dispatcher', () => dispatcher.stop())
  events.publish()
  parts.add('TLS ask port', await openAskPort(config, new ServedNames(core), log))
  const server = await openServer(core, app)
  // Closed first: the server waits for upgraded connections, and does not end them.
  parts.add('connections to agents', () => agents.services.connections.close())
  parts.add('waits', () => operations.close())
  parts.add('event streams', () => events.close())
  return {
    url: config.PUBLIC_URL ?? server.url,
    stop: () => parts.close(),
    waitsFor: () => counted(server.requests(), 'request'),
    hurry: () => server.cut(),
  }
}
