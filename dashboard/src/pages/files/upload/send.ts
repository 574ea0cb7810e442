/** Sends an upload by tus in chunks, and resumes it after a pause, a disconnect or a reload. */
import { CID } from 'multiformats/cid'
import { DetailedError, Upload } from 'tus-js-client'
import { RequestError } from '../../../api/client.ts'
import { texts } from '../../../texts.ts'

/** Proxies in front of Berth often refuse larger bodies. */
const PIECE_BYTES = 33_554_432
const RETRY_MS = [0, 1000, 3000, 5000, 10_000]

export interface Sending {
  name: string
  network: 'public' | 'private'
  groupId: string | undefined
  workspaceId: string
  isFolder: boolean
  cid: string
  type: string
  body: Blob
}

interface Told {
  onSent(bytes: number): void
  onDone(fileId: string): void
  /** @param isOffline true if Berth cannot be reached at the moment. */
  onFailed(error: Error, isOffline: boolean): void
}

/** Prepares the upload. The caller starts it, and aborts it for a pause. */
export async function prepare(sending: Sending, { onSent, onDone, onFailed }: Told): Promise<Upload> {
  const { name, network, groupId, workspaceId, isFolder, cid, type, body } = sending
  const upload: Upload = new Upload(body as File, {
    endpoint: '/v3/files',
    headers: { 'berth-session': '1', 'berth-workspace': workspaceId },
    chunkSize: PIECE_BYTES,
    retryDelays: RETRY_MS,
    metadata: {
      name: name.slice(0, MAX_NAME),
      filetype: type,
      network,
      ...(groupId && { group_id: groupId }),
      ...(isFolder && { folder: 'true' }),
    },
    // Based on the CID, so that after a reload an upload resumes only for the same content.
    fingerprint: async () => ['berth', workspaceId, network, groupId, isFolder, cid, name].join(' '),
    removeFingerprintOnSuccess: true,
    // Berth's public URL may differ from the URL of this page.
    onUploadUrlAvailable: () => {
      upload.url = upload.url && new URL(upload.url, location.href).pathname
    },
    onShouldRetry: (error) => {
      const status = statusOf(error)
      return status === 0 ? navigator.onLine : status >= 500 || RETRIED.has(status)
    },
    onProgress: onSent,
    onError: (error) => onFailed(readable(error), statusOf(error) === 0),
    onSuccess({ lastResponse }) {
      const kept = lastResponse.getHeader('Upload-Cid')
      const id = upload.url?.split('/').at(-2) ?? ''
      if (kept && isSame(kept, cid)) onDone(id)
      else onFailed(new Error(texts.files.upload.otherCid(kept ?? '')), false)
    },
  })
  const [before] = await upload.findPreviousUploads()
  if (before) upload.resumeFromPreviousUpload(before)
  return upload
}

const MAX_NAME = 255
/** Statuses for a busy upload and for too many requests. */
const RETRIED = new Set([409, 423, 429])

const statusOf = (error: Error | DetailedError): number =>
  (error instanceof DetailedError && error.originalResponse?.getStatus()) || 0

/** The error that Berth returned, if it responded. */
function readable(error: Error | DetailedError): Error {
  const status = statusOf(error)
  if (status === 0) return new RequestError(0, texts.offline)
  const body = (error as DetailedError).originalResponse?.getBody() ?? ''
  try {
    return new RequestError(status, String(JSON.parse(body).error))
  } catch {
    return new RequestError(status, String(status))
  }
}

/** Compares CIDs: a file that already existed may have its CID in another encoding. */
function isSame(kept: string, cid: string): boolean {
  try {
    return CID.parse(kept).toV1().equals(CID.parse(cid))
  } catch {
    return false
  }
}
