import { z } from 'zod'
import { readDestinations } from '../agent-proxy/destination.ts'
import type { Core } from '../core.ts'
import { newestFirst } from '../db/cursor.ts'
import type { Prisma } from '../db/prisma.ts'
import { messages, notFound } from '../errors.ts'
import { eventView } from '../events/event.ts'
import { EVENT_TYPES } from '../events/event-types.ts'
import { exampleOfShape } from '../http/docs/example.ts'
import { like, timestamp, uuid, withExample } from '../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../http/pages.ts'
import { type Declared, type Route, routesOf, type Schema } from '../http/route.ts'
import { nothing, oneOrMore, pathId, text } from '../http/shapes.ts'
import { AGENT_ID } from '../lib/agent-id.ts'
import {
  changeWebhook,
  createWebhook,
  deleteWebhook,
  findWebhook,
  listWebhooks,
  MAX_WEBHOOKS,
  redeliver,
  rotateSecret,
  testWebhook,
  type Webhook,
} from './webhooks.ts'

const route = routesOf('Webhooks')
const WEBHOOKS = '/v0/webhooks'
const WEBHOOK = `${WEBHOOKS}/:id`
const DELIVERIES = `${WEBHOOK}/deliveries`
const params = z.object({ id: pathId })
const deliveryParams = z.object({ id: pathId, deliveryId: pathId })

const families = [...new Set(EVENT_TYPES.map((type) => `${type.split('.')[0]}.*`))]
/** Values of `events`: a type, all types of one kind, or all types. */
const PATTERNS = ['*', ...families, ...EVENT_TYPES] as const
const STATES = ['pending', 'delivered', 'failed'] as const

const url = withExample(text(2048), 'https://hooks.example.com/berth').meta({ format: 'webhook-url' })
const events = z
  .array(z.enum(PATTERNS, 'must be a type of events, such as `file.created`, `file.*` or `*`'))
  .meta({ examples: [['pin.*', 'agent.error']] })
  .min(1, 'must name a type of events')
  .max(PATTERNS.length)
const agentId = z.string().regex(AGENT_ID, 'must be the id of an agent').nullable()
const groupId = z.uuid('must be the id of a group').nullable()

const newWebhook = z.object({
  url,
  events,
  agentId: agentId.default(null).describe('Only events about this agent.'),
  groupId: groupId.default(null).describe('Only events about this group and its files.'),
})
const changes = z
  .object({
    url: url.optional(),
    events: events.optional(),
    agentId: agentId.optional(),
    groupId: groupId.optional(),
    enabled: z.boolean().optional(),
  })
  .refine(
    (changes) => Object.values(changes).some((value) => value !== undefined),
    'must have url, events, agentId, groupId or enabled',
  )
  .meta(oneOrMore('url', 'events', 'agentId', 'groupId', 'enabled'))

const webhookRecord = z.object({
  id: uuid,
  url: like('https://hooks.example.com/berth'),
  events: withExample(z.array(z.string()), ['pin.*', 'agent.error']),
  agentId: z.string().nullable(),
  groupId: z.string().nullable(),
  enabled: like(true),
  disabledReason: z
    .enum(['client', 'failing', 'gone', 'behind'])
    .nullable()
    .describe(
      '`client`: by a request. `failing`: no delivery was accepted for five days. `gone`: the target returned 410. `behind`: 100,000 deliveries were waiting.',
    ),
  failingSince: z
    .string()
    .nullable()
    .describe('When the first of the failed attempts since the last success failed.'),
  createdAt: timestamp,
  updatedAt: timestamp,
})
const withSecret = webhookRecord.extend({
  secret: like('whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDtpFCLcFMaZM=').describe('Shown only once.'),
})

const deliveryRecord = z.object({
  id: uuid.describe('`webhook-id` is `msg_` plus this id, in every attempt.'),
  type: like('pin.pinned'),
  state: z.enum(STATES),
  attempts: like(0),
  createdAt: timestamp,
  lastAttemptAt: timestamp.nullable(),
  nextAttemptAt: z.string().nullable(),
  endedAt: z.string().nullable(),
  status: like(204).nullable().describe('The HTTP status of the last response; null if there was none.'),
  response: like('').nullable().describe('The beginning of the last response.'),
  error: z.string().nullable().describe('Why the last attempt failed.'),
})
const wholeDelivery = deliveryRecord.extend({
  body: like(JSON.stringify(exampleOfShape(eventView))).describe('What is sent.'),
})

