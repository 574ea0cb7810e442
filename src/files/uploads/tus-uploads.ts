/**
 * Resumable uploads (tus 1.0.0, compatibility 1.3). `@tus/server` speaks the protocol and `FileStore` writes
 * the bytes, each upload into one file; the rest is in the row (`tus-rows.ts`). Nothing is in memory only, so
 * any web process may take the next request, and a process that dies loses nothing that was acknowledged.
 */
import { randomBytes } from 'node:crypto'
import { mkdirSync } from 'node:fs'
import { rm, stat, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { FileStore } from '@tus/file-store'
import { Server, type Upload as TusUpload } from '@tus/server'
import type { Request, Response } from 'express'
import { uuidv7 } from 'uuidv7'
import type { Pool } from '../../db/pool.ts'
import { ApiError, badRequest, notFound } from '../../errors.ts'
import type { Logger } from '../../log.ts'
import type { Storages } from '../../storage/open.ts'
import { StorageError } from '../../storage/port.ts'
import { findGroup } from '../groups/service.ts'
import { openAllowance } from './allowance.ts'
import { apiBase } from './signed-base.ts'
import { boundIdle, drain, EXPOSED, setHeaders, speaksTus, takeAnswer, toWebRequest } from './tus-http.ts'
import { importUpload } from './tus-import.ts'
import { UploadLocker, uploadBusy, WAIT_MS } from './tus-lease.ts'
import { CID_VERSION_OPTION, readDetails } from './tus-metadata.ts'
import {
  deleteUpload,
  endUpload,
  findUpload,
  insertUpload,
  type Outcome,
  openUpload,
  type Upload,
  type UploadCaller,
} from './tus-rows.ts'

export interface ResumableUploadOptions {
  pool: Pool
  keepPool: Pool
  storages: Storages
  /** Where the bytes are, in files of the uploads' ids; the same folder for every web process. */
  dir: string
  expiryMs: number
  /** See `apiBase`. */
  publicUrl: string | undefined
  log: Logger
}

/** Whether a request that creates something begins a resumable upload. */
export const isResumable = ({ headers }: Request): boolean =>
  headers['upload-length'] !== undefined || headers['upload-defer-length'] !== undefined

/** Time for a request that is to make way, from when it is told until its connection is cut. */
const DRAIN_MS = 1000

export class ResumableUploads {
  readonly #options: ResumableUploadOptions
  readonly #locker: UploadLocker
  readonly #server: Server
  readonly #closing = new AbortController()
  /** Imports under way in this process. */
  readonly #imports = new Map<string, Promise<Outcome>>()

  constructor(options: ResumableUploadOptions) {
    const { pool, dir, expiryMs } = options
    mkdirSync(dir, { recursive: true, mode: 0o700 })
    this.#options = options
    this.#locker = new UploadLocker(pool)
    const datastore = new FileStore({
      directory: dir,
      expirationPeriodInMilliseconds: expiryMs,
      configstore: configOf(pool, expiryMs),
    })
    datastore.extensions = ['creation', 'creation-with-upload', 'termination', 'expiration']
    this.#server = new Server({
      path: '/',
      datastore,
      locker: this.#locker,
      lockDrainTimeout: DRAIN_MS,
      namingFunction: ({ url }) => new URL(url).pathname.slice(1),
      exposedHeaders: [EXPOSED.join(', ')],
    })
  }

  /**
   * Begins an upload: 201, with its address in Location.
   * @throws ApiError 400 naming the field, 403 and 413 above a limit, 404 for a group that is not there.
   */
  async create(req: Request, res: Response, { keyId, grant }: UploadCaller): Promise<void> {
    setHeaders(res)
    const { pool, expiryMs, publicUrl } = this.#options
    const length = readLength(req)
    const metadata = String(req.headers['upload-metadata'] ?? '')
    const details = readDetails(metadata, req.query[CID_VERSION_OPTION], grant)
    const allow = await openAllowance(pool, grant)
    allow(length)
    const { workspaceId, plan } = grant.uploader
    if (details.groupId !== null && !(await findGroup(pool, { workspaceId, ...details }, details.groupId))) {
      throw notFound('group_id: there is no such group')
    }
    const id = uuidv7()
    const token = randomBytes(24).toString('base64url')
    const { storageBytes } = plan
    await insertUpload(pool, {
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
    const received = await this.#speak(req, res, id)
    const outcome = received === length ? await this.#finish(id) : null
    if (outcome) setOutcome(res, outcome)
    res
      .location(`${apiBase(req, publicUrl)}/v3/files/tus/${id}/${token}`)
      .status(201)
      .end()
  }

  /**
   * Takes bytes: 204 with the new offset, and with `upload-cid` after the last one.
   * @throws ApiError 409 for an offset that is not the upload's, 413 beyond its length, 423 while it is busy.
   */
  async append(req: Request, res: Response, id: string, token: string): Promise<void> {
    setHeaders(res)
    const upload = await openUpload(this.#options.pool, id, token)
    let outcome = upload.outcome
    let received = outcome ? upload.length : await this.#makeReady(upload, req)
    // All is here already: the client missed the answer, and sends the end of its upload once more.
    if (received === upload.length) await drain(req)
    else received = await this.#speak(req, res, id)
    if (received === upload.length) outcome ??= await this.#finish(id)
    if (outcome) setOutcome(res, outcome)
    res.set('Upload-Offset', `${received}`).status(204).end()
  }

  /** Says how many bytes have arrived. Where all have, it sees to it that they are a file. */
  async describe(res: Response, id: string, token: string): Promise<void> {
    setHeaders(res)
    const upload = await openUpload(this.#options.pool, id, token)
    const { length, metadata, expiresAt } = upload
    let { outcome } = upload
    const received = outcome ? length : await this.#hold(id, () => this.#count(upload))
    if (received === length) {
      outcome ??= await this.#finish(id).catch((error) => {
        // To a 5xx some clients begin a new upload.
        throw error instanceof StorageError ? uploadBusy() : error
      })
    }
    if (outcome) setOutcome(res, outcome)
    else res.set('Upload-Expires', expiresAt.toUTCString())
    if (metadata !== '') res.set('Upload-Metadata', metadata)
    res.set({ 'Upload-Offset': `${received}`, 'Upload-Length': `${length}`, 'Cache-Control': 'no-store' })
    res.status(200).end()
  }

  /** Gives an upload up, with its bytes. @throws ApiError 409 for one that is a file already. */
  async terminate(res: Response, id: string, token: string): Promise<void> {
    setHeaders(res)
    const { pool } = this.#options
    const upload = await openUpload(pool, id, token)
    await this.#hold(id, async () => {
      const { outcome } = (await findUpload(pool, id)) ?? upload
      if (outcome && 'cid' in outcome) throw new ApiError(409, 'finished', 'The upload is a file already')
      await rm(this.#path(id), { force: true })
      await deleteUpload(pool, id)
    })
    res.status(204).end()
  }

  /** Says what of the protocol there is, to clients that ask and to browsers. */
  async options(req: Request, res: Response): Promise<void> {
    await takeAnswer(await this.#server.handleWeb(toWebRequest(req, ADDRESS)), res)
    // The npm SDK names itself in one more header.
    res.append('Access-Control-Allow-Headers', 'Source').status(204).end()
  }

  /** Ends imports under way; the next request for their uploads repeats them. */
  async close(): Promise<void> {
    this.#closing.abort()
    await Promise.allSettled(this.#imports.values())
  }

  #path(id: string): string {
    return join(this.#options.dir, id)
  }

  /** Runs `work` while nobody writes; a request that does makes way. */
  #hold<T>(id: string, work: () => Promise<T>): Promise<T> {
    return this.#locker.hold(id, this.#closing.signal, work)
  }

  /** Bytes that have arrived. @throws ApiError 410 when they are lost. */
  async #count({ id, outcome, length }: Upload): Promise<number> {
    if (outcome) return length
    try {
      return (await stat(this.#path(id))).size
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
      const now = await findUpload(this.#options.pool, id)
      if (now?.outcome) return length
      throw new ApiError(410, 'expired', 'The bytes of the upload are not there any more')
    }
  }

  /**
   * Counts the bytes that are here before more are taken. A client that does not speak tus repeats a piece of
   * which a part had arrived from the piece's beginning, and could never go on: for it that part is dropped.
   */
  #makeReady(upload: Upload, req: Request): Promise<number> {
    const offset = readNumber(req, 'upload-offset')
    return this.#hold(upload.id, async () => {
      const received = await this.#count(upload)
      if (speaksTus(req) || received === upload.length || offset >= received) return received
      await truncate(this.#path(upload.id), offset)
      return offset
    })
  }

  /** Lets the protocol answer. Resolves to how many bytes of the upload have arrived. */
  async #speak(req: Request, res: Response, id: string): Promise<number> {
    const request = toWebRequest(req, `${ADDRESS}${id}`)
    const response = await boundIdle(req, () => this.#server.handleWeb(request))
    await takeAnswer(response, res)
    return Number(response.headers.get('upload-offset') ?? 0)
  }

  /**
   * Makes a file of an upload all of whose bytes are here. The import goes on when the client has gone.
   * @throws ApiError 423 when it takes longer than a request may, StorageError when the store is away.
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
    const { pool } = this.#options
    return this.#hold(id, async () => {
      // Another process may have ended it while this one waited for it.
      const upload = await findUpload(pool, id)
      if (!upload) throw notFound('There is no such upload')
      if (upload.outcome) return upload.outcome
      if ((await this.#count(upload)) !== upload.length) throw uploadBusy()
      const outcome = await importUpload(this.#options, upload, this.#path(id), this.#closing.signal)
      await endUpload(pool, id, outcome)
      await rm(this.#path(id), { force: true })
      return outcome
    })
  }
}

/** Of any host: the protocol only reads the id at the end. */
const ADDRESS = 'http://uploads/'

/** The row in the form that the protocol reads. It is written before the file, and removed after it. */
function configOf(pool: Pool, expiryMs: number) {
  return {
    async get(id: string) {
      const upload = await findUpload(pool, id)
      if (!upload) return undefined
      const created = new Date(upload.expiresAt.getTime() - expiryMs)
      return { id, size: upload.length, offset: 0, creation_date: created.toISOString() } as TusUpload
    },
    async set() {},
    delete: (id: string) => deleteUpload(pool, id),
  }
}

/** @throws the ApiError with which the upload was refused. */
function setOutcome(res: Response, outcome: Outcome): void {
  if ('refusal' in outcome) throw outcome.refusal
  res.set('Upload-Cid', outcome.cid)
}

function readLength(req: Request): number {
  if (req.headers['upload-defer-length'] !== undefined) {
    throw badRequest('Upload-Defer-Length: the length must be known at the start')
  }
  return readNumber(req, 'upload-length')
}

/** A header that is a number of bytes. @throws ApiError 400 for anything else. */
function readNumber(req: Request, header: 'upload-length' | 'upload-offset'): number {
  const text = String(req.headers[header] ?? '')
  if (/^\d{1,15}$/.test(text)) return Number(text)
  throw badRequest(
    `${header === 'upload-length' ? 'Upload-Length' : 'Upload-Offset'}: must be a number of bytes`,
  )
}
