/**
 * Resumable uploads (tus 1.0.0). The bytes of each upload are in `UploadBytes`; everything else is in the row
 * (`tus-rows.ts`). Nothing is only in memory, so any web process may handle the next request, and a process that dies
 * loses nothing that was acknowledged.
 */

import { randomBytes } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import type { Request, Response } from 'express'
import { uuidv7 } from 'uuidv7'
import { readUsed } from '../../db/statements/uploads.ts'
import { ApiError, notFound } from '../../errors.ts'
import { beginEntry, noteCaller } from '../../http/audit.ts'
import { transferOf } from '../../http/request-transfer.ts'
import { StorageError } from '../../storage/port.ts'
import { requireGroup } from '../groups.ts'
import { groupNotFound } from '../pins/pin-inserts.ts'
import { Allowance, overPlanStorage } from './allowance.ts'
import type { UploadServices } from './grant.ts'
import { publishQuotaReached } from './reservations.ts'
import { apiBase } from './signed-uploads.ts'
import { bytesLost, type UploadBytes } from './tus-bytes.ts'
import {
  checkOffered,
  checkPieceType,
  drain,
  hasPiece,
  readLength,
  readNumber,
  setFeatures,
  setHeaders,
  speaksTus,
} from './tus-http.ts'
import { importUpload } from './tus-import.ts'
import { holdUpload, uploadBusy, WAIT_MS } from './tus-lease.ts'
import { CID_VERSION_OPTION, readDetails } from './tus-metadata.ts'
import {
  beginUpload,
  endUpload,
  type Outcome,
  openUpload,
  readUpload,
  type Upload,
  type UploadCaller,
} from './tus-rows.ts'
import { type GrowingUpload, stored, writePiece } from './tus-write.ts'

export interface ResumableUploadOptions extends UploadServices {
  bytes: UploadBytes
  expiryMs: number
}

/** The id of an upload in its URL. */
interface Address {
  id: string
  token: string
}

/** True if a creating request begins a resumable upload. */
export const isResumable = ({ headers }: Request): boolean =>
  headers['upload-length'] !== undefined || headers['upload-defer-length'] !== undefined

export class ResumableUploads {
  readonly #options: ResumableUploadOptions
  readonly #closing = new AbortController()
  /** Imports in progress in this process. */
  readonly #imports = new Map<string, Promise<Outcome>>()

  constructor(options: ResumableUploadOptions) {
    this.#options = options
  }

