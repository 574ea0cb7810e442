import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { network, nothing } from '../../http/shapes.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import type { GatewayService } from '../gateways/service.ts'
import { historyQuery, requestedCid, swapEntry, swapRequest } from './schema.ts'
import { removeSwap, swap, swapHistory } from './service.ts'

const TAG = 'Swaps'
const PATH = '/v3/files/:network/swap/:cid'
const params = z.object({ network, cid: z.string().describe('The original CID, however it is spelled.') })

/** Hot swaps (contract 4.2, compatibility 1.7). */
export function swapRoutes({ pool, gateways }: { pool: Pool; gateways: GatewayService }): Route[] {
  return [
    route({
      method: 'put',
      path: PATH,
      id: 'swapCid',
      tag: TAG,
      summary: 'Swap a CID',
      description:
        'From now on the gateways of the workspace that have the hot swaps plugin serve the new content under the ' +
        'address of the original. Both must be files of the workspace on this network. A swap is one step: what ' +
        'the new CID is swapped to does not count. Doing it again changes nothing.',
      scope: 'org:files:write',
      params,
      body: swapRequest,
      success: { status: 200, description: 'The entry in force.', body: z.object({ data: swapEntry }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params, body }) {
        const canonical = canonicalCid(parseCid(params.cid))
        const spelled = requestedCid(body)
        const target = parseCid(spelled, 'swap_cid')
        const original = { workspaceId, network: params.network, canonical }
        return { body: { data: await swap(pool, original, target, spelled) } }
      },
    }),
    route({
      method: 'get',
      path: PATH,
      id: 'swapHistory',
      tag: TAG,
      summary: 'Get the swap history of a CID',
      description:
        'The history belongs to the workspace of the gateway, and may be read with the key of any workspace.',
      scope: 'org:files:read',
      params,
      query: historyQuery,
      success: {
        status: 200,
        description: 'Up to 1000 entries, newest first.',
        body: z.object({ data: z.array(swapEntry) }),
      },
      errors: [404],
      async handle({ params: { network, cid }, query: { domain } }) {
        const canonical = canonicalCid(parseCid(cid))
        const gateway = await gateways.findByName(domain)
        if (!gateway) throw notFound('domain: there is no such gateway')
        if (!gateway.hasSwaps) throw notFound('domain: the gateway does not have the hot swaps plugin')
        const { workspaceId } = gateway
        const entries = await swapHistory(pool, { workspaceId, network, canonical })
        if (entries.length === 0) throw notFound('CID does not have history')
        return { body: { data: entries } }
      },
    }),
    route({
      method: 'delete',
      path: PATH,
      id: 'deleteSwap',
      tag: TAG,
      summary: 'Take a swap back',
      description: 'The original is served again. The removal is an entry of the history, without a CID.',
      scope: 'org:files:write',
      params,
      success: { status: 200, description: 'Removed.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { network, cid } }) {
        const canonical = canonicalCid(parseCid(cid))
        await removeSwap(pool, { workspaceId, network, canonical })
        return { body: { data: null } }
      },
    }),
  ]
}
