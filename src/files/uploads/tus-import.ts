/** The end of a resumable upload: its bytes are stored and become a file. */

import { isUniqueViolation } from '../../db/database-errors.ts'
import type { Uploader } from '../../db/statements/uploads.ts'
import { ApiError, badRequest } from '../../errors.ts'
import type { AddEntry } from '../../storage/port.ts'
import { overUrlSize } from './allowance.ts'
import { admitType } from './content-type.ts'
import type { UploadServices } from './grant.ts'
import { type KeptFile, keepContent, type StoredContent } from './keep.ts'
import type { UploadBytes } from './tus-bytes.ts'
import { mayNotUpload, type Outcome, type Upload } from './tus-rows.ts'
import { importCar, release } from './upload-import.ts'

type Services = Pick<UploadServices, 'keepPool' | 'storages' | 'bounds'> & { bytes: UploadBytes }

/** The type of a folder, as the store reports it. */
const FOLDER = 'directory'

/**
 * Imports the bytes of an upload and keeps their file, under the upload's id. It may run again after a crash at any
 * point: the same bytes are the same content, and an existing file is found.
 * @throws errors that a retry may overcome; permanent failures are outcomes.
 */
export async function importUpload(
  services: Services,
  upload: Upload,
  signal: AbortSignal,
): Promise<Outcome> {
  try {
    const { uploader } = upload
    if (!uploader) throw mayNotUpload()
    const stored = await store(services, upload, signal)
    try {
      const { file } = await keep(services, { ...upload, uploader }, stored)
      return { cid: file.cid, fileId: file.id }
    } catch (error) {
      if (isFinal(error)) await release(services, upload.details.network, stored.cid)
      throw error
    }
  } catch (error) {
    if (isFinal(error)) return { refusal: error }
    throw error
  }
}

async function store(
  services: Services,
  { id, details, length, workspaceId }: Upload,
  signal: AbortSignal,
): Promise<StoredContent> {
  const { network, car, cidVersion } = details
  let failure: unknown
  // A node may report a failed read as an error of its own.
  async function* content() {
    try {
      if (length > 0) yield* services.bytes.read(id, length)
    } catch (error) {
      failure = error
      throw error
    }
  }
  try {
    if (car) return await importCar({ services, workspaceId, network, signal }, content())
    return await services.storages[network].add(oneFile(content()), { cidVersion, signal })
  } catch (error) {
    throw failure ?? error
  }
}

async function keep(
  services: Services,
  { id, uploader, details }: Upload & { uploader: Uploader },
  stored: StoredContent,
): Promise<KeptFile> {
  const { type, car, folder, maxFileBytes, allowedMimeTypes } = details
  if (folder && stored.mimeType !== FOLDER) throw badRequest('folder: the root of the CAR is no folder')
  // The content of a CAR may be larger than the CAR itself.
  if (maxFileBytes !== null && stored.size > maxFileBytes) throw overUrlSize(maxFileBytes)
  const mimeType = admitType(stored.mimeType, car ? null : type, allowedMimeTypes)
  try {
    return await keepContent(services, uploader, details, { ...stored, mimeType }, { id, reservation: id })
  } catch (error) {
    if (!isUniqueViolation(error, 'file_pkey')) throw error
    throw new ApiError(410, 'deleted', 'The file of this upload was deleted', { cause: error })
  }
}

async function* oneFile(content: AsyncIterable<Uint8Array>): AsyncGenerator<AddEntry> {
  yield { path: 'file', content }
}

/** True for an error that a retry cannot change, unlike one for too many concurrent requests (429). */
function isFinal(error: unknown): error is ApiError {
  return error instanceof ApiError && error.status < 500 && error.status !== 429
}