/** Only owners can manage webhooks, because webhooks receive everything in the workspace. */
const owners = { scope: 'admin', role: 'owner' } as const

/** Declares a route under `/v0/webhooks`, with an alias under `/v3/webhooks`. */
function webhookRoute<
  P extends Schema | undefined = undefined,
  Q extends Schema | undefined = undefined,
  B extends Schema | undefined = undefined,
>(declared: Omit<Declared<P, Q, B>, keyof typeof owners>): Route {
  const aliases = [declared.path.replace('/v0/', '/v3/')]
  return route({ ...owners, aliases, ...declared } as Declared<P, Q, B>)
}

export function webhookRoutes(core: Core): Route[] {
  const { config, prisma, operations } = core
  const allowed = readDestinations(config.BERTH_WEBHOOK_ALLOW, 'BERTH_WEBHOOK_ALLOW')
  const services = { ...core, allowed }
  return [
    webhookRoute({
      method: 'get',
      path: WEBHOOKS,
      id: 'listWebhooks',
      summary: 'List webhooks',
      query: z.object(paging(10, 100)),
      success: {
        description: 'A page of webhooks, newest first, without their secrets.',
        body: pageOf('webhooks', webhookRecord),
      },
      async handle({ principal: { workspaceId }, query }) {
        const page = await readPage(query, (cursor) => listWebhooks(prisma, workspaceId, cursor))
        return { body: toPage('webhooks', page, toRecord) }
      },
    }),
    webhookRoute({
      method: 'post',
      path: WEBHOOKS,
      id: 'createWebhook',
      summary: 'Create a webhook',
      description:
        'The URL must use https and a host on the public internet, unless the operator allows another host by name. ' +
        `403 \`${messages.webhookLimit}\` at ${MAX_WEBHOOKS}. 503 \`${messages.secretsNotConfigured}\` if the operator ` +
        'does not allow secrets to be stored.',
      body: newWebhook,
      success: {
        status: 201,
        description: 'The webhook, with the secret that signs its deliveries.',
        body: z.object({ data: withSecret }),
      },
      async handle({ principal: { workspaceId }, body }) {
        const made = await createWebhook(services, workspaceId, body)
        return { body: { data: { ...toRecord(made), secret: made.shownSecret } } }
      },
    }),
    webhookRoute({
      method: 'get',
      path: WEBHOOK,
      id: 'getWebhook',
      summary: 'Get a webhook',
      params,
      success: { description: 'The webhook.', body: z.object({ data: webhookRecord }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id } }) {
        return { body: { data: toRecord(await findWebhook(prisma, workspaceId, id)) } }
      },
    }),
    webhookRoute({
      method: 'patch',
      path: WEBHOOK,
      id: 'changeWebhook',
      summary: 'Change, enable or disable a webhook',
      description:
        'Omitted fields stay unchanged. Disabling a webhook ends its waiting deliveries; after enabling, it receives only new events.',
      params,
      body: changes,
      success: { description: 'The webhook.', body: z.object({ data: webhookRecord }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id }, body }) {
        return { body: { data: toRecord(await changeWebhook(services, workspaceId, id, body)) } }
      },
    }),
    webhookRoute({
      method: 'delete',
      path: WEBHOOK,
      id: 'deleteWebhook',
      summary: 'Delete a webhook',
      description: 'Waiting deliveries are not sent.',
      params,
      success: { description: 'Deleted.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id } }) {
        await deleteWebhook(prisma, workspaceId, id)
        return { body: { data: null } }
      },
    }),
    webhookRoute({
      method: 'post',
      path: `${WEBHOOK}/rotate`,
      id: 'rotateWebhookSecret',
      summary: 'Rotate the secret of a webhook',
      description:
        'The former secret also signs for 24 hours, so that receivers can switch without losing deliveries.',
      params,
      success: { description: 'The webhook, with its new secret.', body: z.object({ data: withSecret }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id } }) {
        const rotated = await rotateSecret(services, workspaceId, id)
        return { body: { data: { ...toRecord(rotated), secret: rotated.shownSecret } } }
      },
    }),
    webhookRoute({
      method: 'post',
      path: `${WEBHOOK}/test`,
      id: 'testWebhook',
      summary: 'Send a test event to a webhook',
      description:
        'Sends a delivery with the type `webhook.test`, regardless of the webhook’s event types. 409 while the webhook is disabled. The delivery shows the outcome.',
      params,
      success: { status: 201, description: 'The delivery.', body: z.object({ data: wholeDelivery }) },
      errors: [404, 409],
      async handle({ principal: { workspaceId }, params: { id } }) {
        const delivery = await testWebhook(prisma, workspaceId, id)
        operations.wake()
        return { body: { data: toWholeDelivery(delivery) } }
      },
    }),
    webhookRoute({
      method: 'get',
      path: DELIVERIES,
      id: 'listDeliveries',
      summary: 'List the deliveries of a webhook',
      params,
      query: z.object({
        state: z.enum(STATES).optional(),
        ...paging(10, 250),
      }),
      success: {
        description: 'A page of deliveries, newest first.',
        body: pageOf('deliveries', deliveryRecord),
      },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id }, query }) {
        await findWebhook(prisma, workspaceId, id)
        const where = { webhookId: id, ...(query.state && WHERE[query.state]) }
        const page = await readPage(query, (cursor) =>
          prisma.webhookDelivery.findMany(newestFirst(cursor, where)),
        )
        return { body: toPage('deliveries', page, toDelivery) }
      },
    }),
    webhookRoute({
      method: 'get',
      path: `${DELIVERIES}/:deliveryId`,
      id: 'getDelivery',
      summary: 'Get a delivery with its body',
      params: deliveryParams,
      success: { description: 'The delivery.', body: z.object({ data: wholeDelivery }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id, deliveryId } }) {
        await findWebhook(prisma, workspaceId, id)
        const delivery = await prisma.webhookDelivery.findFirst({ where: { id: deliveryId, webhookId: id } })
        if (!delivery) throw notFound('There is no such delivery')
        return { body: { data: toWholeDelivery(delivery) } }
      },
    }),
    webhookRoute({
      method: 'post',
      path: `${DELIVERIES}/:deliveryId/redeliver`,
      id: 'redeliver',
      summary: 'Send a delivery again',
      description:
        'Uses the same `webhook-id`, and starts over with all attempts. 409 while the delivery is in progress or the webhook is disabled.',
      params: deliveryParams,
      success: { description: 'The delivery.', body: z.object({ data: wholeDelivery }) },
      errors: [404, 409],
      async handle({ principal: { workspaceId }, params: { id, deliveryId } }) {
        const delivery = await redeliver(prisma, workspaceId, id, deliveryId)
        operations.wake()
        return { body: { data: toWholeDelivery(delivery) } }
      },
    }),
  ]
}

