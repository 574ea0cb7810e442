import { z } from 'zod'
import { notFound } from '../../errors.ts'
import { like, uuid, withExample } from '../../http/fields.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { nothing, pathId } from '../../http/shapes.ts'
import type { FileServices } from '../services.ts'

const route = routesOf('Gateways')
/**
 * Berth's plugins, with the numbers by which clients know them, and the columns that record whether a gateway has them.
 */
const PLUGINS = [
  {
    shown: {
      id: 1,
      name: 'Content Addressable',
      description: 'Shows the signature of content in the header `pinata-signature`.',
      tags: ['files'] as string[],
    },
    column: 'showsSignatures',
  },
  {
    shown: {
      id: 2,
      name: 'Hot Swaps',
      description: 'Serves newer content under the address of a CID that was given away before.',
      tags: ['files'] as string[],
    },
    column: 'hotSwaps',
  },
] as const
type Switches = { id: string } & Record<(typeof PLUGINS)[number]['column'], boolean>

const installed = z.object({ gateway_id: uuid, plugin_id: like(2) })

const plugin = z.object({
  id: like(2),
  name: like('Hot Swaps'),
  description: like('Serves newer content under the address of a CID that was given away before.'),
  tags: withExample(z.array(z.string()), ['files']),
})

const gatewayParams = z.object({ gateway_id: pathId })
const pluginId = z
  .string()
  .regex(/^\d{1,9}$/, 'must be a whole number')
  .transform(Number)
  .pipe(z.number().max(999_999_999))

/** Plugins of gateways: installing and removing them. */
export function pluginRoutes({ prisma, gateways }: FileServices): Route[] {
  const find = async (workspaceId: string, id: string) => {
    const found = await prisma.gateway.findFirst({ where: { id, workspaceId } })
    if (!found) throw notFound('There is no such gateway')
    return found
  }
  const pluginsOf = (gateway: Switches) =>
    PLUGINS.filter(({ column }) => gateway[column]).map(({ shown }) => ({
      gateway_id: gateway.id,
      plugin_id: shown.id,
    }))
  return [
    route({
      method: 'get',
      path: '/v3/gateways/plugins',
      aliases: ['/v3/ipfs/gateway_plugins'],
      id: 'listPlugins',
      summary: 'List the plugins of all gateways',
      scope: 'org:gateways:read',
      success: {
        description: 'Each plugin with the gateway that has it.',
        body: z.object({ data: z.array(installed) }),
      },
      async handle({ principal: { workspaceId } }) {
        const found = await prisma.gateway.findMany({ where: { workspaceId }, orderBy: { id: 'asc' } })
        return { body: { data: found.flatMap(pluginsOf) } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/gateways/plugins/marketplace',
      aliases: ['/v3/ipfs/plugins_marketplace'],
      id: 'listOfferedPlugins',
      summary: 'List the plugins that a gateway may have',
      scope: 'org:gateways:read',
      success: { description: 'The plugins.', body: z.object({ data: z.array(plugin) }) },
      async handle() {
        return { body: { data: PLUGINS.map(({ shown }) => shown) } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/gateways/plugins/marketplace/:plugin_id',
      aliases: ['/v3/ipfs/plugins_marketplace/:plugin_id'],
      id: 'getOfferedPlugin',
      summary: 'Get a plugin that a gateway may have',
      scope: 'org:gateways:read',
      params: z.object({ plugin_id: pluginId }),
      success: { description: 'The plugin.', body: z.object({ data: plugin }) },
      errors: [404],
      async handle({ params }) {
        return { body: { data: offered(params.plugin_id).shown } }
      },
    }),
    route({
      method: 'get',
      path: '/v3/gateways/plugins/:gateway_id',
      aliases: ['/v3/ipfs/gateway_plugins/:gateway_id'],
      id: 'listGatewayPlugins',
      summary: 'List the plugins of a gateway',
      scope: 'org:gateways:read',
      params: gatewayParams,
      success: { description: 'Its plugins.', body: z.object({ data: z.array(installed) }) },
      errors: [404],
      async handle({ principal, params }) {
        return { body: { data: pluginsOf(await find(principal.workspaceId, params.gateway_id)) } }
      },
    }),
    route({
      method: 'post',
      path: '/v3/gateways/plugins/:gateway_id',
      aliases: ['/v3/ipfs/gateway_plugins/:gateway_id'],
      id: 'installPlugin',
      summary: 'Install a plugin in a gateway',
      scope: 'org:gateways:write',
      params: gatewayParams,
      body: z.object({ plugin_id: like(2).int() }),
      success: {
        description: 'The gateway has the plugin, now or already before.',
        body: z.object({ data: installed }),
      },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { gateway_id: id }, body: { plugin_id } }) {
        const { column } = offered(plugin_id)
        const { count } = await prisma.gateway.updateMany({
          where: { id, workspaceId },
          data: { [column]: true },
        })
        if (count === 0) throw notFound('There is no such gateway')
        gateways.forget()
        return { body: { data: { gateway_id: id, plugin_id } } }
      },
    }),
    route({
      method: 'delete',
      path: '/v3/gateways/plugins/:gateway_id/plugin/:plugin_id',
      aliases: ['/v3/ipfs/gateway_plugins/:gateway_id/plugin/:plugin_id'],
      id: 'removePlugin',
      summary: 'Remove a plugin from a gateway',
      scope: 'org:gateways:write',
      params: gatewayParams.extend({ plugin_id: pluginId }),
      success: { description: 'Removed.', body: nothing },
      errors: [404],
      async handle({ principal: { workspaceId }, params: { gateway_id, plugin_id } }) {
        const { column } = offered(plugin_id)
        const { id } = await find(workspaceId, gateway_id)
        const { count } = await prisma.gateway.updateMany({
          where: { id, [column]: true },
          data: { [column]: false },
        })
        if (count === 0) throw notFound('The gateway does not have this plugin')
        gateways.forget()
        return { body: { data: null } }
      },
    }),
  ]
}

/** The plugin with a number. @throws ApiError 404 for any other. */
function offered(id: number): (typeof PLUGINS)[number] {
  const found = PLUGINS.find(({ shown }) => shown.id === id)
  if (!found) throw notFound('plugin_id: there is no such plugin')
  return found
}
