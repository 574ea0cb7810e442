import type { Request } from 'express'
import { ApiError } from '../../errors.ts'
import { openAllowance } from './allowance.ts'
import { admitType } from './content-type.ts'
import { type FieldReader, readField } from './fields.ts'
import { UploadForm } from './form.ts'
import type { ReceivedUpload, ReceiveUpload, UploadGrant, UploadServices } from './grant.ts'
import { release } from './import.ts'
import { keepContent, type StoredContent } from './keep.ts'
import { Upload } from './upload.ts'

/** A form is larger than its files: by less than this, or else it shows while they are read. */
const FORM_BYTES = 1_048_576

/** Receives the form of `POST /v3/files`, see {@link ReceiveUpload}. */
export const receiveUpload: ReceiveUpload = (req, grant, services, signal) =>
  receiveForm(readField, req, grant, services, signal)

/** The same for a form with other fields. */
export async function receiveForm(
  readField: FieldReader,
  req: Request,
  grant: UploadGrant,
  services: UploadServices,
  signal: AbortSignal,
): Promise<ReceivedUpload> {
  const allow = await openAllowance(services.pool, grant)
  allow(Number(req.headers['content-length'] ?? 0) - FORM_BYTES)
  const form = new UploadForm(req, signal)
  try {
    const upload = new Upload(form, readField, grant, allow)
    return await keep(upload, await upload.store(services), grant, services)
  } catch (error) {
    throw form.signal.aborted ? form.signal.reason : error
  } finally {
    form.close()
  }
}

/** Makes a file of what is in the store now, or takes it out again. */
async function keep(
  upload: Upload,
  stored: StoredContent,
  grant: UploadGrant,
  services: UploadServices,
): Promise<ReceivedUpload> {
  const { network } = upload
  const { uploader, allowedMimeTypes } = grant
  try {
    upload.allow(stored.size)
    const mimeType = admitType(stored.mimeType, upload.declaredType, allowedMimeTypes)
    const kept = await keepContent(services, uploader, upload.details(), { ...stored, mimeType })
    return { ...kept, network, userId: uploader.userId }
  } catch (error) {
    // Where the node does not answer, it would not here either.
    if (error instanceof ApiError) await release(services, network, stored.cid)
    throw error
  }
}
