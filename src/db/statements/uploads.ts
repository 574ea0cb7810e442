/** Uploads under way. Each statement is by hand for the reason beside it, or since every request with bytes needs it. */
import { PLAN, type Plan } from './plan.ts'
import { narrow, statement } from './statement.ts'

/** The owner of a key, or of the key that signed the URL. */
export interface Uploader {
  workspaceId: string
  userId: string
  plan: Plan
}

/**
 * The uploader behind a row that a key gave out (with a `key_id`), with the plan of now; NULL when the key has ended, or
 * its user has left or only reads.
 */
const uploaderOf = (table: string): string => `(
  SELECT json_build_object('workspaceId', k.workspace_id, 'userId', k.user_id, 'plan', ${PLAN})
  FROM api_key k
  JOIN membership m ON m.workspace_id = k.workspace_id AND m.user_id = k.user_id AND m.role <> 'viewer'
  JOIN workspace w ON w.id = k.workspace_id
  JOIN plan p ON p.name = w.plan
  WHERE k.id = ${table}.key_id AND k.revoked_at IS NULL AND (k.expires_at IS NULL OR k.expires_at > now()))`
const uploader = narrow<Uploader | null>('json')

/** The terms of a signed URL, and who uploads by it. */
export const findSignedUpload = statement({
  name: 'upload-signed',
  parameters: ['uuid'],
  columns: { keyId: 'uuid', fixed: narrow<unknown>('jsonb'), uploader },
  text: `SELECT key_id AS "keyId", fixed, ${uploaderOf('signed_upload')} AS uploader FROM signed_upload WHERE id = $1`,
})

/**
 * Begins an upload that expires `$8` ms from now, by the clock of the database. No row is written where the workspace's
 * unfinished ones would have more than `$9` bytes in all.
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

/** An upload, how it ended, and who uploads. */
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

/** Removes up to `$1` uploads that have expired, but none that is being written or imported right now. */
export const removeUploads = statement({
  name: 'upload-expired',
  parameters: ['int8'],
  columns: {},
  text: removeExpired('upload', 'expires_at <= now() AND (lease_until IS NULL OR lease_until < now())'),
})

/** Removes up to `$1` signed URLs that expired a day ago: an upload that began in time may go on after the end of its URL. */
export const removeSignedUploads = statement({
  name: 'upload-signed-expired',
  parameters: ['int8'],
  columns: {},
  text: removeExpired('signed_upload', `expires_at <= now() - interval '1 day'`),
})

/** Counts bytes that have arrived, unless more are counted already. */
export const countReceived = statement({
  name: 'upload-received',
  parameters: ['uuid', 'int8'],
  columns: {},
  text: 'UPDATE upload SET received = greatest(received, $2) WHERE id = $1',
})

/**
 * Takes an upload that nobody has, for a request (`$2`) and `$3` ms, by the clock of the database. Also true for an upload
 * that is gone.
 */
export const takeUpload = statement({
  name: 'upload-lease',
  parameters: ['uuid', 'uuid', 'float8'],
  columns: { taken: 'bool' },
  text: `WITH taken AS (
      UPDATE upload SET lease_id = $2, lease_until = now() + $3 * interval '1 ms', lease_wanted = false
      WHERE id = $1 AND (lease_until IS NULL OR lease_until < now()) RETURNING id)
    SELECT EXISTS (SELECT FROM taken) OR NOT EXISTS (SELECT FROM upload WHERE id = $1) AS taken`,
})

/** Keeps it for `$3` ms more; no row where another request has it by now. */
export const renewUpload = statement({
  name: 'upload-lease-renew',
  parameters: ['uuid', 'uuid', 'float8'],
  columns: { lease_wanted: 'bool' },
  text: `UPDATE upload SET lease_until = now() + $3 * interval '1 ms'
    WHERE id = $1 AND lease_id = $2 RETURNING lease_wanted`,
})

/** Asks the request that has the upload to make way. */
export const askForUpload = statement({
  name: 'upload-lease-ask',
  parameters: ['uuid'],
  columns: {},
  text: 'UPDATE upload SET lease_wanted = true WHERE id = $1',
})

/** Gives it back, where the request (`$2`) still has it. */
export const giveUploadBack = statement({
  name: 'upload-lease-end',
  parameters: ['uuid', 'uuid'],
  columns: {},
  text: 'UPDATE upload SET lease_id = NULL, lease_until = NULL WHERE id = $1 AND lease_id = $2',
})

/**
 * Reserves at least `$3` and up to `$4` bytes for `$6` ms; null where `$3` is more than is left of `$5` (migration
 * 0013).
 */
export const reserveUpload = statement({
  name: 'upload-reserve',
  parameters: ['uuid', 'uuid', 'int8', 'int8', 'int8', 'float8'],
  columns: { granted: 'float8?' },
  text: `SELECT reserve_upload($1, $2, $3, $4, $5, $6 * interval '1 ms')::float8 AS granted`,
})

/** Keeps reservations for `$2` ms more, by the clock of the database. */
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

/** Removes those that ran out, by the clock of the database. */
export const removeReservations = statement({
  name: 'upload-reserve-expired',
  parameters: [],
  columns: {},
  text: 'DELETE FROM upload_reservation WHERE expires_at < now()',
})

/** Ends what an upload holds; the bytes that count against the plan without it (migration 0013). */
export const settleUpload = statement({
  name: 'upload-settle',
  parameters: ['uuid', 'uuid'],
  columns: { used: 'float8' },
  text: 'SELECT settle_upload($1, $2)::float8 AS used',
})

/** The bytes that count against a workspace's plan (migration 0013). */
export const readUsed = statement({
  name: 'upload-used',
  parameters: ['uuid'],
  columns: { used: 'float8' },
  text: 'SELECT used_bytes($1)::float8 AS used',
})
