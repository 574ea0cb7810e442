/** Resumable uploads as PostgreSQL has them: the row is the upload, the spooled bytes belong to it. */
import { createHash, timingSafeEqual } from 'node:crypto'
import type { Pool } from '../../db/pool.ts'
import { ApiError, forbidden, notFound } from '../../errors.ts'
import type { Network } from '../../storage/port.ts'
import type { FileRecord } from '../files/schema.ts'
import { findFile } from '../files/service.ts'
import type { UploadGrant } from './grant.ts'
import type { FileDetails, Uploader } from './keep.ts'
import { UPLOADER } from './signed-uploader.ts'

/** What becomes of the bytes. */
export interface UploadDetails extends FileDetails {
  /** The media type that the client says it is; empty where it says none. */
  type: string
  car: boolean
  cidVersion: 0 | 1
  /** As in `UploadGrant`; null for no limit of the URL's own. */
  maxFileBytes: number | null
  /** As in `UploadGrant`; null for every type. */
  allowedMimeTypes: string[] | null
}

/** Who begins an upload, by which key, and what it may be. */
export interface UploadCaller {
  keyId: string
  grant: UploadGrant
}

/** How an upload ended: as content of a file, or with an answer that a repeat gets again. */
export type Outcome = { cid: string; fileId: string } | { refusal: ApiError }

export interface Upload {
  id: string
  workspaceId: string
  /** Who uploads, with the plan of now; null when whose key it was may upload no more. */
  uploader: Uploader | null
  length: number
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
  /** What the plan stores; null for no limit. */
  storageBytes: number | null
}

const COLUMNS = `id, workspace_id, token_hash, length::float8 AS length, metadata, details, file_id, cid, refusal,
  expires_at, ${UPLOADER('upload')} AS uploader`

/**
 * The bytes of unfinished uploads are on the disk, and in no sum of files. A workspace may announce this many
 * times what its plan stores: so an upload whose client died, and that nobody ended, locks nobody out.
 */
const UNFINISHED = 4

/** @throws ApiError 403 when the workspace has announced too much that it did not finish. */
export async function insertUpload(pool: Pool, upload: NewUpload): Promise<void> {
  const limit = upload.storageBytes === null ? null : upload.storageBytes * UNFINISHED
  const { rowCount } = await pool.query(
    `INSERT INTO upload (id, workspace_id, key_id, token_hash, length, metadata, details, expires_at)
     SELECT $1, $2::uuid, $3, $4, $5::bigint, $6, $7, now() + $8 * interval '1 ms'
     WHERE $9::bigint IS NULL OR $5 + (
       SELECT coalesce(sum(length), 0) FROM upload
       WHERE workspace_id = $2 AND file_id IS NULL AND refusal IS NULL AND expires_at > now()) <= $9`,
    [
      upload.id,
      upload.workspaceId,
      upload.keyId,
      hash(upload.token),
      upload.length,
      upload.metadata,
      JSON.stringify(upload.details),
      upload.expiryMs,
      limit,
    ],
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
export async function findUpload(pool: Pool, id: string): Promise<Upload | undefined> {
  return (await readUpload(pool, id))?.upload
}

/**
 * The upload at an address.
 * @throws ApiError 404 for an id that is unknown or has another token, 410 for one that has expired, 403 when
 *   its key or its user may upload no more.
 */
export async function openUpload(pool: Pool, id: string, token: string): Promise<Upload> {
  const found = await readUpload(pool, id)
  if (!found || !timingSafeEqual(found.tokenHash, hash(token))) throw notFound('There is no such upload')
  const { upload } = found
  if (upload.expiresAt.getTime() <= Date.now()) {
    throw new ApiError(410, 'expired', 'The upload was not finished in time')
  }
  if (!upload.outcome && !upload.uploader) throw mayNotUpload()
  return upload
}

/** The answer to whoever holds an address that a key gave out which may upload no more. */
export const mayNotUpload = (): ApiError => forbidden('The key of this upload is revoked, or may not upload')

/** Ends an upload. It may have been ended before, with the same outcome. */
export async function endUpload(pool: Pool, id: string, outcome: Outcome): Promise<void> {
  if ('cid' in outcome) {
    await pool.query('UPDATE upload SET file_id = $2, cid = $3 WHERE id = $1', [
      id,
      outcome.fileId,
      outcome.cid,
    ])
  } else {
    const { status, code, message } = outcome.refusal
    await pool.query('UPDATE upload SET refusal = $2 WHERE id = $1', [id, { status, code, message }])
  }
}

export async function deleteUpload(pool: Pool, id: string): Promise<void> {
  await pool.query('DELETE FROM upload WHERE id = $1', [id])
}

/**
 * The older file that has an upload's content, where there is one: a client that takes the upload's id for the
 * file's finds it by that, until the upload expires.
 */
export async function findUploadedFile(
  pool: Pool,
  workspaceId: string,
  network: Network,
  uploadId: string,
): Promise<FileRecord | undefined> {
  const { rows } = await pool.query(
    'SELECT file_id FROM upload WHERE id = $1 AND workspace_id = $2 AND file_id <> id',
    [uploadId, workspaceId],
  )
  return rows[0] && findFile(pool, workspaceId, network, rows[0].file_id)
}

async function readUpload(
  pool: Pool,
  id: string,
): Promise<{ upload: Upload; tokenHash: Uint8Array } | undefined> {
  const { rows } = await pool.query({
    name: 'upload-find',
    text: `SELECT ${COLUMNS} FROM upload WHERE id = $1`,
    values: [id],
  })
  const row = rows[0]
  if (!row) return undefined
  const { details } = row
  return {
    tokenHash: row.token_hash,
    upload: {
      id: row.id,
      workspaceId: row.workspace_id,
      uploader: row.uploader,
      length: row.length,
      metadata: row.metadata,
      details: { ...details, expiresAt: details.expiresAt && new Date(details.expiresAt) },
      outcome: readOutcome(row),
      expiresAt: row.expires_at,
    },
  }
}

function readOutcome(row: {
  cid: string | null
  file_id: string
  refusal: { status: number; code: string; message: string } | null
}): Outcome | null {
  if (row.cid !== null) return { cid: row.cid, fileId: row.file_id }
  if (row.refusal === null) return null
  return { refusal: new ApiError(row.refusal.status, row.refusal.code, row.refusal.message) }
}

/** Tokens are random and long, so a plain hash is enough to store them. */
const hash = (token: string): Uint8Array => createHash('sha256').update(token).digest()
