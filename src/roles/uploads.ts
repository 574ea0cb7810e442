import { join } from 'node:path'
import type { Config } from '../config.ts'
import { createPool, type Pool } from '../db/pool.ts'
import type { PrismaClient } from '../db/prisma.ts'
import type { GatewayService } from '../files/gateways/gateways.ts'
import type { UrlSigner } from '../files/signed-url.ts'
import { RENEW_MS, Reservations } from '../files/uploads/reservations.ts'
import { signRoutes } from '../files/uploads/sign-routes.ts'
import { SignedUploads } from '../files/uploads/signed-uploads.ts'
import { resumableRoutes } from '../files/uploads/tus-routes.ts'
import { removeAbandonedUploads } from '../files/uploads/tus-rows.ts'
import { ResumableUploads } from '../files/uploads/tus-uploads.ts'
import { uploadRoutes } from '../files/uploads/upload-routes.ts'
import type { RateLimiter } from '../http/rate-limit.ts'
import type { Route } from '../http/route.ts'
import type { Bounds } from '../lib/bounds.ts'
import type { Closers } from '../lib/closers.ts'
import type { DiskReserve } from '../lib/disk-reserve.ts'
import { startLoop } from '../lib/loop.ts'
import type { Logger } from '../log.ts'
import type { Storages } from '../storage/open.ts'

/**
 * How many uploads may be recorded at a time, which takes about 20 ms each; all of them wait while their IPFS node
 * hangs.
 */
const KEEP_CONNECTIONS = 4

export interface UploadParts {
  databaseUrl: string
  pool: Pool
  prisma: PrismaClient
  storages: Storages
  gateways: GatewayService
  signer: UrlSigner
  rateLimiter: RateLimiter
  bounds: Bounds
  disk: DiskReserve
  log: Logger
  parts: Closers
}

/** All upload routes, and the loop that removes abandoned uploads. */
export function openUploads(config: Config, { databaseUrl, log, parts, ...services }: UploadParts): Route[] {
  const { pool, prisma, storages, signer, bounds, disk } = services
  const dir = config.BERTH_UPLOAD_DIR ?? join(config.BERTH_DATA_DIR, 'uploads')
  const spoolDir = join(config.BERTH_DATA_DIR, 'spool')
  const expiryMs = config.BERTH_UPLOAD_EXPIRY_SECONDS * 1000
  const publicUrl = config.PUBLIC_URL
  const keepPool = createPool(databaseUrl, KEEP_CONNECTIONS, log)
  parts.add('connections of uploads', () => keepPool.end())
  const reservations = new Reservations(keepPool)
  const shared = { pool, prisma, keepPool, storages, bounds, reservations, disk }
  const resumable = new ResumableUploads({ ...shared, dir, expiryMs, publicUrl, log })
  parts.add('resumable uploads', () => resumable.close())
  const renewal = startLoop('upload reservations', RENEW_MS, log, () => reservations.renew())
  parts.add('upload reservations', () => renewal.stop())
  const loop = startLoop(
    'uploads',
    Math.min(expiryMs, config.BERTH_INTERVALS.reconcile * 1000),
    log,
    (signal) => removeAbandonedUploads({ pool, prisma }, dir, signal),
  )
  parts.add('uploads loop', () => loop.stop())
  const signedUploads = new SignedUploads({ pool, prisma, signer })
  return [
    ...uploadRoutes({ ...shared, spoolDir, resumable }),
    ...signRoutes({ ...services, ...shared, spoolDir, signedUploads, resumable, publicUrl }),
    ...resumableRoutes(resumable),
  ]
}
