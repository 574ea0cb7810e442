/** The background loops of a `web` process, which write and publish until it stops. */
import type { Authenticator } from '../accounts/authenticator.ts'
import { AuditLog } from '../audit/audit-log.ts'
import type { Config } from '../config.ts'
import type { Notifications } from '../db/notifications.ts'
import type { Pool } from '../db/pool.ts'
import { Sequencer } from '../events/sequencer.ts'
import { RequestCounts } from '../files/analytics/request-counts.ts'
import type { Closers } from '../lib/closers.ts'
import { startLoop } from '../lib/loop.ts'
import type { Logger } from '../log.ts'
import { addDeliveries } from '../webhooks/deliveries.ts'

const KEY_USES_MS = 2000
const AUDIT_MS = 2000

/** Publishes events: those of operations at once, all others soon. */
export function openSequencer({
  pool,
  notifications,
  log,
  parts,
}: {
  pool: Pool
  notifications: Notifications
  log: Logger
  parts: Closers
}): void {
  const sequencer = new Sequencer({ pool, log, fanOut: addDeliveries })
  const forget = notifications.on('berth_operation', () => sequencer.wake())
  sequencer.start()
  parts.add('events', () => {
    forget()
    return sequencer.stop()
  })
}

/** Records when keys were used. It stops after the server, so that the last requests are included. */
export function openKeyUses({ uses }: Authenticator, log: Logger, parts: Closers): void {
  const loop = startLoop('uses of keys', KEY_USES_MS, log, () => uses.flush())
  parts.add('uses of keys', async () => {
    await loop.stop()
    await uses.flush()
  })
}

/** Writes the audit. It stops after the server, so that the last requests are included. */
export function openAuditLog(pool: Pool, log: Logger, parts: Closers): AuditLog {
  const auditLog = new AuditLog(pool, log)
  const loop = startLoop('audit', AUDIT_MS, log, () => auditLog.flush())
  parts.add('audit', async () => {
    await loop.stop()
    await auditLog.flush()
  })
  return auditLog
}

/** Counts what gateways serve, if configured. It stops after the server, so that the last responses are included. */
export function openCounts(
  config: Config,
  pool: Pool,
  log: Logger,
  parts: Closers,
): RequestCounts | undefined {
  if (config.BERTH_RETENTION.analytics === 0) return undefined
  const counts = new RequestCounts(pool, log)
  const loop = startLoop('analytics', config.BERTH_INTERVALS.analytics * 1000, log, () => counts.flush())
  parts.add('analytics', async () => {
    await loop.stop()
    await counts.flush()
  })
  return counts
}
