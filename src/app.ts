/** The composition root: what each role is made of. Nothing here is global, and everything that opens also closes. */
import { Registry } from 'prom-client'
import { uuidv7 } from 'uuidv7'
import packageJson from '../package.json' with { type: 'json' }
import { createHandlers } from '../workers/index.ts'
import { startLoop } from '../workers/reconcile/loop.ts'
import { reconcilePins } from '../workers/reconcile/pins.ts'
import { Authenticator } from './accounts/authenticator.ts'
import { KeyService } from './accounts/keys.ts'
import { keyRoutes } from './accounts/routes.ts'
import { loadSigningKey } from './accounts/tokens.ts'
import { type Config, ConfigError } from './config.ts'
import { isMigrated } from './db/migrate.ts'
import { Notifications } from './db/notifications.ts'
import { createPool, type Pool } from './db/pool.ts'
import { createPrisma } from './db/prisma.ts'
import { fileRoutes } from './files/files/routes.ts'
import { groupRoutes } from './files/groups/routes.ts'
import { nodeRoutes } from './files/node-routes.ts'
import { markBackfilled } from './files/pins/backfill.ts'
import { pinRoutes } from './files/pins/routes.ts'
import { PinService } from './files/pins/service.ts'
import { removeFile } from './files/remove.ts'
import { openHealthPort } from './health-port.ts'
import { documentRoutes } from './http/docs.ts'
import { healthRoutes } from './http/health.ts'
import { listen } from './http/listen.ts'
import { createMetrics, metricsRoute } from './http/metrics.ts'
import { RateLimiter } from './http/rate-limit.ts'
import type { Route } from './http/route.ts'
import { createServer } from './http/server.ts'
import type { Logger } from './log.ts'
import { QUEUES, type QueueName } from './operations/catalog.ts'
import { Dispatcher } from './operations/dispatcher.ts'
import { createQueueBackend } from './operations/queue.ts'
import { checkRedis, createRedis } from './operations/redis.ts'
import { operationRoutes } from './operations/routes.ts'
import { Runner } from './operations/runner.ts'
import { forgetOldOperations } from './operations/store.ts'
import { Waiter } from './operations/wait.ts'
import { WorkerStatus } from './operations/workers.ts'
import { Parts, type RunningRole } from './parts.ts'
import { observeNode, openStorage } from './storage/open.ts'

/** The web role: the API, and the dispatcher. */
export async function openWeb(config: Config, log: Logger): Promise<RunningRole> {
  const parts = new Parts(log)
  const { databaseUrl, pool } = await openDatabase(config, log, parts)
  const prisma = createPrisma(pool)
  const notifications = new Notifications(databaseUrl, log)
  await notifications.start()
  parts.add('notifications', () => notifications.stop())

  if (config.REDIS_URL) await checkRedis(config.REDIS_URL, log)
  const redis = config.REDIS_URL ? createRedis(config.REDIS_URL, log) : undefined
  if (redis) parts.add('redis', () => redis.disconnect())
  const backend = createQueueBackend({ redisUrl: config.REDIS_URL, databaseUrl }, log)
  parts.add('queues', () => backend.close())
  const dispatcher = new Dispatcher({
    pool,
    queue: backend.queue,
    log,
    window: config.BERTH_DISPATCH_WINDOW,
    activeLimits: { pins: config.BERTH_PIN_ACTIVE_LIMIT },
    onHeldBack: () => markBackfilled(pool, config.BERTH_PIN_ACTIVE_LIMIT),
  })
  const wakeDispatcher = () => dispatcher.wake()

  const signingKey = loadSigningKey(config.JWT_KEY, config.BERTH_DATA_DIR)
  const authenticator = new Authenticator(pool, signingKey, notifications)
  const waiter = new Waiter(pool, notifications)
  const workers = new WorkerStatus(pool)
  const registry = createMetrics(pool)
  const routes: Route[] = [
    ...pinRoutes({
      pool,
      pins: new PinService(pool, wakeDispatcher),
      waiter,
      wakeDispatcher,
      allowPrivateHostNodes: config.BERTH_ALLOW_PRIVATE_HOST_NODES,
    }),
    ...fileRoutes({ pool, waiter, wakeDispatcher }),
    ...groupRoutes(prisma),
    ...keyRoutes(new KeyService(prisma, signingKey), () => authenticator.forgetKeys()),
    ...operationRoutes({
      pool,
      waiter,
      async cancel({ target }, workspaceId) {
        await removeFile(pool, { workspaceId, network: 'public', id: target, only: 'unpinned' })
        wakeDispatcher()
      },
    }),
    ...nodeRoutes(workers),
    ...healthRoutes({ pool, pingQueue: () => redis?.ping() ?? Promise.resolve(), workers }),
    metricsRoute(registry),
  ]
  const documented = documentRoutes(routes, config.PUBLIC_URL, packageJson.version)
  const app = createServer({
    routes: [...routes, ...documented],
    services: { authenticator, rateLimiter: new RateLimiter(redis) },
    registry,
    trustProxy: config.BERTH_TRUST_PROXY,
    log,
  })
  dispatcher.start()
  parts.add('dispatcher', () => dispatcher.stop())
  const server = await listen(app, config.PORT, config.HOST)
  parts.add('server', () => server.close())
  return { url: config.PUBLIC_URL ?? server.url, stop: () => parts.close() }
}

