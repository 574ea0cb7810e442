import packageJson from '../../package.json' with { type: 'json' }
import { Authenticator } from '../accounts/authenticator.ts'
import { KeyService } from '../accounts/keys.ts'
import { keyRoutes } from '../accounts/routes.ts'
import { loadSigningKey } from '../accounts/tokens.ts'
import { AgentAccess } from '../agents/access.ts'
import { AgentdClient } from '../agents/agentd-client.ts'
import { AgentOperations } from '../agents/operate.ts'
import { agentRoutes } from '../agents/routes.ts'
import { urlOf } from '../agents/urls.ts'
import { type Config, hostUrl, loadHostKey } from '../config.ts'
import { Notifications } from '../db/notifications.ts'
import { createPrisma } from '../db/prisma.ts'
import { AgentConnections } from '../edge/agents/connections.ts'
import { agentHandler } from '../edge/agents/handler.ts'
import { appHandler, customDomainHandler } from '../edge/apps/handler.ts'
import { SiteDirectory } from '../edge/apps/site.ts'
import { gatewayHandler } from '../edge/gateway.ts'
import { byHost } from '../edge/hosts.ts'
import { fileRoutes } from '../files/files/routes.ts'
import { gatewayRoutes } from '../files/gateways/routes.ts'
import { GatewayService } from '../files/gateways/service.ts'
import { groupRoutes } from '../files/groups/routes.ts'
import { nodeRoutes } from '../files/node-routes.ts'
import { markBackfilled } from '../files/pins/backfill.ts'
import { pinRoutes } from '../files/pins/routes.ts'
import { PinService } from '../files/pins/service.ts'
import { psaRoutes } from '../files/psa/routes.ts'
import { removeFile } from '../files/remove.ts'
import { UrlSigner } from '../files/signed-url.ts'
import { swapRoutes } from '../files/swaps/routes.ts'
import { usageRoutes } from '../files/usage/routes.ts'
import { documentRoutes } from '../http/docs.ts'
import { healthRoutes } from '../http/health.ts'
import { listen } from '../http/listen.ts'
import { createMetrics, metricsRoute } from '../http/metrics.ts'
import { RateLimiter } from '../http/rate-limit.ts'
import type { Route } from '../http/route.ts'
import { createServer } from '../http/server.ts'
import type { Logger } from '../log.ts'
import { Dispatcher } from '../operations/dispatcher.ts'
import { createQueueBackend } from '../operations/queue.ts'
import { createRedis } from '../operations/redis.ts'
import { operationRoutes } from '../operations/routes.ts'
import { Waiter } from '../operations/wait.ts'
import { WorkerStatus } from '../operations/workers.ts'
import { loadSealer } from '../sealer.ts'
import { openStorages } from '../storage/open.ts'
import { openDatabase } from './database.ts'
import { Parts, type RunningRole } from './parts.ts'
import { openUploads } from './uploads.ts'