  /**
   * Begins an upload: 201, with its URL in Location. A failed creation leaves nothing behind, because nobody knows the
   * URL.
   * @param gone fires when the client has disconnected.
   * @throws ApiError 400 naming the field, 403 and 413 above a limit, 404 if the group does not exist.
   */
  async create(
    req: Request,
    res: Response,
    { keyId, grant }: UploadCaller,
    gone: AbortSignal,
  ): Promise<void> {
    setHeaders(res)
    checkOffered(req)
    const { config, pool, prisma, expiryMs } = this.#options
    const length = readLength(req)
    const metadata = String(req.headers['upload-metadata'] ?? '')
    const details = readDetails(metadata, req.query[CID_VERSION_OPTION], grant)
    const { workspaceId, plan } = grant.uploader
    new Allowance(this.#options, grant, length).checkSize(length)
    const { storageBytes } = plan
    // Bytes count once they arrive, so an upload whose client died without ending it blocks nobody.
    if (storageBytes !== null && (await readUsed.one(pool, workspaceId)).used + length > storageBytes) {
      await publishQuotaReached(pool, workspaceId)
      throw overPlanStorage(storageBytes)
    }
    const { network, groupId } = details
    if (groupId !== null) await requireGroup(prisma, { workspaceId, network }, groupId, groupNotFound)
    const id = uuidv7()
    const token = randomBytes(24).toString('base64url')
    await beginUpload(pool, {
      id,
      workspaceId,
      keyId,
      token,
      length,
      metadata,
      details,
      expiryMs,
      storageBytes,
    })
    const upload = { id, length, uploader: grant.uploader, counted: 0 }
    const received = await this.#receiveFirst(req, upload, gone).catch(async (error) => {
      await this.#remove(id)
      throw error
    })
    if (gone.aborted && received < length) return this.#remove(id)
    const outcome = received === length ? await this.#finishCreation(id) : null
    if (outcome) setOutcome(res, outcome)
    else res.set('Upload-Expires', new Date(Date.now() + expiryMs).toUTCString())
    if (hasPiece(req)) res.set('Upload-Offset', `${received}`)
    res
      .location(`${apiBase(req, config.PUBLIC_URL)}/v3/files/tus/${id}/${token}`)
      .status(201)
      .end()
  }

  /**
   * Finishes an upload whose bytes arrived with its creation. If that fails, nothing stays, because nobody knows its
   * URL.
   */
  async #finishCreation(id: string): Promise<Outcome> {
    try {
      return await this.#finish(id)
    } catch (error) {
      // An import that takes longer than the request continues.
      if (!this.#imports.has(id)) await this.#remove(id)
      throw error
    }
  }

  /**
   * Receives bytes: 204 with the new offset, and with `upload-cid` after the last byte.
   * @throws ApiError 409 for a wrong offset, 413 beyond the upload's length, 415 for bytes of another type, 423 while
   *   it is busy, 429 while too many others run.
   */
  async append(req: Request, res: Response, { id, token }: Address, gone: AbortSignal): Promise<void> {
    setHeaders(res)
    checkOffered(req)
    const upload = await openUpload(this.#options.pool, id, token)
    checkPieceType(req)
    await beginEntryOf(res, upload)
    const receive = async () => {
      let { outcome } = upload
      const received = outcome ? upload.length : await this.#receivePiece(req, upload, gone)
      const isWhole = received === upload.length
      // Everything had arrived before: the client missed the response, and sends the end of its upload again.
      if (isWhole && !req.complete) await drain(req)
      if (isWhole) outcome ??= await this.#finish(id)
      if (outcome) setOutcome(res, outcome)
      else res.set('Upload-Expires', upload.expiresAt.toUTCString())
      res.set('Upload-Offset', `${received}`).status(204).end()
    }
    const transfer = transferOf(req, res, (error) => res.locals.gone.abort(error))
    await this.#options.bounds.run('resumableUploads', upload, receive, transfer)
  }

  /** Reports how many bytes have arrived. If all have, it ensures that they become a file. */
  async describe(req: Request, res: Response, { id, token }: Address, gone: AbortSignal): Promise<void> {
    setHeaders(res)
    checkOffered(req)
    const upload = await openUpload(this.#options.pool, id, token)
    const { length, metadata, expiresAt } = upload
    let { outcome } = upload
    const received = await this.#options.bounds.run('resumableUploads', upload, async () => {
      const received = outcome ? length : await this.#hold(id, gone, () => this.#count(upload))
      if (received === length) {
        outcome ??= await this.#finish(id).catch((error) => {
          // Some clients begin a new upload after a 5xx.
          throw error instanceof StorageError ? uploadBusy() : error
        })
      }
      return received
    })
    if (outcome) setOutcome(res, outcome)
    else res.set('Upload-Expires', expiresAt.toUTCString())
    if (metadata !== '') res.set('Upload-Metadata', metadata)
    res.set({ 'Upload-Offset': `${received}`, 'Upload-Length': `${length}`, 'Cache-Control': 'no-store' })
    res.status(200).end()
  }

  /** Cancels an upload and deletes its bytes. @throws ApiError 409 if it is already a file. */
  async terminate(req: Request, res: Response, { id, token }: Address, gone: AbortSignal): Promise<void> {
    setHeaders(res)
    checkOffered(req)
    const { pool } = this.#options
    const upload = await openUpload(pool, id, token)
    await beginEntryOf(res, upload)
    await this.#hold(id, gone, async () => {
      const { outcome } = (await readUpload(pool, id)) ?? upload
      if (outcome && 'cid' in outcome) throw new ApiError(409, 'finished', 'The upload is a file already')
      await this.#remove(id)
    })
    res.status(204).end()
  }

  /** Handles OPTIONS: the supported parts of the protocol. */
  options(res: Response): void {
    setFeatures(res)
    res.status(204).end()
  }

  /** Ends imports in progress; the next request for their uploads repeats them. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#imports.values())
  }

  async #remove(id: string): Promise<void> {
    await this.#options.prisma.upload.deleteMany({ where: { id } })
    await this.#removeBytes(id)
  }

  /** If it fails, or this process dies before it, the loop over abandoned uploads removes them. */
  async #removeBytes(id: string): Promise<void> {
    const { bytes, log } = this.#options
    await bytes.remove(id).catch((err) => log.warn({ err, upload: id }, 'bytes not removed yet'))
  }

  /** See {@link holdUpload}. */
  #hold<T>(
    id: string,
    gone: AbortSignal | undefined,
    work: (lease: string, wanted: AbortSignal) => Promise<T>,
  ): Promise<T> {
    const signals = [this.#closing.signal, ...(gone ? [gone] : [])]
    return holdUpload(this.#options.pool, id, AbortSignal.any(signals), work)
  }

  /** The number of bytes that have arrived. @throws ApiError 410 if they are lost. */
  async #count({ id, outcome, length }: Upload): Promise<number> {
    if (outcome) return length
    const received = await this.#options.bytes.count(id)
    if (received !== null) return received
    const now = await readUpload(this.#options.pool, id)
    if (now?.outcome) return length
    throw bytesLost()
  }

  /** Takes the bytes in the creation request. Resolves to their number. */
  async #receiveFirst(req: Request, upload: GrowingUpload, gone: AbortSignal): Promise<number> {
    const { disk, bytes } = this.#options
    await disk.admit()
    await stored(disk, bytes.create(upload.id))
    if (!hasPiece(req)) return 0
    return this.#hold(upload.id, gone, (lease, wanted) =>
      writePiece(this.#options, req, { ...upload, lease }, 0, [gone, wanted]),
    )
  }

  /**
   * Adds a piece. Resolves to the number of received bytes; if all have arrived before, the piece is not read. A client
   * that does not use the tus protocol resends a partly received piece from its beginning, and could never continue.
   * For such a client, the received part is dropped.
   * @throws ApiError 409 for a wrong offset, 423 if another request delivered the whole piece while this one waited for
   *   it, and the errors of `writePiece`.
   */
  async #receivePiece(req: Request, upload: Upload, gone: AbortSignal): Promise<number> {
    const offset = readNumber(req, 'upload-offset')
    const before = await this.#count(upload)
    return this.#hold(upload.id, gone, async (lease, wanted) => {
      const received = await this.#count(upload)
      if (received === upload.length) return received
      if (offset < received && !speaksTus(req)) {
        const isSentByOther = received > before && received === offset + Number(req.headers['content-length'])
        if (isSentByOther) throw uploadBusy()
        await this.#options.bytes.cut({ id: upload.id, lease }, offset)
      } else if (offset !== received) throw new ApiError(409, 'offset', 'Upload-Offset conflict')
      return writePiece(this.#options, req, { ...upload, lease }, offset, [gone, wanted])
    })
  }

  /**
   * Turns an upload with all of its bytes into a file. The import continues after the client has disconnected.
   * @throws ApiError 423 if it takes longer than a request may, StorageError if the store is unavailable.
   */
  async #finish(id: string): Promise<Outcome> {
    let running = this.#imports.get(id)
    if (!running) {
      running = this.#import(id).finally(() => this.#imports.delete(id))
      this.#imports.set(id, running)
      running.catch((err) => this.#options.log.warn({ err, upload: id }, 'upload not imported yet'))
    }
    const waited = new AbortController()
    const tooLong = delay(WAIT_MS, undefined, { signal: waited.signal }).then(() => {
      throw uploadBusy()
    })
    tooLong.catch(() => {})
    return Promise.race([running, tooLong]).finally(() => waited.abort())
  }

  #import(id: string): Promise<Outcome> {
    const { pool, prisma } = this.#options
    return this.#hold(id, undefined, async () => {
      // Another process may have ended the upload while this one waited for it.
      const upload = await readUpload(pool, id)
      if (!upload) throw notFound('There is no such upload')
      if (upload.outcome) return upload.outcome
      if ((await this.#count(upload)) !== upload.length) throw uploadBusy()
      const outcome = await importUpload(this.#options, upload, this.#closing.signal)
      await endUpload(prisma, id, outcome)
      await this.#removeBytes(id)
      return outcome
    })
  }
}

/** @throws the ApiError with which the upload was rejected. */
function setOutcome(res: Response, outcome: Outcome): void {
  if ('refusal' in outcome) throw outcome.refusal
  res.set('Upload-Cid', outcome.cid)
}

/** Writes the audit entry before anything changes: anyone with the URL acts for the user who began the upload. */
function beginEntryOf(res: Response, { workspaceId, keyId, uploader }: Upload): Promise<void> {
  noteCaller(res, { workspaceId, keyId, userId: uploader?.userId ?? null })
  return beginEntry(res)
}
