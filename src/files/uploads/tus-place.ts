import type { Config } from '../../config.ts'
import type { Pool } from '../../db/pool.ts'
import { placeOfUploads } from '../../lib/disk.ts'
import type { UploadBytes } from './tus-bytes.ts'
import { BytesInFolder } from './tus-folder.ts'

/** Opens the bytes of unfinished uploads where the settings say. */
export async function openBytes(config: Config, pool: Pool): Promise<UploadBytes> {
  const place = placeOfUploads(config)
  if ('dir' in place) return new BytesInFolder(place.dir)
  const { BytesInBucket } = await import('./tus-bucket.ts')
  return new BytesInBucket({ ...place, pathStyle: config.BERTH_S3_PATH_STYLE, pool })
}
