/** Buckets of S3: their names in settings, the client with its settings, and what its errors mean. */
import { DeleteObjectsCommand, S3Client } from '@aws-sdk/client-s3'

/** Maximum concurrent requests of a client; further ones wait for a connection. */
const CONNECTIONS = 64
/** The most that S3 accepts in one request. */
const REMOVED_AT_ONCE = 1000

/**
 * A client with the settings that the AWS SDK reads from the environment: AWS_ENDPOINT_URL_S3, AWS_REGION,
 * AWS_ACCESS_KEY_ID and so on.
 * @param options.idleMs a request fails if nothing is sent or arrives for this long.
 * @param options.connectMs how long connecting may take; default: no limit. @param options.attempts default: 3.
 */
export function createS3Client(options: {
  pathStyle: boolean
  idleMs: number
  connectMs?: number
  attempts?: number
}): S3Client {
  return new S3Client({
    forcePathStyle: options.pathStyle,
    ...(options.attempts && { maxAttempts: options.attempts }),
    // Berth has its own hash of everything that it stores, and uses it to detect and report damage.
    responseChecksumValidation: 'WHEN_REQUIRED',
    requestHandler: {
      httpAgent: { maxSockets: CONNECTIONS, keepAlive: true },
      httpsAgent: { maxSockets: CONNECTIONS, keepAlive: true },
      connectionTimeout: options.connectMs,
      // Not `requestTimeout`, which only warns.
      socketTimeout: options.idleMs,
      // Waiting for a connection is intended: it bounds the number of requests.
      socketAcquisitionWarningTimeout: 2 ** 31 - 1,
    },
  })
}

/** Removes objects; those that do not exist are skipped. @throws as the client does; see {@link explainS3}. */
export async function removeObjects(
  client: S3Client,
  bucket: string,
  keys: readonly string[],
): Promise<void> {
  for (let from = 0; from < keys.length; from += REMOVED_AT_ONCE) {
    const Objects = keys.slice(from, from + REMOVED_AT_ONCE).map((Key) => ({ Key }))
    const command = new DeleteObjectsCommand({ Bucket: bucket, Delete: { Objects, Quiet: true } })
    const [first] = (await client.send(command)).Errors ?? []
    if (first) throw Object.assign(new Error(first.Message), { name: first.Code ?? 'Error', $metadata: {} })
  }
}

interface Explained {
  /** The problem, for a person. */
  text: string
  /** `missing`: the object does not exist. `right`: the key may not do that, or the server cannot. */
  kind: 'missing' | 'right' | 'other'
}

/** The meaning of an error of the client; undefined if it is not from S3. */
export function explainS3(error: unknown): Explained | undefined {
  if (!(error instanceof Error)) return undefined
  const { name, message } = error
  const { code, $metadata } = error as NodeJS.ErrnoException & { $metadata?: { httpStatusCode?: number } }
  const other = (text: string): Explained => ({ text, kind: 'other' })
  if (name === 'NoSuchKey') return { text: 'an object is missing', kind: 'missing' }
  if (name === 'NoSuchBucket')
    return other('there is no such bucket; make it first (AWS_ENDPOINT_URL_S3 and AWS_REGION say where)')
  if (name === 'CredentialsProviderError')
    return other('there are no credentials: set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY')
  if (name === 'InvalidAccessKeyId' || name === 'SignatureDoesNotMatch')
    return other(`the key is refused (${name}): look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY`)
  if (name === 'AccessDenied' || name === 'NotImplemented' || $metadata?.httpStatusCode === 403)
    return { text: `this key has not the right to do that: ${message}`, kind: 'right' }
  if (/region is missing/i.test(message)) return other('AWS_REGION: not set')
  if (code === 'ENOTFOUND')
    return other(`${message}; does the server have its buckets in the path (BERTH_S3_PATH_STYLE=true)?`)
  if (code || name === 'TimeoutError') return other(`the server does not answer: ${message || code}`)
  return $metadata && other(`${name}: ${message}`)
}
