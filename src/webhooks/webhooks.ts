/** A workspace's webhooks: creating, changing and deleting them, and their secrets. */
import { randomBytes } from 'node:crypto'
import { uuidv7 } from 'uuidv7'
import type { Destination } from '../agent-proxy/destination.ts'
import { type Cursor, newestFirst } from '../db/cursor.ts'
import { inTransaction, type Prisma, type PrismaClient, type Transaction } from '../db/prisma.ts'
import { endWaiting, insertDeliveries, repeatDelivery } from '../db/statements/webhooks.ts'
import { ApiError, contractError, forbidden, messages, notFound } from '../errors.ts'
import { viewEvent } from '../events/event.ts'
import type { Encryption } from '../lib/encryption.ts'
import { enqueueRounds } from './deliveries.ts'
import { readTarget } from './target.ts'

/** Maximum webhooks per workspace: each event is written once for each of them. */
export const MAX_WEBHOOKS = 20
/** How long the former secret also signs after a rotation. */
const OVERLAP_MS = 86_400_000

export type Webhook = Prisma.WebhookModel

export interface WebhookServices {
  prisma: PrismaClient
  encryption: Encryption
  /** `BERTH_WEBHOOK_ALLOW`. */
  allowed: readonly Destination[]
}

export interface WebhookFields {
  url: string
  events: string[]
  agentId: string | null
  groupId: string | null
}

/** Absent fields stay unchanged. */
export type WebhookChanges = { [Field in keyof WebhookFields]?: WebhookFields[Field] | undefined } & {
  enabled?: boolean | undefined
}

/** The secret is shown only when it is created. */
export type WithSecret = Webhook & { shownSecret: string }

const noWebhook = () => notFound('There is no such webhook')

/** @throws ApiError 400 for the URL, 403 if there are too many, 503 without an encryption key. */
export function createWebhook(
  { prisma, encryption, allowed }: WebhookServices,
  workspaceId: string,
  fields: WebhookFields,
): Promise<WithSecret> {
  readTarget(fields.url, allowed)
  const id = uuidv7()
  const { shownSecret, secret } = newSecret(encryption, { id, workspaceId })
  return inTransaction(prisma, async (tx) => {
    // The lock makes other additions to the workspace wait, so that none exceeds the limit.
    await tx.$queryRaw`SELECT FROM workspace WHERE id = ${workspaceId}::uuid FOR NO KEY UPDATE`
    if ((await tx.webhook.count({ where: { workspaceId } })) >= MAX_WEBHOOKS)
      throw forbidden(messages.webhookLimit, 'webhook_limit')
    return { ...(await tx.webhook.create({ data: { id, workspaceId, ...fields, secret } })), shownSecret }
  })
}

/** Newest first. @param page.after the id of the last webhook on the previous page. */
export function listWebhooks(prisma: PrismaClient, workspaceId: string, cursor: Cursor): Promise<Webhook[]> {
  return prisma.webhook.findMany(newestFirst(cursor, { workspaceId }))
}

/** @throws ApiError 404 */
export async function findWebhook(prisma: PrismaClient, workspaceId: string, id: string): Promise<Webhook> {
  const webhook = await prisma.webhook.findFirst({ where: { id, workspaceId } })
  if (!webhook) throw noWebhook()
  return webhook
}

/**
 * Changes the given fields. A webhook that is enabled again, or has a new URL, starts over: earlier failures do not
 * count.
 * @throws ApiError 400 for the URL, 404
 */
export function changeWebhook(
  { prisma, allowed }: WebhookServices,
  workspaceId: string,
  id: string,
  { enabled, url, events, agentId, groupId }: WebhookChanges,
): Promise<Webhook> {
  if (url !== undefined) readTarget(url, allowed)
  return inTransaction(prisma, async (tx) => {
    const before = await lockWebhook(tx, workspaceId, id)
    const isAnew = (enabled && before.disabledReason !== null) || url !== undefined
    const changed = await tx.webhook.update({
      where: { id },
      data: {
        ...(url !== undefined && { url }),
        ...(events !== undefined && { events }),
        ...(agentId !== undefined && { agentId }),
        ...(groupId !== undefined && { groupId }),
        ...(isAnew && { failingSince: null, silences: 0, pausedUntil: null }),
        ...(enabled && { disabledReason: null }),
        ...(enabled === false && { disabledReason: before.disabledReason ?? 'client', dueAt: null }),
        updatedAt: new Date(),
      },
    })
    if (enabled === false) await endWaiting.run(tx, id, 'The webhook was disabled')
    return changed
  })
}

