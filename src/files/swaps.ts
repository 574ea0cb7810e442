/**
 * Hot swaps: what a CID of a workspace was swapped to, one row for each change; the newest row is in force.
 * A swap is one step: with A → B and B → C, A is served from B. It outlives its files: what is served is for
 * the gateway to check.
 */
import type { CID } from 'multiformats/cid'
import { z } from 'zod'
import { lock } from '../db/advisory-locks.ts'
import { type Pool, type Queryable, transaction } from '../db/pool.ts'
import { checkSwap, insertSwap, installSwaps, listSwaps, newestSwap } from '../db/statements/gateways.ts'
import { badRequest, forbidden, notFound } from '../errors.ts'
import { type Route, route } from '../http/route.ts'
import { cid, network, nothing, oneOrMore } from '../http/shapes.ts'
import type { Network } from '../storage/port.ts'
import { canonicalCid, parseCid, parseContentCid } from './cid.ts'
import type { GatewayService } from './gateways/gateways.ts'

const originalCid = cid.describe('The original CID, however it is spelled.')
const swapParams = z.object({ network, cid: originalCid })
/** Parameters of the older path, which knows the public network only. */
const olderParams = z
  .object({ cid: originalCid })
  .transform(({ cid }) => ({ cid, network: 'public' as const }))

/** The body of a swap, in both spellings that clients use. */
const swapRequest = z
  .object({
    swap_cid: cid.optional().describe('The CID to serve from now on: a file of the same network.'),
    swapCid: cid.optional().describe('The same as `swap_cid`.'),
  })
  .meta(oneOrMore('swap_cid', 'swapCid'))

/** A change of a swap (contract 2.2). */
export const swapEntry = z.object({
  mapped_cid: z.string().nullable().describe('What the CID was swapped to; null where the swap was removed.'),
  created_at: z.string().describe('UTC, with microseconds.'),
})
type SwapEntry = z.output<typeof swapEntry>

/** The same under the older path. */
const olderEntry = z.object({ mappedCid: z.string().nullable(), createdAt: z.string() })

const historyQuery = z.object({
  domain: z
    .string('is required: the host of a gateway, or its left label')
    .min(1, 'must not be empty')
    .describe('A gateway with the hot swaps plugin: its host, with or without port, or its left label.'),
})

/** The one CID of a swap request. @throws ApiError 400 for none, and for two that differ. */
function requestedCid({ swap_cid, swapCid }: z.output<typeof swapRequest>): string {
  const cid = swap_cid ?? swapCid
  if (cid === undefined) throw badRequest('swap_cid: is required')
  if (swapCid !== undefined && swapCid !== cid) throw badRequest('swapCid: says another CID than swap_cid')
  return cid
}

const TAG = 'Swaps'

/** How a generation of clients spells the routes and their answers. */
interface Spelling {
  path: string
  /** The end of the routes' ids. */
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

/** Hot swaps (contract 4.2). */
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
        const target = parseContentCid(spelled, 'swap_cid')
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
        // Private files do not even tell others their CIDs.
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

/** A CID that may be swapped: that of a workspace on a network, in canonical form. */
interface Original {
  workspaceId: string
  network: Network
  canonical: string
}

/** The bound on entries of a history that is shown. */
const HISTORY = 1000

/** The changes of a swap, the newest first; none where the CID was never swapped. */
export async function swapHistory(db: Queryable, original: Original): Promise<SwapEntry[]> {
  return (await listSwaps.run(db, ...values(original), HISTORY)).rows
}

/**
 * Swaps a CID. Doing it again changes nothing, and answers with the entry that is in force.
 * @param spelled the new CID as the client spelled it: so it is shown.
 * @returns the entry in force, and whether this first swap of the workspace has brought its gateway the plugin.
 * @throws ApiError 400 for a swap to itself, 403 where the plan has no swaps, 404 for a CID that is no file of
 *   the workspace on this network.
 */
function swap(
  pool: Pool,
  original: Original,
  target: CID,
  spelled: string,
): Promise<{ entry: SwapEntry; installed: boolean }> {
  const targetCanonical = canonicalCid(target)
  if (targetCanonical === original.canonical) throw badRequest('swap_cid: is the CID itself')
  return inOrder(pool, original, async (client) => {
    const checked = await checkSwap.one(client, ...values(original), targetCanonical)
    const { inPlan, hasOriginal, hasTarget } = checked
    if (!inPlan) throw forbidden('Swaps are not part of the free plan', 'plan')
    if (!hasOriginal) throw notFound('CID not pinned to account')
    if (!hasTarget) throw notFound('swap_cid: CID not pinned to account')
    const newest = await newestSwap.first(client, ...values(original))
    if (newest?.mapped_cid_v1 === targetCanonical) return { entry: toEntry(newest), installed: false }
    // The npm SDK can swap, but not install plugins. Gateways do not have this one from the start, since it costs them
    // the caching of content that never changes.
    const { rowCount } = await installSwaps.run(client, original.workspaceId)
    const entry = await insertSwap.one(client, ...values(original), spelled, targetCanonical)
    return { entry, installed: rowCount === 1 }
  })
}

/** Takes a swap back; its history stays. @throws ApiError 404 where the CID is not swapped. */
function removeSwap(pool: Pool, original: Original): Promise<SwapEntry> {
  return inOrder(pool, original, async (client) => {
    const newest = await newestSwap.first(client, ...values(original))
    if (!newest?.mapped_cid_v1) throw notFound('CID is not swapped')
    return insertSwap.one(client, ...values(original), null, null)
  })
}

const toEntry = ({ mapped_cid, created_at }: SwapEntry): SwapEntry => ({ mapped_cid, created_at })

const values = ({ workspaceId, network, canonical }: Original) => [workspaceId, network, canonical] as const

/** Makes one change of a CID's swap at a time, so that ids and times grow together. */
function inOrder<T>(pool: Pool, original: Original, change: (client: Queryable) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await lock(client, 'swap', values(original).join())
    return change(client)
  })
}
