import { join } from 'node:path'
import type { RequestHandler } from 'express'
import type { AgentServices } from '../agents/agent-route.ts'
import type { Core } from '../core.ts'
import type { RequestCounts } from '../files/analytics/request-counts.ts'
import type { FileServices } from '../files/services.ts'
import type { RouteServices } from '../http/admission.ts'
import type { Route } from '../http/route.ts'
import { FolderCache } from '../lib/folder-cache.ts'
import { agentHandler } from './agents/agent-host.ts'
import { openAiRoutes } from './agents/openai-routes.ts'
import { appHandler, customDomainHandler } from './apps/app-host.ts'
import { SiteDirectory } from './apps/site.ts'
import { customGatewayHandler, gatewayHandler } from './gateways/gateway-host.ts'
import { Images } from './gateways/images/images.ts'
import { byHost, inTurn } from './hosts.ts'

/** Largest converted image that is cached. */
const CACHED_IMAGE_BYTES = 1_048_576

export interface HostParts {
  agents: { services: AgentServices }
  files: { services: FileServices; counts: RequestCounts | undefined }
  services: RouteServices
}

/** All hosts other than the API's: of gateways, of agents and of agents' pages. */
export function openHosts(
  core: Core,
  { agents, files, services }: HostParts,
): { handler: RequestHandler; routes: Route[] } {
  const { config } = core
  const isSecure = config.PUBLIC_URL?.startsWith('https:') ?? false
  const apps = { ...agents.services, isSecure, sites: new SiteDirectory(core) }
  const gateways = { ...files.services, counts: files.counts, images: openImages(core) }
  const gatewayAt = gatewayHandler(gateways)
  const handler = byHost(
    config.PUBLIC_URL,
    [
      { domain: config.BERTH_GATEWAY_DOMAIN, handler: gatewayAt },
      { domain: config.BERTH_AGENT_DOMAIN, handler: agentHandler({ ...apps, services }) },
      { domain: config.BERTH_APP_DOMAIN, handler: appHandler(apps) },
    ],
    inTurn(customDomainHandler(apps), customGatewayHandler(gateways, gatewayAt)),
  )
  return { handler, routes: openAiRoutes(agents.services) }
}

function openImages({ config, disk, log, parts }: Core): Images {
  const { cacheMb, ...limits } = config.BERTH_IMAGES
  const cache = new FolderCache({
    folder: join(config.BERTH_DATA_DIR, 'images'),
    maxBytes: cacheMb * 1_048_576,
    maxEntryBytes: CACHED_IMAGE_BYTES,
    isVerified: false,
    disk,
    log,
  })
  const images = new Images(limits, cache, log)
  parts.add('processes that convert images', () => images.close())
  return images
}