/** Deletes a webhook; waiting deliveries are not sent. @throws ApiError 404 */
export function deleteWebhook(prisma: PrismaClient, workspaceId: string, id: string): Promise<void> {
  return inTransaction(prisma, async (tx) => {
    const { count } = await tx.webhook.deleteMany({ where: { id, workspaceId } })
    if (count === 0) throw noWebhook()
    await endWaiting.run(tx, id, 'The webhook was deleted')
  })
}

/** Rotates a webhook's secret; the former one also signs for a day. @throws ApiError 404, 503 */
export function rotateSecret(
  { prisma, encryption }: WebhookServices,
  workspaceId: string,
  id: string,
): Promise<WithSecret> {
  return inTransaction(prisma, async (tx) => {
    const { secret: formerSecret } = await lockWebhook(tx, workspaceId, id)
    const { shownSecret, secret } = newSecret(encryption, { id, workspaceId })
    const now = Date.now()
    const data = { secret, formerSecret, formerUntil: new Date(now + OVERLAP_MS), updatedAt: new Date(now) }
    return { ...(await tx.webhook.update({ where: { id }, data })), shownSecret }
  })
}

/**
 * Sends a webhook an event of the type `webhook.test`, regardless of its event types. @throws ApiError 404, 409 while
 * it is disabled.
 */
export function testWebhook(
  prisma: PrismaClient,
  workspaceId: string,
  id: string,
): Promise<Prisma.WebhookDeliveryModel> {
  return inTransaction(prisma, async (tx) => {
    await lockEnabled(tx, workspaceId, id)
    const deliveryId = uuidv7()
    const resource = { type: 'webhook', id }
    const test = {
      id: deliveryId,
      type: 'webhook.test',
      createdAt: new Date(),
      workspaceId,
      resource,
      data: {},
    }
    await insertDeliveries.run(tx, [deliveryId], [id], [test.type], [JSON.stringify(viewEvent(test))])
    await enqueueRounds(tx, [{ id, workspaceId }])
    return tx.webhookDelivery.findUniqueOrThrow({ where: { id: deliveryId } })
  })
}

/** Sends an ended delivery again, with the same `webhook-id`. @throws ApiError 404, 409 */
export function redeliver(
  prisma: PrismaClient,
  workspaceId: string,
  webhookId: string,
  id: string,
): Promise<Prisma.WebhookDeliveryModel> {
  return inTransaction(prisma, async (tx) => {
    await lockEnabled(tx, workspaceId, webhookId)
    const { rowCount } = await repeatDelivery.run(tx, webhookId, id)
    const delivery = await tx.webhookDelivery.findFirst({ where: { id, webhookId } })
    if (!delivery) throw notFound('There is no such delivery')
    if (rowCount === 0) throw new ApiError(409, 'delivery_pending', 'The delivery is under way')
    await enqueueRounds(tx, [{ id: webhookId, workspaceId }])
    return delivery
  })
}

/**
 * The secrets that currently sign, newest first. A former secret that cannot be decrypted, because SECRETS_KEY has
 * changed, is left out; without the current one there are none.
 */
export function openSecrets(encryption: Encryption, webhook: Webhook): string[] {
  const { id, workspaceId, secret, formerSecret, formerUntil } = webhook
  const open = (one: Uint8Array): string[] => {
    try {
      return [encryption.decrypt(workspaceId, id, one)]
    } catch {
      return []
    }
  }
  const present = open(secret)
  const isBoth = formerSecret && formerUntil && formerUntil > new Date()
  return present.length > 0 && isBoth ? [...present, ...open(formerSecret)] : present
}

function newSecret(encryption: Encryption, { id, workspaceId }: { id: string; workspaceId: string }) {
  if (!encryption.configured)
    throw contractError(503, 'secrets_not_configured', messages.secretsNotConfigured, 'SECRETS_KEY is empty')
  const shownSecret = `whsec_${randomBytes(32).toString('base64')}`
  return { shownSecret, secret: Uint8Array.from(encryption.encrypt(workspaceId, id, shownSecret)) }
}

/** @throws ApiError 404 */
async function lockWebhook(tx: Transaction, workspaceId: string, id: string): Promise<Webhook> {
  await tx.$queryRaw`SELECT FROM webhook WHERE id = ${id}::uuid FOR NO KEY UPDATE`
  const webhook = await tx.webhook.findFirst({ where: { id, workspaceId } })
  if (!webhook) throw noWebhook()
  return webhook
}

/** Locks a webhook that must be sent something at once, even during a pause. @throws ApiError 404, 409 */
async function lockEnabled(tx: Transaction, workspaceId: string, id: string): Promise<void> {
  const { disabledReason } = await lockWebhook(tx, workspaceId, id)
  if (disabledReason !== null) throw new ApiError(409, 'webhook_disabled', 'The webhook is disabled')
  await tx.webhook.update({ where: { id }, data: { pausedUntil: null } })
}
