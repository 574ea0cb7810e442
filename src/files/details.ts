/** The signature, swaps and replicas of a file. Most files have none of them, so a missing one is not an error. */

import { CID } from 'multiformats/cid'
import { z } from 'zod'
import { notFound } from '../errors.ts'
import { like } from '../http/fields.ts'
import { type Route, routesOf } from '../http/route.ts'
import { network, pathId } from '../http/shapes.ts'
import { within } from '../lib/signals.ts'
import { PINNED } from './held-content.ts'
import type { FileServices } from './services.ts'
import { findSignature, signatureRecord } from './signatures.ts'
import { swapEntry, swapHistory } from './swaps.ts'

const route = routesOf('Files')

const details = z.object({
  signature: signatureRecord.nullable().describe('Null if the content is not signed.'),
  swaps: z
    .array(swapEntry)
    .describe(
      'Newest first, up to 1000. Empty if the CID was never swapped, or no gateway of the workspace has the hot swaps plugin.',
    ),
  replicas: z
    .object({
      wanted: like(2).describe('The number of peers that have to keep the content.'),
      peers: z.array(
        z.object({
          name: like('peer-1'),
          status: z.enum(['pinned', 'pending', 'failed']),
          error: z.string().nullable(),
        }),
      ),
    })
    .nullable()
    .describe(
      'The peers of IPFS Cluster that keep the content, or should. Null without IPFS Cluster, or if it does not respond.',
    ),
})

/** How long IPFS Cluster may take. */
const CLUSTER_MS = 3000

export function detailRoutes({ pool, prisma, storages }: FileServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/files/:network/:id/details',
      id: 'getFileDetails',
      summary: "Get a file's signature, swaps and replicas",
      description: 'Returns all in one request, which succeeds even for a file that has none of them.',
      scope: 'org:files:read',
      params: z.object({ network, id: pathId }),
      success: { description: 'The details.', body: z.object({ data: details }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { network, id }, signal }) {
        const file = await prisma.file.findFirst({
          where: { id, workspaceId, network, ...PINNED },
          select: { cid: true, cidV1: true },
        })
        if (!file) throw notFound('There is no such file')
        const { cid, cidV1 } = file
        const [signature, swapping, replicas = null] = await Promise.all([
          findSignature(prisma, { workspaceId, network, cidV1 }, cid),
          prisma.gateway.count({ where: { workspaceId, hotSwaps: true }, take: 1 }),
          storages[network]
            .replicas?.(CID.parse(cidV1), { signal: within(CLUSTER_MS, signal) })
            .catch(() => undefined),
        ])
        const swaps = swapping ? await swapHistory(pool, { workspaceId, network, canonical: cidV1 }) : []
        return { body: { data: { signature, swaps, replicas } } }
      },
    }),
  ]
}