const WHERE: Record<(typeof STATES)[number], Prisma.WebhookDeliveryWhereInput> = {
  // The same rows as those without an end, and an index covers these.
  pending: { nextAttemptAt: { not: null } },
  delivered: { endedAt: { not: null }, error: null },
  failed: { endedAt: { not: null }, error: { not: null } },
}

function toRecord(webhook: Webhook): z.output<typeof webhookRecord> {
  const { id, url, events, agentId, groupId, disabledReason, failingSince, createdAt, updatedAt } = webhook
  return {
    id,
    url,
    events,
    agentId,
    groupId,
    enabled: disabledReason === null,
    disabledReason: disabledReason as z.output<typeof webhookRecord>['disabledReason'],
    failingSince: failingSince?.toISOString() ?? null,
    createdAt: createdAt.toISOString(),
    updatedAt: updatedAt.toISOString(),
  }
}

function toDelivery(delivery: Prisma.WebhookDeliveryModel): z.output<typeof deliveryRecord> {
  const { id, type, attempts, createdAt, lastAttemptAt, nextAttemptAt, endedAt, status, response, error } =
    delivery
  return {
    id,
    type,
    state: endedAt === null ? 'pending' : error === null ? 'delivered' : 'failed',
    attempts,
    createdAt: createdAt.toISOString(),
    lastAttemptAt: lastAttemptAt?.toISOString() ?? null,
    nextAttemptAt: nextAttemptAt?.toISOString() ?? null,
    endedAt: endedAt?.toISOString() ?? null,
    status,
    response,
    error,
  }
}

const toWholeDelivery = (delivery: Prisma.WebhookDeliveryModel): z.output<typeof wholeDelivery> => ({
  ...toDelivery(delivery),
  body: delivery.body,
})