const HEARTBEAT_MS = 5000
/** A worker that could not write its row for this long is of no use: its claims fail as well. */
const HEARTBEAT_LIMIT_MS = 30_000
const RETENTION_MS = 3_600_000

/** The worker role: runs operations, and the loops that compare PostgreSQL with the world. */
export async function openWorker(config: Config, log: Logger): Promise<RunningRole> {
  const parts = new Parts(log)
  const queues = chosenQueues(config)
  const { databaseUrl, pool } = await openDatabase(config, log, parts)
  if (config.REDIS_URL) await checkRedis(config.REDIS_URL, log)
  const storage = await openStorage(config, 'public', log, parts)

  const id = uuidv7()
  const runner = new Runner({
    pool,
    workerId: id,
    log,
    handlers: createHandlers({
      pool,
      storage,
      stallMs: config.BERTH_PIN_STALL_SECONDS,
      retryMs: config.BERTH_PIN_RETRY_SECONDS,
      expiryMs: config.BERTH_PIN_EXPIRY_SECONDS,
      allowPrivateHostNodes: config.BERTH_ALLOW_PRIVATE_HOST_NODES,
    }),
  })
  const status = new WorkerStatus(pool)
  let written = performance.now()
  const loops = [
    startLoop('heartbeat', HEARTBEAT_MS, log, async (signal) => {
      await status.write({ id, queues, ipfs: await observeNode(storage, signal) })
      written = performance.now()
    }),
    startLoop('pins', config.BERTH_RECONCILE_SECONDS, log, (signal) => reconcilePins(pool, storage, signal)),
    startLoop('retention', RETENTION_MS, log, () =>
      forgetOldOperations(pool, config.BERTH_OPERATION_RETENTION_DAYS),
    ),
  ]
  // Kubo collects its own garbage, when and how its operator says.
  if (storage.driver === 'embedded') {
    loops.push(startLoop('gc', config.BERTH_GC_SECONDS, log, (signal) => storage.gc({ signal })))
  }
  parts.add('loops', async () => {
    await Promise.all(loops.map((loop) => loop.stop()))
    await status.remove(id)
  })

  const backend = createQueueBackend({ redisUrl: config.REDIS_URL, databaseUrl }, log)
  for (const queue of queues) {
    backend.consume(queue, config.BERTH_PIN_CONCURRENCY, (operationId) => runner.run(operationId))
  }
  parts.add('queues', () => {
    runner.shutdown()
    return backend.close()
  })
  await openHealthPort(config, {
    log,
    parts,
    registry: new Registry(),
    findProblem: () =>
      performance.now() - written > HEARTBEAT_LIMIT_MS ? 'cannot write its heartbeat' : undefined,
  })
  return { stop: () => parts.close() }
}

function chosenQueues(config: Config): QueueName[] {
  const chosen = config.BERTH_QUEUES ?? []
  const unknown = chosen.filter((name) => !(QUEUES as readonly string[]).includes(name))
  if (unknown.length > 0) throw new ConfigError(`BERTH_QUEUES: no queue is named ${unknown.join(', ')}`)
  return chosen.length > 0 ? (chosen as QueueName[]) : [...QUEUES]
}

async function openDatabase(
  config: Config,
  log: Logger,
  parts: Parts,
): Promise<{ databaseUrl: string; pool: Pool }> {
  const databaseUrl = config.DATABASE_URL
  if (!databaseUrl)
    throw new ConfigError('DATABASE_URL: not set; only `npm start` brings a database of its own')
  const pool = createPool(databaseUrl, config.BERTH_DATABASE_POOL, log)
  parts.add('database', () => pool.end())
  if (!(await isMigrated(pool))) {
    throw new ConfigError('DATABASE_URL: the schema is not up to date; run `npx berth migrate`')
  }
  return { databaseUrl, pool }
}
