/** Resumable uploads as PostgreSQL has them: the row is the upload, the spooled bytes belong to it. */
import { createHash, timingSafeEqual } from 'node:crypto'
import { readdir, rm } from 'node:fs/promises'
import { join } from 'node:path'
import type { Upload as TusUpload } from '@tus/server'
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
import { isUuid } from '../../lib/read.ts'
import type { UploadGrant } from './grant.ts'
import type { FileDetails } from './keep.ts'

/** The file that the bytes are to become. */
export interface UploadDetails extends FileDetails {
  /** The media type that the client says it is; empty where it says none. */
  type: string
  car: boolean
  /** The bytes are a CAR of a folder that the client has made; one of anything else is refused. */
  folder: boolean
  cidVersion: 0 | 1
  /** Bound of `UploadGrant`; null for no limit of the URL's own. */
  maxFileBytes: number | null
  /** Types of `UploadGrant`; null for every type. */
  allowedMimeTypes: string[] | null
}

/** A caller that begins an upload: the key, and what the upload may be. */
export interface UploadCaller {
  keyId: string
  grant: UploadGrant
}

/** How an upload ended: as content of a file, or with an answer that a repeat gets again. */
export type Outcome = { cid: string; fileId: string } | { refusal: ApiError }

export interface Upload {
  id: string
  workspaceId: string
  /** The key that began it. */
  keyId: string
  /** The owner of that key, with the plan as it is now; null when the owner may no longer upload. */
  uploader: Uploader | null
  length: number
  /** Bytes that count against the plan, see `tus-room.ts`. */
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
  /** Bytes that the plan stores; null for no limit. */
  storageBytes: number | null
}

/**
 * The bytes of unfinished uploads are on the disk, and in no sum of files. A workspace may announce this many
 * times what its plan stores: so an upload whose client died, and that nobody ended, locks nobody out.
 */
const UNFINISHED = 4

/** @throws ApiError 403 when the workspace has announced too much that it did not finish. */
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

/** An upload by its id; undefined when there is none. */
export async function readUpload(pool: Pool, id: string): Promise<Upload | undefined> {
  const row = await findUpload.first(pool, id)
  return row && toUpload(row)
}

/**
 * The upload at an address.
 * @throws ApiError 404 for an id that is unknown or has another token, 410 for one that has expired, 403 when
 *   its key or its user may upload no more.
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

/** The refusal of an upload whose key is revoked, or may no longer upload. */
export const mayNotUpload = (): ApiError => forbidden('The key of this upload is revoked, or may not upload')

/** Ends an upload. It may have been ended before, with the same outcome. */
export async function endUpload(prisma: PrismaClient, id: string, outcome: Outcome): Promise<void> {
  if ('cid' in outcome) {
    await prisma.upload.updateMany({ where: { id }, data: outcome })
  } else {
    const { status, code, message } = outcome.refusal
    await prisma.upload.updateMany({ where: { id }, data: { refusal: { status, code, message } } })
  }
}

export async function deleteUpload(prisma: PrismaClient, id: string): Promise<void> {
  await prisma.upload.deleteMany({ where: { id } })
}

/**
 * The id of the older file that has an upload's content, where there is one: a client that takes the upload's id for the
 * file's finds it by that, until the upload expires.
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
  // A time in JSON is text.
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
 * Removes uploads and signed URLs whose time is over, and files in `dir` that belong to no unfinished upload:
 * a process died between a row and its file. Any number of processes may do it at once.
 */
export async function removeAbandonedUploads(
  { pool, prisma }: { pool: Pool; prisma: PrismaClient },
  dir: string,
  signal: AbortSignal,
): Promise<void> {
  for (const remove of [removeSignedUploads, removeUploads]) {
    do signal.throwIfAborted()
    while ((await remove.run(pool, BATCH)).rowCount === BATCH)
  }
  // Rows are written before their files, so a listed file without a row has lost its row for good.
  const files = (await readdir(dir)).filter(isUuid)
  for (let i = 0; i < files.length; i += BATCH) {
    signal.throwIfAborted()
    const batch = files.slice(i, i + BATCH)
    const rows = await prisma.$queryRaw<{ id: string }[]>`
      SELECT id FROM upload WHERE id = ANY(${batch}::uuid[]) AND cid IS NULL AND refusal IS NULL`
    const unfinished = new Set(rows.map(({ id }) => id))
    for (const id of batch) if (!unfinished.has(id)) await rm(join(dir, id), { force: true })
  }
}

/** The row in the form that the protocol reads. It is written before the file. */
export function protocolRows(pool: Pool, prisma: PrismaClient, expiryMs: number) {
  return {
    async get(id: string) {
      const upload = await readUpload(pool, id)
      if (!upload) return undefined
      const created = new Date(upload.expiresAt.getTime() - expiryMs)
      return { id, size: upload.length, offset: 0, creation_date: created.toISOString() } as TusUpload
    },
    async set() {},
    delete: (id: string) => deleteUpload(prisma, id),
  }
}
