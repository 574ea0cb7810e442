/** Resumable uploads in PostgreSQL: the row is the upload, and its bytes belong to it. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Pool } from '../../db/pool.ts'
import type { PrismaClient } from '../../db/prisma.ts'
import {
  findUpload,
  insertUpload,
  removeSignedUploads,
  removeUploads,
  type Uploader,
} from '../../db/statements/uploads.ts'
import { ApiError, forbidden, notFound } from '../../errors.ts'
import type { UploadGrant } from './grant.ts'
import type { FileDetails } from './keep.ts'
import type { UploadBytes } from './tus-bytes.ts'

/** The file that the bytes will become. */
export interface UploadDetails extends FileDetails {
  /** The media type declared by the client; empty if it declared none. */
  type: string
  car: boolean
  /** The bytes are a CAR of a folder that the client created; a CAR of anything else is rejected. */
  folder: boolean
  cidVersion: 0 | 1
  /** Limit from `UploadGrant`; null if the URL sets none. */
  maxFileBytes: number | null
  /** Types from `UploadGrant`; null for every type. */
  allowedMimeTypes: string[] | null
}

/** A caller that begins an upload: the key, and the terms of the upload. */
export interface UploadCaller {
  keyId: string
  grant: UploadGrant
}

/** How an upload ended: as content of a file, or with an error that repeated requests get again. */
export type Outcome = { cid: string; fileId: string } | { refusal: ApiError }

export interface Upload {
  id: string
  workspaceId: string
  /** The key that began it. */
  keyId: string
  /** The owner of that key, with the current plan; null if the owner may no longer upload. */
  uploader: Uploader | null
  length: number
  /** Bytes that count against the plan; see `tus-write.ts`. */
  counted: number
  /** The Upload-Metadata header. */
  metadata: string
  details: UploadDetails
  outcome: Outcome | null
  expiresAt: Date
}

export interface NewUpload {
  id: string
  workspaceId: string
  keyId: string
  token: string
  length: number
  metadata: string
  details: UploadDetails
  expiryMs: number
  /** The plan's storage limit in bytes; null for no limit. */
  storageBytes: number | null
}

/**
 * The bytes of unfinished uploads are not in any sum of files. A workspace may announce this multiple of its plan's
 * storage, so an upload whose client died without ending it blocks nobody.
 */
const UNFINISHED = 4

/** @throws ApiError 403 if the workspace has announced too much that it did not finish. */
export async function beginUpload(pool: Pool, upload: NewUpload): Promise<void> {
  const limit = upload.storageBytes === null ? null : upload.storageBytes * UNFINISHED
  const { rowCount } = await insertUpload.run(
    pool,
    upload.id,
    upload.workspaceId,
    upload.keyId,
    hash(upload.token),
    upload.length,
    upload.metadata,
    JSON.stringify(upload.details),
    upload.expiryMs,
    limit,
  )
  if (rowCount === 0) {
    throw new ApiError(
      403,
      'over_free_limit',
      `Upload-Length: unfinished uploads may have ${limit} bytes in all; end one, or wait until it expires`,
    )
  }
}

/** Finds an upload by its id; undefined if it does not exist. */
export async function readUpload(pool: Pool, id: string): Promise<Upload | undefined> {
  const row = await findUpload.first(pool, id)
  return row && toUpload(row)
}

/**
 * Finds the upload of a URL.
 * @throws ApiError 404 if the id is unknown or has another token, 410 if the upload has expired, 403 if its key or its
 *   user may no longer upload.
 */
export async function openUpload(pool: Pool, id: string, token: string): Promise<Upload> {
  const row = await findUpload.first(pool, id)
  if (!row || !timingSafeEqual(row.tokenHash, hash(token))) throw notFound('There is no such upload')
  const upload = toUpload(row)
  if (upload.expiresAt.getTime() <= Date.now()) {
    throw new ApiError(410, 'expired', 'The upload was not finished in time')
  }
  if (!upload.outcome && !upload.uploader) throw mayNotUpload()
  return upload
}

/** The error for an upload whose key is revoked, or may no longer upload. */
export const mayNotUpload = (): ApiError => forbidden('The key of this upload is revoked, or may not upload')

/** Ends an upload. It may already have ended with the same outcome. */
export async function endUpload(prisma: PrismaClient, id: string, outcome: Outcome): Promise<void> {
  if ('cid' in outcome) {
    await prisma.upload.updateMany({ where: { id }, data: outcome })
  } else {
    const { status, code, message } = outcome.refusal
    await prisma.upload.updateMany({ where: { id }, data: { refusal: { status, code, message } } })
  }
}

/**
 * The id of the older file with an upload's content, if there is one. A client that uses the upload's id as the file's
 * finds the file through it, until the upload expires.
 */
export async function findUploadedFile(
  prisma: PrismaClient,
  workspaceId: string,
  id: string,
): Promise<string | undefined> {
  const where = { id, workspaceId, fileId: { not: id } }
  const found = await prisma.upload.findFirst({ where, select: { fileId: true } })
  return found?.fileId ?? undefined
}

type UploadRow = NonNullable<Awaited<ReturnType<typeof findUpload.first>>>

function toUpload({ tokenHash: _, cid, fileId, refusal, ...row }: UploadRow): Upload {
  // In JSON, a time is text.
  const details = row.details as Omit<UploadDetails, 'expiresAt'> & { expiresAt: string | null }
  return {
    ...row,
    details: { ...details, expiresAt: details.expiresAt === null ? null : new Date(details.expiresAt) },
    outcome: toOutcome({ cid, fileId, refusal }),
  }
}

function toOutcome({ cid, fileId, refusal }: Pick<UploadRow, 'cid' | 'fileId' | 'refusal'>): Outcome | null {
  if (cid !== null && fileId !== null) return { cid, fileId }
  if (refusal === null) return null
  return { refusal: new ApiError(refusal.status, refusal.code, refusal.message) }
}

/** Tokens are random and long, so a plain hash is enough to store them. */
const hash = (token: string): Uint8Array => createHash('sha256').update(token).digest()

const BATCH = 500

/**
 * Removes expired uploads and signed URLs, and bytes that belong to no unfinished upload, as when a process died between
 * a row and its bytes. Any number of processes may run it at once.
 */
export async function removeAbandonedUploads(
  { pool, prisma }: { pool: Pool; prisma: PrismaClient },
  bytes: UploadBytes,
  signal: AbortSignal,
): Promise<void> {
  for (const remove of [removeSignedUploads, removeUploads]) {
    do signal.throwIfAborted()
    while ((await remove.run(pool, BATCH)).rowCount === BATCH)
  }
  // Rows are written before their bytes, so listed bytes without a row have lost their row for good.
  for await (const ids of bytes.list())
    for (let i = 0; i < ids.length; i += BATCH) {
      signal.throwIfAborted()
      const batch = ids.slice(i, i + BATCH)
      const rows = await prisma.$queryRaw<{ id: string }[]>`
        SELECT id FROM upload WHERE id = ANY(${batch}::uuid[]) AND cid IS NULL AND refusal IS NULL`
      const unfinished = new Set(rows.map(({ id }) => id))
      for (const id of batch) if (!unfinished.has(id)) await bytes.remove(id)
    }
}
