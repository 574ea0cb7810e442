import { z } from 'zod'
import { badRequest, forbidden, messages, notFound } from '../../errors.ts'
import { withExample } from '../../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../../http/pages.ts'
import { type Route, type RouteResponse, routesOf } from '../../http/route.ts'
import { cid, groupId, nothing, optionalName, order, pathId, text } from '../../http/shapes.ts'
import type { Asked } from '../../operations/operations.ts'
import { canonicalCid, parseCid, parseContentCid } from '../cid.ts'
import { checkHostNodes, MAX_HOST_NODES } from '../host-nodes.ts'
import { keyvalues } from '../keyvalues.ts'
import { removal } from '../remove.ts'
import type { FileServices } from '../services.ts'
import type { Accepted } from './pin-inserts.ts'
import { PIN_STATUSES, pinRecord } from './pin-record.ts'

/** `POST /v3/files/public/pin_by_cid` (contract 4.1). */
const pinRequest = z.object({
  cid: cid.describe('The CID to pin: any version, any multibase.'),
  name: withExample(optionalName(255).nullish(), 'Spring catalogue').describe('A name for the file.'),
  group_id: groupId.nullish().describe('The group to place the file in.'),
  keyvalues: keyvalues.nullish().describe('Metadata: at most 10 pairs of strings.'),
  host_nodes: z
    .array(text(1024).meta({ format: 'host-node' }))
    .max(MAX_HOST_NODES)
    .nullish()
    .describe('Nodes that have the content: peer ids, or multiaddrs that end in /p2p/<peer id>.'),
})

const pinQuery = z.object({
  status: z
    .string()
    // A published description of the API misspells the status.
    .transform((status) => (status === 'retreiving' ? 'retrieving' : status))
    .pipe(z.enum(PIN_STATUSES))
    .optional(),
  cid: cid.optional().describe('Only this CID, in any spelling.'),
  order: order.optional().describe('`ASC` or `DESC` by age; default: newest first.'),
  sort: order.optional().describe('The same as `order`.'),
  ...paging(10, 250),
  includesCount: z.enum(['true', 'false']).optional().describe('Adds `count`, the number of all matches.'),
})

const pinPage = z.object({
  data: pageOf('jobs', pinRecord).shape.data.extend({ count: z.number().optional() }),
})

const route = routesOf('Pin by CID')
const NO_PIN = 'There is no such pin request'

export function pinRoutes(services: FileServices): Route[] {
  const { config, pins, operations, admitPin } = services
  /** The record of a started pin, after the wait that `Prefer` requests. */
  const answer = async ({ record, operationId }: Accepted, asked: Asked): Promise<RouteResponse> => {
    const { headers } = await operations.started('pin.add', operationId, { ...asked, waitMs: 0 })
    if (!asked.prefer.waitMs) return { headers, body: { data: record } }
    const latest = await pins.find(asked.principal.workspaceId, record.id)
    return { headers, body: { data: latest ?? record } }
  }
  return [
    route({
      method: 'post',
      path: '/v3/files/public/pin_by_cid',
      id: 'pinByCid',
      summary: 'Pin a CID to the public network',
      description:
        'Immediately returns the record, in status `prechecking`. Follow the operation named by `Operation-Id`, ' +
        'or ask for `Prefer: wait=N`. Once pinned, it is a file: `GET /v3/files/public/{id}`.',
      scope: 'org:files:write',
      body: pinRequest,
      success: { description: 'The pin record.', body: z.object({ data: pinRecord }) },
      errors: [404, 507],
      operation: true,
      entryWithChange: true,
      async handle({ principal, body, idempotencyKey, entry, ...asked }) {
        if (!principal.plan.pinByCid) throw forbidden(messages.pinByCidPlan, 'plan')
        const cid = parseContentCid(body.cid)
        const hostNodes = body.host_nodes ?? []
        checkHostNodes(hostNodes, 'host_nodes', config.BERTH_ALLOW_PRIVATE_HOST_NODES)
        await admitPin()
        const accepted = await pins.accept(
          principal,
          {
            cid: body.cid,
            canonical: canonicalCid(cid),
            name: body.name ?? null,
            groupId: body.group_id ?? null,
            keyvalues: body.keyvalues ?? {},
            hostNodes,
          },
          { idempotencyKey, entry },
        )
        return answer(accepted, { principal, ...asked })
      },
    }),
    route({
      method: 'get',
      path: '/v3/files/public/pin_by_cid',
      id: 'listPinByCid',
      summary: 'List pin requests that are pending or have failed',
      scope: 'org:files:read',
      query: pinQuery,
      success: { description: 'A page of pin records.', body: pinPage },
      async handle({ principal, query }) {
        if (query.order && query.sort && query.order !== query.sort) {
          throw badRequest('sort: says the opposite of order')
        }
        const filter = {
          status: query.status,
          canonical: query.cid === undefined ? undefined : canonicalCid(parseCid(query.cid)),
        }
        const order = query.order ?? query.sort ?? 'DESC'
        const page = await readPage(query, (cursor) =>
          pins.list(principal.workspaceId, { ...filter, order, ...cursor }),
        )
        const { data } = toPage('jobs', page)
        if (query.includesCount !== 'true') return { body: { data } }
        return { body: { data: { ...data, count: await pins.count(principal.workspaceId, filter) } } }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/files/public/pin_by_cid/:id',
      id: 'cancelPinByCid',
      summary: 'Withdraw a pin request',
      description:
        'Ends a retrieval in progress and removes the request from the queue. To delete a pinned file, delete it as a file.',
      scope: 'org:files:write',
      params: z.object({ id: pathId }),
      success: { description: 'Withdrawn.', body: nothing },
      errors: [404],
      operation: true,
      handle: removal(services, 'unpinned', NO_PIN),
    }),
    route({
      method: 'post',
      path: '/v0/files/public/pin_by_cid/:id/retry',
      id: 'retryPinByCid',
      summary: 'Retry a failed pin request',
      description:
        'Starts a new operation with the same parameters. A request in progress ' +
        'stays unchanged; `Operation-Id` then names its operation. An `Idempotency-Key` has no effect: a repeat after ' +
        'the new operation has failed starts another one.',
      scope: 'org:files:write',
      params: z.object({ id: pathId }),
      success: { description: 'The pin record.', body: z.object({ data: pinRecord }) },
      errors: [404, 507],
      operation: true,
      async handle({ principal, params: { id }, ...asked }) {
        if (!principal.plan.pinByCid) throw forbidden(messages.pinByCidPlan, 'plan')
        await admitPin()
        const accepted = await pins.retry(principal.workspaceId, id)
        if (!accepted) throw notFound(NO_PIN)
        return answer(accepted, { principal, ...asked })
      },
    }),
  ]
}
