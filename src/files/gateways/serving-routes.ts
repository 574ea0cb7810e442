import { z } from 'zod'
import { notFound } from '../../errors.ts'
import { withExample } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { oneOrMore, pathId } from '../../http/shapes.ts'
import type { FileServices } from '../services.ts'

const route = routesOf('Gateways')

/** Settings for what a gateway serves in addition to the paths of its files. */
export const serving = {
  inner_cids: z.boolean().describe('Also serves content inside the workspace’s public files by its own CID.'),
  cid_hosts: z
    .boolean()
    .describe('Redirects public content from its path to the CID’s own host, which is a separate origin.'),
}

/** Lets the owner of a gateway choose what it serves. */
export function servingRoutes({ prisma, gateways }: FileServices): Route[] {
  const change = z
    .object({
      inner_cids: withExample(serving.inner_cids.optional(), true),
      cid_hosts: serving.cid_hosts.optional(),
    })
    .refine(
      (choices) => Object.values(choices).some((value) => value !== undefined),
      'must have inner_cids or cid_hosts',
    )
    .meta(oneOrMore('inner_cids', 'cid_hosts'))
  return [
    route({
      method: 'patch',
      path: '/v3/gateways/:id',
      aliases: ['/v3/ipfs/gateways/:id'],
      id: 'changeGatewayServing',
      summary: 'Change what a gateway serves',
      description: 'Omitted fields stay unchanged. Other web processes follow within two seconds.',
      scope: 'org:gateways:write',
      params: z.object({ id: pathId }),
      body: change,
      success: { description: 'As it is now.', body: z.object({ data: z.object(serving) }) },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { id }, body: { inner_cids, cid_hosts } }) {
        const [changed] = await prisma.gateway.updateManyAndReturn({
          where: { id, workspaceId },
          data: {
            ...(inner_cids !== undefined && { innerCids: inner_cids }),
            ...(cid_hosts !== undefined && { cidHosts: cid_hosts }),
          },
        })
        if (!changed) throw notFound('There is no such gateway')
        gateways.forget()
        return { body: { data: { inner_cids: changed.innerCids, cid_hosts: changed.cidHosts } } }
      },
    }),
  ]
}
