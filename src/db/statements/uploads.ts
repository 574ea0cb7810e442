/**
 * Uploads in progress. Each statement is hand-written for the reason in its comment, or because every request with
 * bytes needs it.
 */
import { PLAN, type Plan } from './plan.ts'
import { narrow, statement } from './statement.ts'

/** The owner of a key, or of the key that signed the URL. */
export interface Uploader {
  workspaceId: string
  userId: string
  plan: Plan
}

/**
 * The uploader of a row that a key issued (with a `key_id`), with the current plan. NULL if the key has ended, or if
 * its user has left or may only read.
 */
const uploaderOf = (table: string): string => `(
  SELECT json_build_object('workspaceId', k.workspace_id, 'userId', k.user_id, 'plan', ${PLAN})
  FROM api_key k
  JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id AND m.role <> 'viewer'
  JOIN workspace w ON w.id = k.workspace_id
  JOIN plan p ON p.name = w.plan
  WHERE k.id = ${table}.key_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))`
const uploader = narrow<Uploader | null>('json')

/** The terms of a signed URL, and the user who uploads through it. */
export const findSignedUpload = statement({
  name: 'upload-signed',
  parameters: ['uuid'],
  columns: { keyId: 'uuid', fixed: narrow<unknown>('jsonb'), uploader },
  text: `SELECT key_id AS "keyId", fixed, ${uploaderOf('signed_upload')} AS uploader FROM signed_upload WHERE id = $1`,
})

/**
 * Begins an upload that expires in `$8` ms, by the clock of the database. No row is written if the workspace's
 * unfinished uploads would have more than `$9` bytes in total.
 */
export const insertUpload = statement({
  name: 'upload-insert',
  parameters: [
    'uuid',
    'uuid',
    'uuid',
    narrow<Uint8Array>('bytea'),
    'int8',
    'text',
    narrow<string>('jsonb'),
    'float8',
    'int8?',
  ],
  columns: {},
  text: `INSERT INTO upload (id, workspace_id, key_id, token_hash, length, metadata, details, expires_at)
    SELECT $1, $2::uuid, $3, $4, $5::bigint, $6, $7, now() + $8 * interval '1 ms'
    WHERE $9::bigint IS NULL OR $5 + (
      SELECT coalesce(sum(length), 0) FROM upload
      WHERE workspace_id = $2 AND file_id IS NULL AND refusal IS NULL AND expires_at > now()) <= $9`,
})

/** An upload, its outcome, and its uploader. */
export const findUpload = statement({
  name: 'upload-find',
  parameters: ['uuid'],
  columns: {
    id: 'uuid',
    workspaceId: 'uuid',
    keyId: 'uuid',
    tokenHash: narrow<Uint8Array>('bytea'),
    length: 'float8',
    counted: 'float8',
    metadata: 'text',
    details: narrow<unknown>('jsonb'),
    fileId: 'uuid?',
    cid: 'text?',
    refusal: narrow<{ status: number; code: string; message: string } | null>('jsonb'),
    expiresAt: 'timestamptz',
    uploader,
  },
  text: `SELECT id, workspace_id AS "workspaceId", key_id AS "keyId", token_hash AS "tokenHash", length::float8 AS length,
      received::float8 AS counted, metadata, details, file_id AS "fileId", cid, refusal, expires_at AS "expiresAt",
      ${uploaderOf('upload')} AS uploader
    FROM upload WHERE id = $1`,
})

const removeExpired = (table: string, where: string) =>
  `DELETE FROM ${table} WHERE id IN (SELECT id FROM ${table} WHERE ${where} LIMIT $1)`

/** Removes up to `$1` expired uploads, except those that are being written or imported right now. */
export const removeUploads = statement({
  name: 'upload-expired',
  parameters: ['int8'],
  columns: {},
  text: removeExpired('upload', 'expires_at <= now() AND (lease_until IS NULL OR lease_until < now())'),
})

/**
 * Removes up to `$1` signed URLs that expired a day ago: an upload that began in time may continue after its URL has
 * expired.
 */
export const removeSignedUploads = statement({
  name: 'upload-signed-expired',
  parameters: ['int8'],
  columns: {},
  text: removeExpired('signed_upload', `expires_at <= now() - interval '1 day'`),
})

/** Raises the count of received bytes; it never decreases. */
export const countReceived = statement({
  name: 'upload-received',
  parameters: ['uuid', 'int8'],
  columns: {},
  text: 'UPDATE upload SET received = greatest(received, $2) WHERE id = $1',
})

/**
 * Claims an upload that no request holds, for a request (`$2`) and `$3` ms, by the clock of the database. Also true if
 * the upload no longer exists.
 */
export const claimUpload = statement({
  name: 'upload-lease',
  parameters: ['uuid', 'uuid', 'float8'],
  columns: { taken: 'bool' },
  text: `WITH taken AS (
      UPDATE upload SET lease_id = $2, lease_until = now() + $3 * interval '1 ms', lease_wanted = false
      WHERE id = $1 AND (lease_until IS NULL OR lease_until < now()) RETURNING id)
    SELECT EXISTS (SELECT FROM taken) OR NOT EXISTS (SELECT FROM upload WHERE id = $1) AS taken`,
})

