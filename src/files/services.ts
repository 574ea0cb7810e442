import type { Core } from '../core.ts'
import type { GatewayService } from './gateways/gateways.ts'
import type { PinService } from './pins/pin-requests.ts'
import type { UrlSigner } from './signed-url.ts'

/** The services that routes of files get. */
export interface FileServices extends Core {
  gateways: GatewayService
  signer: UrlSigner
  pins: PinService
  /** Throws ApiError 507 while nothing new can be pinned. */
  admitPin(): Promise<void>
}
