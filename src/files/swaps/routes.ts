import { z } from 'zod'
import type { Pool } from '../../db/pool.ts'
import { notFound } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { nothing } from '../../http/shapes.ts'
import type { Network } from '../../storage/port.ts'
import { canonicalCid, parseCid } from '../cid.ts'
import type { GatewayService } from '../gateways/service.ts'
import {
  historyQuery,
  olderEntry,
  olderParams,
  requestedCid,
  type SwapEntry,
  swapEntry,
  swapParams,
  swapRequest,
} from './schema.ts'
import { removeSwap, swap, swapHistory } from './service.ts'

const TAG = 'Swaps'

/** How a generation of clients spells the routes and their answers. */
interface Spelling {
  path: string
  /** Goes to the ends of the routes' ids. */
  suffix: string
  params: z.ZodType<{ network: Network; cid: string }>
  entry: z.ZodType
  show(entry: SwapEntry): unknown
}

const SPELLINGS: Spelling[] = [
  {
    path: '/v3/files/:network/swap/:cid',
    suffix: '',
    params: swapParams,
    entry: swapEntry,
    show: (entry) => entry,
  },
  {
    path: '/v3/ipfs/swap/:cid',
    suffix: 'Older',
    params: olderParams,
    entry: olderEntry,
    show: ({ mapped_cid, created_at }) => ({ mappedCid: mapped_cid, createdAt: created_at }),
  },
]

/** Hot swaps (contract 4.2, compatibility 1.7). */
export const swapRoutes = (services: SwapRouteServices): Route[] =>
  SPELLINGS.flatMap((spelling) => routesAs(spelling, services))

export interface SwapRouteServices {
  pool: Pool
  gateways: GatewayService
}

function routesAs(
  { path, suffix, params, entry, show }: Spelling,
  { pool, gateways }: SwapRouteServices,
): Route[] {
  return [
    route({
      method: 'put',
      path,
      id: `swapCid${suffix}`,
      tag: TAG,
      summary: 'Swap a CID',
      description:
        'From now on the gateways of the workspace that have the hot swaps plugin serve the new content under the ' +
        'address of the original. Both must be files of the workspace on this network. A swap is one step: what ' +
        'the new CID is swapped to does not count. Doing it again changes nothing. The first swap of a workspace ' +
        'installs the plugin in its oldest gateway, unless another one has it.',
      scope: 'org:files:write',
      params,
      body: swapRequest,
      success: { status: 200, description: 'The entry in force.', body: z.object({ data: entry }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params, body }) {
        const canonical = canonicalCid(parseCid(params.cid))
        const spelled = requestedCid(body)
        const target = parseCid(spelled, 'swap_cid')
        const original = { workspaceId, network: params.network, canonical }
        const { entry, installed } = await swap(pool, original, target, spelled)
        if (installed) gateways.forget()
        return { body: { data: show(entry) } }
      },
    }),
    route({
      method: 'get',
      path,
      id: `swapHistory${suffix}`,
      tag: TAG,
      summary: 'Get the swap history of a CID',
      description:
        'The history belongs to the workspace of the gateway. That of a public CID may be read with the key of any workspace.',
      scope: 'org:files:read',
      params,
      query: historyQuery,
      success: {
        status: 200,
        description: 'Up to 1000 entries, newest first.',
        body: z.object({ data: z.array(entry) }),
      },
      errors: [404],
      async handle({ principal, params: { network, cid }, query: { domain } }) {
        const canonical = canonicalCid(parseCid(cid))
        const gateway = await gateways.findByName(domain)
        if (!gateway) throw notFound('domain: there is no such gateway')
        if (!gateway.hasSwaps) throw notFound('domain: the gateway does not have the hot swaps plugin')
        const { workspaceId } = gateway
        // What is private may be nobody else's to know, the CIDs as well.
        const mayRead = network === 'public' || workspaceId === principal.workspaceId
        const entries = mayRead ? await swapHistory(pool, { workspaceId, network, canonical }) : []
        if (entries.length === 0) throw notFound('CID does not have history')
        return { body: { data: entries.map(show) } }
      },
    }),
    route({
      method: 'delete',
      path,
      id: `deleteSwap${suffix}`,
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
