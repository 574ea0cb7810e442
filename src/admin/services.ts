import type { AccountServices } from '../accounts/services.ts'
import { routesOf } from '../http/route.ts'
import type { Readiness } from '../lib/readiness.ts'

/** The services that routes for admins of the instance are built from. */
export interface AdminServices extends AccountServices {
  readiness: Readiness
}

/** Declares a route of the instance. */
export const route = routesOf('Instance')
