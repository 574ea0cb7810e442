import { join } from 'node:path'
import { Registry } from 'prom-client'
import packageJson from '../../package.json' with { type: 'json' }
import { Authenticator } from '../accounts/authenticator.ts'
import { feedbackRoutes } from '../accounts/feedback-routes.ts'
import { identityRoutes } from '../accounts/identity-routes.ts'
import { invitationRoutes } from '../accounts/invitation-routes.ts'
import { keyRoutes } from '../accounts/key-routes.ts'
import { KeyService } from '../accounts/keys.ts'
import { memberRoutes } from '../accounts/member-routes.ts'
import { openIdProvider } from '../accounts/openid-provider.ts'
import { passkeyRoutes } from '../accounts/passkey-routes.ts'
import { sessionRoutes } from '../accounts/session-routes.ts'
import { workspaceKeyRoutes } from '../accounts/workspace-key-routes.ts'
import { workspaceRoutes } from '../accounts/workspace-routes.ts'
import { adminRoutes } from '../admin/admin-routes.ts'
import { readDestinations } from '../agent-proxy/destination.ts'
import { loadAgentProxy } from '../agent-proxy/tunnel-client.ts'
import { AgentAccess, isGatewayToken } from '../agents/access.ts'
import { AgentdClient } from '../agents/agentd-client.ts'
import { agentRoutes } from '../agents/all-routes.ts'
import { AgentConnections, readValidFingerprints } from '../agents/connections.ts'
import { urlOf } from '../agents/urls.ts'
import { auditRoutes } from '../audit/audit-routes.ts'
import type { Config } from '../config.ts'
import { Notifications } from '../db/notifications.ts'
import { makePartitions } from '../db/partitions.ts'
import { createPrisma } from '../db/prisma.ts'
import { Searches } from '../db/searches.ts'
import { markBackfilled } from '../db/statements/pins.ts'
import { Ownership } from '../domains/ownership.ts'
import { eventRoutes } from '../events/event-routes.ts'
import { EventTail } from '../events/tail.ts'
import { analyticsRoutes } from '../files/analytics/analytics-routes.ts'
import { detailRoutes } from '../files/details.ts'
import { entryRoutes } from '../files/entries.ts'
import { fileRoutes } from '../files/files.ts'
import { gatewayRoutes } from '../files/gateways/gateway-routes.ts'
import { GatewayService } from '../files/gateways/gateways.ts'
import { groupRoutes } from '../files/groups.ts'
import { nodeRoutes } from '../files/node-routes.ts'
import { olderRoutes } from '../files/older-routes.ts'
import { PinService } from '../files/pins/pin-requests.ts'
import { pinRoutes } from '../files/pins/pin-routes.ts'
import { psaRoutes } from '../files/psa/psa-routes.ts'
import { removeFile } from '../files/remove.ts'
import { signatureRoutes } from '../files/signatures.ts'
import { UrlSigner } from '../files/signed-url.ts'
import { swapRoutes } from '../files/swaps.ts'
import { usageRoutes } from '../files/usage.ts'
import { addDatabaseMetrics } from '../health/database-metrics.ts'
import { startDiskWatch } from '../health/disk-events.ts'
import { addBoundMetrics, addDiskMetrics, addPartMetrics, addPoolMetrics } from '../health/process-metrics.ts'
import { AddressLimits } from '../http/address-limits.ts'
import { Audit } from '../http/audit.ts'
import { dashboard } from '../http/dashboard.ts'
import { documentRoutes } from '../http/docs.ts'
import { healthRoutes } from '../http/health.ts'
import { listen } from '../http/listen.ts'
import { OpenCalls } from '../http/open-calls.ts'
import { RateLimiter } from '../http/rate-limit.ts'
import type { Guard, Route } from '../http/route.ts'
import { createServer } from '../http/server.ts'
import { Bounds } from '../lib/bounds.ts'
import { Closers } from '../lib/closers.ts'
import { disksOf } from '../lib/disk.ts'
import { DiskReserve } from '../lib/disk-reserve.ts'
import { loadEncryption } from '../lib/encryption.ts'
import { startLoop } from '../lib/loop.ts'
import { clientAddress } from '../lib/net/ip-address.ts'
import { trustProxies } from '../lib/net/trusted-proxies.ts'
import { loadSigningKeys } from '../lib/signing-keys.ts'
import type { Logger } from '../log.ts'
import { Dispatcher } from '../operations/dispatcher.ts'
import { addDispatcherMetrics } from '../operations/metrics.ts'
import { operationRoutes } from '../operations/operation-routes.ts'
import { Operations } from '../operations/operations.ts'
import { createQueueBackend } from '../operations/queue.ts'
import { createRedis } from '../operations/redis.ts'
import { WorkerStatus } from '../operations/worker-status.ts'
import { postgresFolder } from '../standalone/postgres.ts'
import { openStorages } from '../storage/open.ts'
import { agentHandler } from '../vhosts/agents/agent-host.ts'
import { openAiRoutes } from '../vhosts/agents/openai-routes.ts'
import { appHandler, customDomainHandler } from '../vhosts/apps/app-host.ts'
import { SiteDirectory } from '../vhosts/apps/site.ts'
import { customGatewayHandler, gatewayHandler } from '../vhosts/gateways/gateway-host.ts'
import { ImageCache } from '../vhosts/gateways/images/cache.ts'
import { Images } from '../vhosts/gateways/images/images.ts'
import { byHost, inTurn } from '../vhosts/hosts.ts'
import { openAskPort, ServedNames } from '../vhosts/tls-ask.ts'
import { webhookRoutes } from '../webhooks/webhook-routes.ts'
import { webReadiness } from './checks.ts'
import { openDatabase } from './database.ts'
import { openOperatorPorts } from './operator-ports.ts'
import { counted, type RunningRole } from './running-role.ts'
import { openUploads } from './uploads.ts'
import { openAuditLog, openCounts, openKeyUses, openSequencer } from './web-loops.ts'

