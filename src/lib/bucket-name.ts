/** Names of buckets in settings. It loads no client. */
import { trimSlashes } from './slashes.ts'

const S3 = /^s3:\/\/([^/]+)(?:\/(.*))?$/

/** The bucket and the prefix of its objects, which is empty or ends in `/`; undefined if it names no bucket. */
export function readBucket(target: string): { bucket: string; prefix: string } | undefined {
  const [, bucket, prefix] = S3.exec(trimSlashes(target)) ?? []
  return bucket === undefined ? undefined : { bucket, prefix: prefix ? `${prefix}/` : '' }
}
