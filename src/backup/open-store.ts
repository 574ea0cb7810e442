/** Opens a place for backups by its name. */
import { resolve } from 'node:path'
import { readBucket } from '../lib/bucket-name.ts'
import { trimSlashes } from '../lib/slashes.ts'
import { BackupError, type BackupStore } from './store.ts'

/**
 * Returns `s3://bucket/prefix` unchanged, and anything else as the absolute path of a folder. @throws BackupError if
 * the bucket is missing.
 */
export function resolveTarget(target: string): string {
  if (!target.startsWith('s3://')) return resolve(target)
  if (!readBucket(target)) throw new BackupError(`${target} names no bucket: use s3://bucket/prefix`)
  return trimSlashes(target)
}

/**
 * Opens a folder, or a bucket with the settings that the AWS SDK reads from the environment: AWS_ENDPOINT_URL_S3,
 * AWS_REGION, AWS_ACCESS_KEY_ID and so on. The SDK is loaded only for buckets.
 * @param options.pathStyle BERTH_S3_PATH_STYLE.
 */
export async function openStore(target: string, { pathStyle }: { pathStyle: boolean }): Promise<BackupStore> {
  const where = resolveTarget(target)
  const bucket = readBucket(where)
  if (!bucket) return new (await import('./folder-store.ts')).FolderStore(where)
  const { S3Store } = await import('./s3-store.ts')
  return new S3Store({ where, ...bucket, pathStyle })
}
