/**
 * Hot swaps: what a CID of a workspace was swapped to, one row per change; the newest row is in force. A swap is a
 * single step: with A → B and B → C, A is served from B. A swap outlives its files: the gateway checks what it may
 * serve.
 */

import type { CID } from 'multiformats/cid'
import { z } from 'zod'
import { lock } from '../db/advisory-locks.ts'
import { type Pool, type Queryable, transaction } from '../db/pool.ts'
import { checkSwap, insertSwap, installSwaps, listSwaps, newestSwap } from '../db/statements/gateways.ts'
import { badRequest, forbidden, notFound } from '../errors.ts'
import { contentCid, timestamp } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { cid, network, nothing, oneOrMore } from '../http/shapes.ts'
import type { Network } from '../storage/port.ts'
import { canonicalCid, parseCid, parseContentCid } from './cid.ts'
import type { FileServices } from './services.ts'

const originalCid = cid.describe('The original CID, in any spelling.')
const swapParams = z.object({ network, cid: originalCid })
/** Parameters of the older path, which only covers the public network. */
const olderParams = z
  .object({ cid: originalCid })
  .transform(({ cid }) => ({ cid, network: 'public' as const }))

/** The body of a swap, in both spellings that clients use. */
const swapRequest = z
  .object({
    swap_cid: cid.optional().describe('The CID to serve from now on: a file of the same network.'),
    swapCid: z.string().meta({ format: 'cid' }).optional().describe('The same as `swap_cid`.'),
  })
  .meta(oneOrMore('swap_cid', 'swapCid'))

/** A change of a swap (contract 2.2). */
export const swapEntry = z.object({
  mapped_cid: contentCid.nullable().describe('The CID that it was swapped to; null if the swap was removed.'),
  created_at: timestamp.describe('UTC, with microseconds.'),
})
type SwapEntry = z.output<typeof swapEntry>

/** The same for the older path. */
const olderEntry = z.object({ mappedCid: contentCid.nullable(), createdAt: timestamp })

const historyQuery = z.object({
  domain: z
    .string('is required: the host of a gateway, or its left label')
    .min(1, 'must not be empty')
    .describe('A gateway with the hot swaps plugin: its host, with or without port, or its left label.'),
})

/** The CID of a swap request. @throws ApiError 400 if it is missing, or given twice with different values. */
function requestedCid({ swap_cid, swapCid }: z.output<typeof swapRequest>): string {
  const cid = swap_cid ?? swapCid
  if (cid === undefined) throw badRequest('swap_cid: is required')
  if (swapCid !== undefined && swapCid !== cid) throw badRequest('swapCid: says another CID than swap_cid')
  return cid
}

const route = routesOf('Swaps')

/** The names of routes and fields for one generation of clients. */
interface Spelling {
  path: string
  /** The suffix of the routes' ids. */
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
export const swapRoutes = (services: FileServices): Route[] =>
  SPELLINGS.flatMap((spelling) => routesAs(spelling, services))

function routesAs(
  { path, suffix, params, entry, show }: Spelling,
  { pool, gateways }: FileServices,
): Route[] {
  return [
    route({
      method: 'put',
      path,
      id: `swapCid${suffix}`,
      summary: 'Swap a CID',
      description:
        'The gateways of the workspace that have the hot swaps plugin then serve the new content at the ' +
        'address of the original. Both must be files of the workspace on this network. A swap is a single step: a swap of ' +
        'the new CID is not followed. Repeating a swap changes nothing. The first swap of a workspace ' +
        'installs the plugin in its oldest gateway, unless another gateway has it.',
      scope: 'org:files:write',
      params,
      body: swapRequest,
      success: { description: 'The entry in force.', body: z.object({ data: entry }) },
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
      summary: 'Get the swap history of a CID',
      description:
        'The history belongs to the workspace of the gateway. The history of a public CID may be read with any workspace’s key.',
      scope: 'org:files:read',
      params,
      query: historyQuery,
      success: { description: 'Up to 1000 entries, newest first.', body: z.object({ data: z.array(entry) }) },
      errors: [404],
      async handle({ principal, params: { network, cid }, query: { domain } }) {
        const canonical = canonicalCid(parseCid(cid))
        const gateway = await gateways.findByName(domain)
        if (!gateway) throw notFound('domain: there is no such gateway')
        if (!gateway.hasSwaps) throw notFound('domain: the gateway does not have the hot swaps plugin')
        const { workspaceId } = gateway
        // For private files, even their CIDs are confidential.
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
      summary: 'Remove a swap',
      description: 'The original is served again. The removal becomes a history entry without a CID.',
      scope: 'org:files:write',
      params,
      success: { description: 'Removed.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { network, cid } }) {
        const canonical = canonicalCid(parseCid(cid))
        await removeSwap(pool, { workspaceId, network, canonical })
        return { body: { data: null } }
      },
    }),
  ]
}

/** A CID that may be swapped, by workspace and network, in canonical form. */
interface Original {
  workspaceId: string
  network: Network
  canonical: string
}

/** Maximum number of history entries shown. */
const HISTORY = 1000

/** The changes of a swap, newest first; none if the CID was never swapped. */
export async function swapHistory(db: Queryable, original: Original): Promise<SwapEntry[]> {
  return (await listSwaps.run(db, ...values(original), HISTORY)).rows
}

/**
 * Swaps a CID. Repeating a swap changes nothing, and returns the entry in force.
 * @param spelled the new CID in the client's spelling, in which it is shown.
 * @returns the entry in force, and whether this first swap of the workspace installed the plugin in its gateway.
 * @throws ApiError 400 for a swap to itself, 403 if the plan has no swaps, 404 if a CID is not a file of the workspace
 *   on this network.
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
    // The npm SDK can swap, but not install plugins. Gateways do not have this plugin by default, because it prevents
    // immutable caching of their content.
    const { rowCount } = await installSwaps.run(client, original.workspaceId)
    const entry = await insertSwap.one(client, ...values(original), spelled, targetCanonical)
    return { entry, installed: rowCount === 1 }
  })
}

/** Removes a swap; its history stays. @throws ApiError 404 if the CID is not swapped. */
function removeSwap(pool: Pool, original: Original): Promise<SwapEntry> {
  return inOrder(pool, original, async (client) => {
    const newest = await newestSwap.first(client, ...values(original))
    if (!newest?.mapped_cid_v1) throw notFound('CID is not swapped')
    return insertSwap.one(client, ...values(original), null, null)
  })
}

const toEntry = ({ mapped_cid, created_at }: SwapEntry): SwapEntry => ({ mapped_cid, created_at })

const values = ({ workspaceId, network, canonical }: Original) => [workspaceId, network, canonical] as const

/** Makes one change of a CID's swap at a time, so that ids and times increase together. */
function inOrder<T>(pool: Pool, original: Original, change: (client: Queryable) => Promise<T>): Promise<T> {
  return transaction(pool, async (client) => {
    await lock(client, 'swap', values(original).join())
    return change(client)
  })
}
