import { join } from 'node:path'
import { startLoop } from '../../workers/reconcile/loop.ts'
import type { Config } from '../config.ts'
import { createPool, type Pool } from '../db/pool.ts'
import type { GatewayService } from '../files/gateways/service.ts'
import type { UrlSigner } from '../files/signed-url.ts'
import { uploadRoutes } from '../files/uploads/routes.ts'
import { signRoutes } from '../files/uploads/sign-routes.ts'
import { SignedUploads } from '../files/uploads/signed-uploads.ts'
import { removeAbandonedUploads } from '../files/uploads/tus-cleanup.ts'
import { resumableRoutes } from '../files/uploads/tus-routes.ts'
import { ResumableUploads } from '../files/uploads/tus-uploads.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import type { Route } from '../http/route.ts'
import type { Logger } from '../log.ts'
import type { Storages } from '../storage/open.ts'
import type { Parts } from './parts.ts'

/** As many uploads are written down at a time, which takes some 20 ms each; all of them wait while their IPFS node hangs. */
const KEEP_CONNECTIONS = 4

export interface UploadParts {
  databaseUrl: string
  pool: Pool
  storages: Storages
  gateways: GatewayService
  signer: UrlSigner
  rateLimiter: RateLimiter
  log: Logger
  parts: Parts
}

/** Every way in for files, and the loop that removes what was begun and not finished. */
export function openUploads(config: Config, { databaseUrl, log, parts, ...services }: UploadParts): Route[] {
  const { pool, storages, signer } = services
  const dir = config.BERTH_UPLOAD_DIR ?? join(config.BERTH_DATA_DIR, 'uploads')
  const spoolDir = join(config.BERTH_DATA_DIR, 'spool')
  const expiryMs = config.BERTH_UPLOAD_EXPIRY_SECONDS
  const publicUrl = config.PUBLIC_URL
  const keepPool = createPool(databaseUrl, KEEP_CONNECTIONS, log)
  parts.add('connections of uploads', () => keepPool.end())
  const resumable = new ResumableUploads({ pool, keepPool, storages, dir, expiryMs, publicUrl, log })
  parts.add('resumable uploads', () => resumable.close())
  const loop = startLoop('uploads', Math.min(expiryMs, config.BERTH_RECONCILE_SECONDS), log, (signal) =>
    removeAbandonedUploads(pool, dir, signal),
  )
  parts.add('uploads loop', () => loop.stop())
  const signedUploads = new SignedUploads(pool, signer)
  return [
    ...uploadRoutes({ pool, keepPool, storages, spoolDir, resumable }),
    ...signRoutes({ ...services, keepPool, spoolDir, signedUploads, resumable, publicUrl }),
    ...resumableRoutes(resumable),
  ]
}
