import type { Core } from '../core.ts'
import type { KeyService } from './keys.ts'
import type { OpenIdProvider } from './openid-provider.ts'

/** The services that routes of accounts get. */
export interface AccountServices extends Core {
  keys: KeyService
  /** Makes this process read its cached keys again; other processes are notified. */
  forgetKeys(): void
  /** The OpenID provider from the settings, if there is one. */
  provider: OpenIdProvider | undefined
}
