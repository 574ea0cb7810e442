import type { Request } from 'express'
import { ApiError } from '../../errors.ts'
import { Allowance } from './allowance.ts'
import { admitType } from './content-type.ts'
import { type FieldReader, readField as readUploadField } from './fields.ts'
import { UploadForm } from './form.ts'
import type { ReceivedUpload, UploadGrant, UploadServices } from './grant.ts'
import { type FileDetails, keepContent, type StoredContent } from './keep.ts'
import { iterate, Upload, WRAPPER } from './upload.ts'
import { release } from './upload-import.ts'

/**
 * Bytes allowed for a form's fields and boundaries. A Content-Length that exceeds the limit by more than this is
 * rejected before the body is read; a smaller excess is detected while the file arrives.
 */
const FORM_OVERHEAD_BYTES = 1_048_576

/**
 * Reads a multipart form from the request, and keeps its file.
 * @param signal fires when the client has disconnected.
 * @param readField reads the form's fields; by default those of `POST /v3/files`.
 * @throws ApiError with the problem; the content is then not kept.
 */
export async function receiveForm(
  req: Request,
  grant: UploadGrant,
  services: UploadServices,
  signal: AbortSignal,
  readField: FieldReader = readUploadField,
): Promise<ReceivedUpload> {
  const announced = Number(req.headers['content-length'] ?? Number.NaN)
  const expectedBytes = Number.isNaN(announced) ? Number.POSITIVE_INFINITY : announced
  const allowance = new Allowance(services, grant, expectedBytes)
  try {
    await allowance.reserveUpTo((announced || 0) - FORM_OVERHEAD_BYTES)
    await services.disk.admit(announced || 0)
    const form = new UploadForm(req, signal)
    try {
      const upload = new Upload(form, readField, grant, allowance)
      return await keep(upload, await upload.store(services), grant, services)
    } catch (error) {
      throw form.signal.aborted ? form.signal.reason : error
    } finally {
      form.close()
    }
  } finally {
    await allowance.release()
  }
}

/** A file whose bytes are in memory, with the client's description. */
interface WholeFile {
  content: Uint8Array
  type: string
  details: FileDetails
  cidVersion: 0 | 1
  /** The file becomes the only entry of a directory, under this name. */
  wrappedAs?: string | undefined
}

/** Receives a file whose bytes arrived in a JSON body. */
export async function receiveWhole(
  { content, type, details, cidVersion, wrappedAs }: WholeFile,
  grant: UploadGrant,
  services: UploadServices,
  signal: AbortSignal,
): Promise<ReceivedUpload> {
  const { network } = details
  const allowance = new Allowance(services, grant, content.length)
  try {
    await allowance.reserveUpTo(content.length)
    await services.disk.admit(content.length)
    const path = wrappedAs === undefined ? 'file' : `${WRAPPER}/${wrappedAs}`
    const entries = iterate([{ path, content: iterate([content]) }])
    const folder = () => (wrappedAs === undefined ? null : WRAPPER)
    const stored = await services.storages[network].add(entries, { cidVersion, folder, signal })
    const declaredType = wrappedAs === undefined ? type : null
    return await keep({ network, allowance, declaredType, details: () => details }, stored, grant, services)
  } finally {
    await allowance.release()
  }
}

/** Turns the stored content into a file, or removes it from the store again. */
async function keep(
  upload: Pick<Upload, 'network' | 'allowance' | 'declaredType' | 'details'>,
  stored: StoredContent,
  grant: UploadGrant,
  services: UploadServices,
): Promise<ReceivedUpload> {
  const { network } = upload
  const { uploader, allowedMimeTypes } = grant
  try {
    upload.allowance.checkSize(stored.size)
    await grant.stillGood?.()
    const mimeType = admitType(stored.mimeType, upload.declaredType, allowedMimeTypes)
    const kept = await keepContent(
      services,
      uploader,
      upload.details(),
      { ...stored, mimeType },
      {
        reservation: upload.allowance.id,
      },
    )
    return { ...kept, network, userId: uploader.userId }
  } catch (error) {
    // A node that did not respond before would not respond here either.
    if (error instanceof ApiError) await release(services, network, stored.cid)
    throw error
  }
}
