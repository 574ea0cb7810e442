/** The signature and the swaps of a file. Most files have neither, so a missing one is not an error. */
import { z } from 'zod'
import { notFound } from '../errors.ts'
import { type Route, routesOf } from '../http/route.ts'
import { network, pathId } from '../http/shapes.ts'
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
})

export function detailRoutes({ pool, prisma }: FileServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/files/:network/:id/details',
      id: 'getFileDetails',
      summary: "Get a file's signature and swaps",
      description: 'Returns both in one request, which succeeds even for a file without either.',
      scope: 'org:files:read',
      params: z.object({ network, id: pathId }),
      success: { description: 'The details.', body: z.object({ data: details }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { network, id } }) {
        const file = await prisma.file.findFirst({
          where: { id, workspaceId, network, ...PINNED },
          select: { cid: true, cidV1: true },
        })
        if (!file) throw notFound('There is no such file')
        const { cid, cidV1 } = file
        const [signature, swapping] = await Promise.all([
          findSignature(prisma, { workspaceId, network, cidV1 }, cid),
          prisma.gateway.count({ where: { workspaceId, hotSwaps: true }, take: 1 }),
        ])
        const swaps = swapping ? await swapHistory(pool, { workspaceId, network, canonical: cidV1 }) : []
        return { body: { data: { signature, swaps } } }
      },
    }),
  ]
}