/** The web role: the API, the gateways, and the dispatcher. */
export async function openWeb(config: Config, log: Logger): Promise<RunningRole> {
  const parts = new Parts(log)
  const { databaseUrl, pool } = await openDatabase(config, log, parts)
  const prisma = createPrisma(pool)
  const storages = await openStorages(config, 'web', log, parts)
  const notifications = new Notifications(databaseUrl, log)
  await notifications.start()
  parts.add('notifications', () => notifications.stop())

  const redis = config.REDIS_URL ? createRedis(config.REDIS_URL, log) : undefined
  if (redis) parts.add('redis', () => redis.disconnect())
  const backend = createQueueBackend({ redisUrl: config.REDIS_URL, databaseUrl }, log)
  parts.add('queues', () => backend.close())
  const dispatcher = new Dispatcher({
    pool,
    queue: backend.queue,
    log,
    ahead: config.BERTH_DISPATCH_AHEAD,
    activeLimits: { pins: config.BERTH_PIN_ACTIVE_LIMIT },
    onHeldBack: () => markBackfilled(pool, config.BERTH_PIN_ACTIVE_LIMIT),
  })
  const wakeDispatcher = () => dispatcher.wake()

  const signingKey = loadSigningKey(config.JWT_KEY, config.BERTH_DATA_DIR)
  const authenticator = new Authenticator(pool, signingKey, notifications)
  const rateLimiter = new RateLimiter(redis)
  const access = new AgentAccess({ pool, signingKey, platformScope: config.BERTH_PLATFORM_TOKEN_SCOPE })
  const signer = new UrlSigner(signingKey)
  const waiter = new Waiter(pool, notifications)
  const workers = new WorkerStatus(pool)
  const gateways = new GatewayService(pool, config.BERTH_GATEWAY_DOMAIN)
  const registry = createMetrics(pool)
  const pins = new PinService(pool, wakeDispatcher)
  const agentd = new AgentdClient({ hostUrl: hostUrl(config), hostKey: loadHostKey(config) })
  parts.add('ways to agents', () => agentd.close())
  const connections = new AgentConnections({ pool, notifications, registry, log })
  const agents = {
    pool,
    config,
    access,
    agentd,
    connections,
    operations: new AgentOperations({ pool, waiter, wakeDispatcher }),
    sealer: loadSealer(config),
    notifications,
    storages,
  }
  const allowPrivateHostNodes = config.BERTH_ALLOW_PRIVATE_HOST_NODES
  const routes: Route[] = [
    ...pinRoutes({ pool, pins, waiter, wakeDispatcher, allowPrivateHostNodes }),
    ...psaRoutes({ pool, pins, workers, wakeDispatcher, allowPrivateHostNodes }),
    ...openUploads(config, { databaseUrl, pool, storages, gateways, signer, rateLimiter, log, parts }),
    ...fileRoutes({ pool, waiter, wakeDispatcher }),
    ...groupRoutes(pool),
    ...swapRoutes({ pool, gateways }),
    ...gatewayRoutes({ prisma, gateways }),
    ...usageRoutes(pool),
    ...keyRoutes(new KeyService(prisma, signingKey), () => authenticator.forgetKeys()),
    ...operationRoutes({
      pool,
      waiter,
      async cancel({ target }, workspaceId) {
        await removeFile(pool, { workspaceId, network: 'public', id: target, only: 'pending' })
        wakeDispatcher()
      },
    }),
    ...agentRoutes(agents),
    ...nodeRoutes(workers),
    ...healthRoutes({ pool, pingQueue: () => redis?.ping() ?? Promise.resolve(), workers }),
    metricsRoute(registry),
  ]
  const documented = documentRoutes(routes, config.PUBLIC_URL, packageJson.version)
  const services = { authenticator, rateLimiter, agents: access }
  const apps = {
    domain: config.BERTH_APP_DOMAIN,
    isSecure: config.PUBLIC_URL?.startsWith('https:') ?? false,
    pool,
    agentd,
    connections,
    sites: new SiteDirectory({ pool, notifications }),
  }
  const app = createServer({
    routes: [...routes, ...documented],
    services,
    registry,
    edge: byHost(
      config.PUBLIC_URL,
      [
        {
          domain: config.BERTH_GATEWAY_DOMAIN,
          handler: gatewayHandler({ pool, gateways, signer, storages }),
        },
        {
          domain: config.BERTH_AGENT_DOMAIN,
          handler: agentHandler({
            ...apps,
            domain: config.BERTH_AGENT_DOMAIN,
            services,
            pagesUrl: (agentId) => urlOf(config, `${agentId}.${config.BERTH_APP_DOMAIN}`),
          }),
        },
        { domain: config.BERTH_APP_DOMAIN, handler: appHandler(apps) },
      ],
      customDomainHandler(apps),
    ),
    trustProxy: config.BERTH_TRUST_PROXY,
    log,
  })
  dispatcher.start()
  parts.add('dispatcher', () => dispatcher.stop())
  const server = await listen(app, config.PORT, config.HOST)
  parts.add('server', () => server.close())
  // First of all: the server waits for connections that were upgraded, and would not end them.
  parts.add('connections to agents', () => connections.close())
  return { url: config.PUBLIC_URL ?? server.url, stop: () => parts.close() }
}
