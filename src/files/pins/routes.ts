import { z } from 'zod'
import { badRequest, forbidden, messages } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { nextPageToken, nothing, pathId, readPageToken } from '../../http/shapes.ts'
import { operationHeaders } from '../../operations/headers.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import { parseHostNode } from '../host-nodes.ts'
import { type RemovalServices, removal } from '../removal.ts'
import { pinPage, pinQuery, pinRecord, pinRequest } from './schema.ts'
import type { PinService } from './service.ts'

export interface PinRouteServices extends RemovalServices {
  pins: PinService
  allowPrivateHostNodes: boolean
}

const TAG = 'Pin by CID'

export function pinRoutes(services: PinRouteServices): Route[] {
  const { pins, waiter, allowPrivateHostNodes } = services
  return [
    route({
      method: 'post',
      path: '/v3/files/public/pin_by_cid',
      id: 'pinByCid',
      tag: TAG,
      summary: 'Pin a CID to the public network',
      description:
        'Answers at once with the record, in status `prechecking`. Follow the operation named by `Operation-Id`, ' +
        'or ask for `Prefer: wait=N`. Once pinned, it is a file: `GET /v3/files/public/{id}`.',
      scope: 'org:files:write',
      body: pinRequest,
      success: { status: 200, description: 'The pin record.', body: z.object({ data: pinRecord }) },
      errors: [404],
      operation: true,
      async handle({ principal, body, prefer, idempotencyKey, signal }) {
        if (!principal.plan.pinByCid) throw forbidden(messages.pinByCidPlan, 'plan')
        const cid = parseCid(body.cid)
        const hostNodes = body.host_nodes ?? []
        for (const [i, node] of hostNodes.entries())
          parseHostNode(node, `host_nodes[${i}]`, allowPrivateHostNodes)
        const { record, operationId } = await pins.accept(
          principal,
          {
            cid: body.cid,
            canonical: canonicalCid(cid),
            name: body.name ?? null,
            groupId: body.group_id ?? null,
            keyvalues: body.keyvalues ?? {},
            hostNodes,
          },
          idempotencyKey,
        )
        const headers = operationHeaders(operationId)
        if (!prefer.waitMs) return { headers, body: { data: record } }
        await waiter.finished(principal.workspaceId, operationId, prefer.waitMs, signal)
        const latest = await pins.find(principal.workspaceId, record.id)
        return { headers, body: { data: latest ?? record } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/files/public/pin_by_cid',
      id: 'listPinByCid',
      tag: TAG,
      summary: 'List pin requests that are not pinned yet, or have failed',
      scope: 'org:files:read',
      query: pinQuery,
      success: { status: 200, description: 'A page of pin records.', body: pinPage },
      async handle({ principal, query }) {
        const { status, limit } = query
        if (query.order && query.sort && query.order !== query.sort) {
          throw badRequest('sort: says the opposite of order')
        }
        const filter = {
          status,
          canonical: query.cid === undefined ? undefined : canonicalCid(parseCid(query.cid)),
        }
        const jobs = await pins.list(principal.workspaceId, {
          ...filter,
          after: readPageToken(query.pageToken),
          order: query.order ?? query.sort ?? 'DESC',
          limit: limit + 1,
        })
        const count =
          query.includesCount === 'true' ? { count: await pins.count(principal.workspaceId, filter) } : {}
        return {
          body: {
            data: { jobs: jobs.slice(0, limit), ...count, next_page_token: nextPageToken(jobs, limit) },
          },
        }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/files/public/pin_by_cid/:id',
      id: 'cancelPinByCid',
      tag: TAG,
      summary: 'Withdraw a pin request',
      description:
        'Ends a retrieval under way and removes the request from the queue. A pinned file is deleted as a file.',
      scope: 'org:files:write',
      params: z.object({ id: pathId }),
      success: { status: 200, description: 'Withdrawn.', body: nothing },
      errors: [404],
      operation: true,
      handle: removal(services, 'unpinned', 'There is no such pin request'),
    }),
  ]
}
