import { after, afterEach, before, beforeEach } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { transaction } from '../../../src/db/pool.ts'
import { createPrisma, type PrismaClient } from '../../../src/db/prisma.ts'
import type { StoredEvent } from '../../../src/events/event.ts'
import { Encryption } from '../../../src/lib/encryption.ts'
import { Runner } from '../../../src/operations/runner.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { addDeliveries, enqueueDueRounds } from '../../../src/webhooks/deliveries.ts'
import { createWebhook } from '../../../src/webhooks/webhooks.ts'
import { loadHandlers } from '../../../workers/registry.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { type Receiver, startReceiver } from '../../support/webhook-receiver.ts'

export let database: TestDatabase
export let prisma: PrismaClient
export let workspaceId: string
export let receiver: Receiver
let runner: Runner
const encryption = new Encryption('a key of the test')

before(async () => {
  database = await startDatabase()
  prisma = createPrisma(database.pool)
  workspaceId = await database.createWorkspace()
})
after(() => database?.stop())
beforeEach(async () => {
  receiver = await startReceiver()
  const unused = createEmbeddedStorage({ dir: '/nonexistent', network: 'public' })
  const handlers = await loadHandlers({
    pool: database.pool,
    prisma,
    agents: undefined,
    storages: { public: unused, private: unused },
    stallMs: 1,
    retryMs: 1,
    expiryMs: 1,
    allowPrivateHostNodes: false,
    webhooks: { encryption, allowed: [receiver.destination] },
  })
  const { pool, log } = database
  runner = new Runner({ pool, prisma, leases: pool, workerId: uuidv7(), log, handlers })
})
afterEach(async () => {
  await receiver.stop()
  await database.pool.query('TRUNCATE webhook, webhook_delivery, operation')
})

export const services = () => ({ prisma, encryption, allowed: [receiver.destination] })
export const make = (
  fields: Partial<{ url: string; events: string[]; agentId: string; groupId: string }> = {},
) =>
  createWebhook(services(), workspaceId, {
    url: receiver.url,
    events: ['*'],
    agentId: null,
    groupId: null,
    ...fields,
  })

export const event = (fields: Partial<StoredEvent> = {}): StoredEvent => ({
  id: String(Math.floor(Math.random() * 1e15)),
  type: 'file.created',
  createdAt: new Date(),
  workspaceId,
  resource: { type: 'file', id: uuidv7() },
  data: { name: 'report.pdf' },
  ...fields,
})
export const publish = (...events: StoredEvent[]) =>
  transaction(database.pool, (tx) => addDeliveries(tx, events))

/** Runs all queued operations until none is left. Resolves to their number. */
export async function runAll(): Promise<number> {
  for (let count = 0; ; count++) {
    const { rows } = await database.pool.query<{ id: string }>(
      `SELECT id FROM operation WHERE state = 'queued' ORDER BY id LIMIT 1`,
    )
    if (!rows[0]) return count
    await runner.run(rows[0].id)
  }
}
export const deliveries = () => prisma.webhookDelivery.findMany({ orderBy: { id: 'asc' } })
export const reload = (id: string) => prisma.webhook.findUniqueOrThrow({ where: { id } })
/** Makes everything that waits due now. */
export async function comeDue(): Promise<void> {
  await database.pool.query(
    'UPDATE webhook_delivery SET next_attempt_at = now() WHERE next_attempt_at IS NOT NULL',
  )
  await database.pool.query('UPDATE webhook SET paused_until = NULL, due_at = now() WHERE due_at IS NOT NULL')
  await enqueueDueRounds(database.pool)
}
