import { isGatewayToken } from '../agents/access.ts'
import type { Config } from '../config.ts'
import type { Core } from '../core.ts'
import { Notifications } from '../db/notifications.ts'
import { Searches } from '../db/searches.ts'
import { markBackfilled } from '../db/statements/pins.ts'
import { AddressLimits } from '../http/address-limits.ts'
import { RateLimiter } from '../http/rate-limit.ts'
import type { Bounds } from '../lib/bounds.ts'
import { DiskReserve } from '../lib/disk-reserve.ts'
import { loadSigningKeys } from '../lib/signing-keys.ts'
import type { Logger } from '../log.ts'
import { Dispatcher } from '../operations/dispatcher.ts'
import { Operations } from '../operations/operations.ts'
import { createQueueBackend } from '../operations/queue.ts'
import { WorkerStatus } from '../operations/worker-status.ts'
import { openBase } from './base.ts'

/** Webhooks of one workspace that are served at a time, so that its dead targets hold up nobody else. */
const WEBHOOKS_OF_WORKSPACE = 8

/** Opens the services of `web`. The dispatcher has not started yet. */
export async function openCore(
  config: Config,
  log: Logger,
  bounds: Bounds,
): Promise<Core & { dispatcher: Dispatcher }> {
  const base = await openBase(config, log, 'web')
  const { pool, prisma, parts, redis, disks } = base
  const notifications = new Notifications(pool.directUrl, log)
  await notifications.start()
  parts.add('notifications', () => notifications.stop())
  const backend = createQueueBackend({ redisUrl: config.REDIS_URL, databaseUrl: pool.directUrl }, log)
  parts.add('queues', () => backend.close())
  const dispatcher = new Dispatcher({
    pool,
    queue: backend.queue,
    log,
    activeLimits: { pins: config.BERTH_PINS.active, webhooks: WEBHOOKS_OF_WORKSPACE },
    onHeldBack: () => markBackfilled.run(pool, config.BERTH_PINS.active),
  })
  return {
    ...base,
    notifications,
    bounds,
    disk: new DiskReserve(disks),
    signingKeys: loadSigningKeys(config),
    searches: new Searches({ pool, prisma, bounds }),
    operations: new Operations({ pool, notifications, bounds, wake: () => dispatcher.wake() }),
    workers: new WorkerStatus(pool),
    addresses: new AddressLimits({
      requests: config.BERTH_ADDRESS_LIMITS.requests,
      failedLogins: config.BERTH_ADDRESS_LIMITS.failedLogins,
      isGatewayToken,
    }),
    rateLimiter: new RateLimiter(redis),
    dispatcher,
  }
}
