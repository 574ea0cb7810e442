import { join } from 'node:path'
import { createPool } from '../../db/pool.ts'
import type { Route } from '../../http/route.ts'
import type { FileServices } from '../services.ts'
import { RENEW_MS, Reservations } from './reservations.ts'
import { signRoutes } from './sign-routes.ts'
import { SignedUploads } from './signed-uploads.ts'
import { openBytes } from './tus-place.ts'
import { resumableRoutes } from './tus-routes.ts'
import { removeAbandonedUploads } from './tus-rows.ts'
import { ResumableUploads } from './tus-uploads.ts'
import { uploadRoutes } from './upload-routes.ts'

/**
 * How many uploads may be recorded at a time, which takes about 20 ms each; all of them wait while their IPFS node
 * hangs.
 */
const KEEP_CONNECTIONS = 4

/** All upload routes, and the loop that removes abandoned uploads. */
export async function openUploads(services: FileServices): Promise<Route[]> {
  const { config, databaseUrl, pool, prisma, log, parts } = services
  const bytes = await openBytes(config, pool)
  parts.add('bytes of uploads', () => bytes.close())
  const expiryMs = config.BERTH_UPLOAD_EXPIRY_SECONDS * 1000
  const keepPool = createPool(databaseUrl, KEEP_CONNECTIONS, log)
  parts.add('connections of uploads', () => keepPool.end())
  const reservations = new Reservations(keepPool)
  const uploads = { ...services, keepPool, reservations, spoolDir: join(config.BERTH_DATA_DIR, 'spool') }
  const resumable = new ResumableUploads({ ...uploads, bytes, expiryMs })
  parts.add('resumable uploads', () => resumable.close())
  parts.addLoop('upload reservations', RENEW_MS, () => reservations.renew())
  parts.addLoop('uploads', Math.min(expiryMs, config.BERTH_INTERVALS.reconcile * 1000), (signal) =>
    removeAbandonedUploads({ pool, prisma }, bytes, signal),
  )
  return [
    ...uploadRoutes({ ...uploads, resumable }),
    ...signRoutes({ ...uploads, resumable, signedUploads: new SignedUploads(services) }),
    ...resumableRoutes(resumable),
  ]
}