/** Extends the lease by `$3` ms; no row if another request holds it by now. */
export const renewUpload = statement({
  name: 'upload-lease-renew',
  parameters: ['uuid', 'uuid', 'float8'],
  columns: { lease_wanted: 'bool' },
  text: `UPDATE upload SET lease_until = now() + $3 * interval '1 ms'
    WHERE id = $1 AND lease_id = $2 RETURNING lease_wanted`,
})

/** Asks the request that holds the upload to yield. */
export const askForUpload = statement({
  name: 'upload-lease-ask',
  parameters: ['uuid'],
  columns: {},
  text: 'UPDATE upload SET lease_wanted = true WHERE id = $1',
})

/** Releases the lease, if the request (`$2`) still holds it. */
export const releaseUploadLease = statement({
  name: 'upload-lease-end',
  parameters: ['uuid', 'uuid'],
  columns: {},
  text: 'UPDATE upload SET lease_id = NULL, lease_until = NULL WHERE id = $1 AND lease_id = $2',
})

/** The end of an upload's last part in S3; no row if there is none. */
export const endOfParts = statement({
  name: 'upload-part-end',
  parameters: ['uuid'],
  columns: { end: 'float8' },
  text: `SELECT (at + bytes)::float8 AS "end" FROM upload_part WHERE upload_id = $1 ORDER BY at DESC LIMIT 1`,
})

/** Up to `$3` parts of an upload in order, starting with byte `$2`. */
export const pageParts = statement({
  name: 'upload-part-page',
  parameters: ['uuid', 'int8', 'int8'],
  columns: { at: 'float8', bytes: 'int4', object: 'uuid' },
  text: `SELECT at::float8 AS at, bytes, object FROM upload_part WHERE upload_id = $1 AND at >= $2
    ORDER BY at LIMIT $3`,
})

/** Adds a part behind the others; no row if the request (`$2`) has lost its lease. */
export const addPart = statement({
  name: 'upload-part-add',
  parameters: ['uuid', 'uuid', 'int8', 'int4', 'uuid'],
  columns: {},
  text: `INSERT INTO upload_part (upload_id, at, bytes, object)
    SELECT id, $3, $4, $5 FROM upload WHERE id = $1 AND lease_id = $2 FOR NO KEY UPDATE`,
})

/** Drops the bytes after the first `$3`, if the request (`$2`) holds the lease. */
export const cutParts = statement({
  name: 'upload-part-cut',
  parameters: ['uuid', 'uuid', 'int8'],
  columns: {},
  text: `WITH held AS MATERIALIZED (SELECT id FROM upload WHERE id = $1 AND lease_id = $2 FOR NO KEY UPDATE),
      dropped AS (DELETE FROM upload_part p USING held WHERE p.upload_id = held.id AND p.at >= $3)
    UPDATE upload_part p SET bytes = $3 - p.at FROM held
    WHERE p.upload_id = held.id AND p.at < $3 AND p.at + p.bytes > $3`,
})

/** Drops all parts of an upload. */
export const dropParts = statement({
  name: 'upload-part-drop',
  parameters: ['uuid'],
  columns: {},
  text: 'DELETE FROM upload_part WHERE upload_id = $1',
})

/**
 * Reserves at least `$3` and up to `$4` bytes for `$6` ms; null if `$3` exceeds what is left of `$5` (migration 0013).
 */
export const reserveUpload = statement({
  name: 'upload-reserve',
  parameters: ['uuid', 'uuid', 'int8', 'int8', 'int8', 'float8'],
  columns: { granted: 'float8?' },
  text: `SELECT reserve_upload($1, $2, $3, $4, $5, $6 * interval '1 ms')::float8 AS granted`,
})

/** Extends reservations by `$2` ms, by the clock of the database. */
export const renewReservations = statement({
  name: 'upload-reserve-renew',
  parameters: ['uuid[]', 'float8'],
  columns: {},
  text: `UPDATE upload_reservation SET expires_at = now() + $2 * interval '1 ms' WHERE id = ANY($1)`,
})

/** Ends a reservation. */
export const endReservation = statement({
  name: 'upload-reserve-end',
  parameters: ['uuid'],
  columns: {},
  text: 'DELETE FROM upload_reservation WHERE id = $1',
})

/** Removes expired reservations, by the clock of the database. */
export const removeReservations = statement({
  name: 'upload-reserve-expired',
  parameters: [],
  columns: {},
  text: 'DELETE FROM upload_reservation WHERE expires_at < now()',
})

/**
 * Ends an upload's reservation in the transaction that writes its file: at no time do both count, or neither. Returns
 * the other bytes that count against the plan, fixed until the transaction ends (migration 0013).
 */
export const settleUpload = statement({
  name: 'upload-settle',
  parameters: ['uuid', 'uuid'],
  columns: { used: 'float8' },
  text: 'SELECT settle_upload($1, $2)::float8 AS used',
})

/** The bytes that count against a workspace's plan: its files, and the reservations of its uploads (migration 0013). */
export const readUsed = statement({
  name: 'upload-used',
  parameters: ['uuid'],
  columns: { used: 'float8' },
  text: 'SELECT used_bytes($1)::float8 AS used',
})
