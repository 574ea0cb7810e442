import type { Core } from '../core.ts'
import type { Route } from '../http/route.ts'
import type { OperationRouteServices } from '../operations/operation-routes.ts'
import { analyticsRoutes } from './analytics/analytics-routes.ts'
import { RequestCounts } from './analytics/request-counts.ts'
import { detailRoutes } from './details.ts'
import { entryRoutes } from './entries.ts'
import { fileRoutes } from './files.ts'
import { gatewayRoutes } from './gateways/gateway-routes.ts'
import { GatewayService } from './gateways/gateways.ts'
import { groupRoutes } from './groups.ts'
import { olderRoutes } from './older-routes.ts'
import { PinService } from './pins/pin-requests.ts'
import { pinRoutes } from './pins/pin-routes.ts'
import { psaRoutes } from './psa/psa-routes.ts'
import { removeFile } from './remove.ts'
import type { FileServices } from './services.ts'
import { signatureRoutes } from './signatures.ts'
import { UrlSigner } from './signed-url.ts'
import { swapRoutes } from './swaps.ts'
import { openUploads } from './uploads/open.ts'
import { usageRoutes } from './usage.ts'

export interface Files {
  services: FileServices
  /** Counts of what gateways serve; undefined if nothing is counted. */
  counts: RequestCounts | undefined
  routes: Route[]
  withdraw: OperationRouteServices['withdraw']
}

/** Pins, uploads, groups and gateways. */
export async function openFiles(core: Core): Promise<Files> {
  const { config, pool, storages, disk, signingKeys, operations } = core
  const services: FileServices = {
    ...core,
    gateways: new GatewayService(pool, config.BERTH_GATEWAY_DOMAIN),
    signer: new UrlSigner(signingKeys),
    pins: new PinService(pool),
    // Berth does not check the disk of a Kubo.
    admitPin: async () => (storages.public.driver === 'embedded' ? disk.admit() : undefined),
  }
  const routes = [
    ...pinRoutes(services),
    ...psaRoutes(services),
    ...(await openUploads(services)),
    ...fileRoutes(services),
    ...olderRoutes(services),
    ...entryRoutes(services),
    ...detailRoutes(services),
    ...groupRoutes(services),
    ...swapRoutes(services),
    ...signatureRoutes(services),
    ...gatewayRoutes(services),
    ...analyticsRoutes(services),
    ...usageRoutes(services),
  ]
  return {
    services,
    counts: openCounts(core),
    routes,
    async withdraw({ target }, workspaceId) {
      await removeFile(pool, { workspaceId, network: 'public', id: target, only: 'pending' })
      operations.wake()
    },
  }
}

/** They stop after the server, so that the last responses are included. */
function openCounts({ config, pool, log, parts }: Core): RequestCounts | undefined {
  if (config.BERTH_RETENTION.analytics === 0) return undefined
  const counts = new RequestCounts(pool, log)
  const flush = () => counts.flush()
  parts.addLoop('analytics', config.BERTH_INTERVALS.analytics * 1000, flush, flush)
  return counts
}
