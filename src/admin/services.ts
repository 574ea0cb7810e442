import type { KeyService } from '../accounts/keys.ts'
import type { Pool } from '../db/pool.ts'
import type { PrismaClient } from '../db/prisma.ts'
import { routesOf } from '../http/route.ts'
import type { Readiness } from '../lib/readiness.ts'
import type { WorkerStatus } from '../operations/worker-status.ts'

/** The services of the instance routes. */
export interface AdminServices {
  pool: Pool
  prisma: PrismaClient
  keys: KeyService
  workers: WorkerStatus
  readiness: Readiness
  /** Makes this process read its cached keys again; other processes are notified. */
  forgetKeys(): void
}

/** Declares a route of the instance. */
export const route = routesOf('Instance')