const PARTITIONS_MS = 600_000
/** Webhooks of one workspace that are served at a time, so that its dead targets hold up nobody else. */
const WEBHOOKS_OF_WORKSPACE = 8

/**
 * The web role: the API and all other hosts, the dispatcher of operations, and the ids of events.
 * @param bounds limits on the work in progress.
 */
export async function openWeb(config: Config, log: Logger, bounds = new Bounds()): Promise<RunningRole> {
  const parts = new Closers(log)
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
    activeLimits: { pins: config.BERTH_PINS.active, webhooks: WEBHOOKS_OF_WORKSPACE },
    onHeldBack: () => markBackfilled.run(pool, config.BERTH_PINS.active),
  })

  const signingKeys = loadSigningKeys(config)
  const authenticator = new Authenticator(
    pool,
    signingKeys,
    notifications,
    config.BERTH_SESSIONS.idleHours * 3600,
  )
  const forgetKeys = () => authenticator.forgetKeys()
  const keys = new KeyService(prisma, signingKeys[0])
  const searches = new Searches({ pool, prisma, bounds })
  openKeyUses(authenticator, log, parts)
  const partitions = startLoop('partitions', PARTITIONS_MS, log, () => makePartitions(pool))
  parts.add('partitions', () => partitions.stop())
  const rateLimiter = new RateLimiter(redis)
  const addresses = new AddressLimits({
    requests: config.BERTH_ADDRESS_LIMITS.requests,
    failedLogins: config.BERTH_ADDRESS_LIMITS.failedLogins,
    isGatewayToken,
  })
  const access = new AgentAccess({ pool, signingKeys, platformScope: config.BERTH_PLATFORM_TOKEN_SCOPE })
  const signer = new UrlSigner(signingKeys)
  const operations = new Operations({ pool, notifications, bounds, wake: () => dispatcher.wake() })
  const workers = new WorkerStatus(pool)
  const gateways = new GatewayService(pool, config.BERTH_GATEWAY_DOMAIN)
  const registry = new Registry()
  const pingQueue = redis && (() => redis.ping())
  const disks = disksOf(config, 'web', await postgresFolder(config.BERTH_DATA_DIR, databaseUrl))
  const disk = new DiskReserve(disks)
  const diskWatch = startDiskWatch(pool, disks, log)
  parts.add('look at disks', () => diskWatch.stop())
  const readiness = webReadiness({ config, pool, disks, pingQueue, workers, dispatcher, storages, log })
  addPoolMetrics(registry, pool)
  addDatabaseMetrics(registry, pool)
  addPartMetrics(registry, readiness)
  addDiskMetrics(registry, disks)
  addBoundMetrics(registry, bounds)
  addDispatcherMetrics(registry, dispatcher)
  const pins = new PinService(pool)
  const agentd = new AgentdClient(loadAgentProxy(config))
  parts.add('tunnels to agents', () => agentd.close())
  const calls = new OpenCalls({
    readValidFingerprints: (grounds) => readValidFingerprints(pool, grounds),
    notifications,
    log,
  })
  parts.add('checks of what is open', () => calls.close())
  const connections = new AgentConnections({ calls, registry })
  const agents = {
    pool,
    prisma,
    config,
    access,
    bounds,
    agentd,
    connections,
    operations,
    workers,
    encryption: loadEncryption(config),
    notifications,
    storages,
  }
  const allowPrivateHostNodes = config.BERTH_ALLOW_PRIVATE_HOST_NODES
  // Berth does not check the disk of a Kubo.
  const admitPin = async () => (storages.public.driver === 'embedded' ? disk.admit() : undefined)
  const signIn = { prisma, addresses, config, provider: openIdProvider(config) }
  const tail = new EventTail({ pool, notifications, log })
  const routes: Route[] = [
    ...eventRoutes({ pool, tail }),
    ...pinRoutes({ pool, pins, operations, admitPin, allowPrivateHostNodes }),
    ...psaRoutes({ pool, pins, workers, operations, searches, admitPin, allowPrivateHostNodes }),
    ...openUploads(config, {
      databaseUrl,
      pool,
      prisma,
      storages,
      gateways,
      signer,
      rateLimiter,
      bounds,
      disk,
      log,
      parts,
    }),
    ...fileRoutes({ pool, prisma, operations, searches }),
    ...olderRoutes({ pool, searches, operations, pins, admitPin, allowPrivateHostNodes }),
    ...entryRoutes({ prisma, storages, bounds }),
    ...detailRoutes({ pool, prisma }),
    ...groupRoutes({ pool, prisma, searches }),
    ...swapRoutes({ pool, gateways }),
    ...signatureRoutes(prisma),
    ...gatewayRoutes({ pool, prisma, gateways, bounds, config, ownership: new Ownership(config) }),
    ...analyticsRoutes(pool, gateways),
    ...usageRoutes(pool),
    ...keyRoutes(keys, searches, forgetKeys),
    ...workspaceRoutes({ pool, prisma, forgetKeys }),
    ...memberRoutes(prisma, forgetKeys),
    ...invitationRoutes(prisma, keys),
    ...workspaceKeyRoutes(keys, searches, forgetKeys),
    ...sessionRoutes({ ...signIn, forgetKeys }),
    ...passkeyRoutes(signIn),
    ...identityRoutes(signIn),
    ...feedbackRoutes(prisma),
    ...webhookRoutes({
      prisma,
      encryption: loadEncryption(config),
      allowed: readDestinations(config.BERTH_WEBHOOK_ALLOW, 'BERTH_WEBHOOK_ALLOW'),
      wake: () => operations.wake(),
    }),
    ...adminRoutes({ pool, prisma, keys, workers, readiness, forgetKeys }),
    ...auditRoutes({ pool, searches, bounds }),
    ...operationRoutes({
      pool,
      operations,
      async withdraw({ target }, workspaceId) {
        await removeFile(pool, { workspaceId, network: 'public', id: target, only: 'pending' })
        operations.wake()
      },
    }),
    ...agentRoutes(agents),
    ...openAiRoutes(agents),
    ...nodeRoutes(workers),
    ...healthRoutes(readiness),
  ]
  const counts = openCounts(config, pool, log, parts)
  const isDashboardOn = config.BERTH_DASHBOARD === 'on'
  const documented = documentRoutes(routes, {
    publicUrl: config.PUBLIC_URL,
    version: packageJson.version,
    home: isDashboardOn ? '/dashboard' : '/docs',
  })
  const guard: Guard = {
    authenticate: async (header) =>
      (authenticator.isKey(header) ? undefined : await access.authenticate(header)) ??
      (await authenticator.authenticate(header)),
    authenticateSession: (cookie) => authenticator.authenticateSession(cookie),
    authorize: (...asked) => access.authorize(...asked),
    admitToWorkspace: (...asked) => access.admitToWorkspace(...asked),
  }
  const audit = new Audit(openAuditLog(pool, log, parts))
  const services = { guard, rateLimiter, addresses, bounds, calls, audit }
  const apps = {
    domain: config.BERTH_APP_DOMAIN,
    isSecure: config.PUBLIC_URL?.startsWith('https:') ?? false,
    pool,
    agentd,
    connections,
    bounds,
    addresses,
    sites: new SiteDirectory({ pool, notifications, bounds }),
  }
  const images = new Images(
    {
      processes: config.BERTH_IMAGES.processes,
      seconds: config.BERTH_IMAGES.seconds,
      maxPixels: config.BERTH_IMAGES.maxPixels,
    },
    new ImageCache({
      folder: join(config.BERTH_DATA_DIR, 'images'),
      maxBytes: config.BERTH_IMAGES.cacheMb * 1_048_576,
      disk,
      log,
    }),
    log,
  )
  parts.add('processes that convert images', () => images.close())
  const gatewayAt = gatewayHandler({ pool, gateways, signer, storages, bounds, addresses, counts, images })
  const app = createServer({
    routes: [...routes, ...documented],
    services,
    vhosts: byHost(
      config.PUBLIC_URL,
      [
        { domain: config.BERTH_GATEWAY_DOMAIN, handler: gatewayAt },
        {
          domain: config.BERTH_AGENT_DOMAIN,
          handler: agentHandler({
            ...apps,
            domain: config.BERTH_AGENT_DOMAIN,
            services,
            access,
            pagesUrl: (agentId) => urlOf(config, `${agentId}.${config.BERTH_APP_DOMAIN}`),
          }),
        },
        { domain: config.BERTH_APP_DOMAIN, handler: appHandler(apps) },
      ],
      inTurn(customDomainHandler(apps), customGatewayHandler({ gateways, bounds }, gatewayAt)),
    ),
    pages: isDashboardOn ? dashboard(config.BERTH_GATEWAY_DOMAIN) : undefined,
    gatewayUrl: urlOf(config, `<gateway>.${config.BERTH_GATEWAY_DOMAIN}`),
    log,
  })
  await openOperatorPorts(config, { log, parts, registry })
  parts.add('names of proxies', trustProxies(app, config.BERTH_TRUST_PROXY, log))
  dispatcher.start()
  parts.add('dispatcher', () => dispatcher.stop())
  openSequencer({ pool, notifications, log, parts })
  const names = new ServedNames({ pool, bounds, config, log })
  parts.add('TLS ask port', await openAskPort(config, names, log))
  const isProxy = (address = '') => app.get('trust proxy fn')(address, 0)
  const server = await listen(app, {
    port: config.PORT,
    host: config.HOST,
    admit: (address) =>
      isProxy(address) ? () => {} : bounds.take('connections', { address: clientAddress(address) }),
  })
  parts.add('server', () => server.close())
  // Closed first: the server waits for upgraded connections, and does not end them.
  parts.add('connections to agents', () => connections.close())
  parts.add('waits', () => operations.close())
  parts.add('event streams', () => tail.close())
  return {
    url: config.PUBLIC_URL ?? server.url,
    stop: () => parts.close(),
    waitsFor: () => counted(server.requests(), 'request'),
    hurry: () => server.cut(),
  }
}
