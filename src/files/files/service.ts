/** Files: content that is pinned. Everything here is read from PostgreSQL; no answer waits for an IPFS node. */
import { escapeLike } from '../../db/like.ts'
import type { Queryable } from '../../db/pool.ts'
import { badRequest } from '../../errors.ts'
import { isoTime } from '../../operations/store.ts'
import type { Network } from '../../storage/port.ts'
import { MAX_PAIRS, TOO_MANY_PAIRS } from '../keyvalues.ts'
import type { FileChanges, FileRecord } from './schema.ts'

/** The columns of a {@link FileRecord}. */
export const FILE_COLUMNS = `id, name, cid, size::float8 AS size, number_of_files, mime_type, keyvalues, group_id,
  ${isoTime('created_at')} AS created_at, extract(epoch FROM expires_at)::float8 AS expires_at`

export interface FileFilter {
  network: Network
  /** Part of the name. */
  name?: string
  /** A group's id, or `null` for files in none. */
  group?: string | null
  mimeType?: string
  canonical?: string
  /** Pairs that must all be there, as JSON. */
  keyvalues: string | null
  after?: string
  order: 'ASC' | 'DESC'
  limit: number
}

export async function findFile(
  db: Queryable,
  workspaceId: string,
  network: Network,
  id: string,
): Promise<FileRecord | undefined> {
  const { rows } = await db.query({
    name: 'file-find',
    text: `SELECT ${FILE_COLUMNS} FROM file
      WHERE id = $1 AND workspace_id = $2 AND network = $3 AND status = 'pinned' AND removed_at IS NULL`,
    values: [id, workspaceId, network],
  })
  return rows[0]
}

/** The file's pairs after a change: what $6 has is set, the keys in $7 are removed. */
const MERGED = `(keyvalues || $6::jsonb) - $7::text[]`

/**
 * Changes a file. One statement merges what the row has at that moment, so that no change of another client
 * to other keys is lost.
 * @returns the file as it is now; undefined when the workspace has no such file.
 * @throws ApiError 400, and nothing is changed, when it would have too many pairs.
 */
export async function updateFile(
  db: Queryable,
  workspaceId: string,
  network: Network,
  id: string,
  { name, keyvalues = {}, expires_at }: FileChanges,
): Promise<FileRecord | undefined> {
  const pairs = Object.entries(keyvalues)
  const removed = pairs.filter(([, value]) => value === null).map(([key]) => key)
  const { rows } = await db.query(
    `UPDATE file SET
       name = CASE WHEN $4::boolean THEN $5::text ELSE name END,
       keyvalues = ${MERGED},
       expires_at = CASE WHEN $8::boolean THEN to_timestamp($9::float8) ELSE expires_at END
     WHERE id = $1 AND workspace_id = $2 AND network = $3 AND status = 'pinned' AND removed_at IS NULL
       AND (SELECT count(*) FROM jsonb_object_keys(${MERGED})) <= ${MAX_PAIRS}
     RETURNING ${FILE_COLUMNS}`,
    [
      ...[id, workspaceId, network],
      ...[name !== undefined, name],
      ...[JSON.stringify(keyvalues), removed],
      ...[expires_at !== undefined, expires_at],
    ],
  )
  if (rows.length === 0 && (await findFile(db, workspaceId, network, id))) {
    throw badRequest(`keyvalues: ${TOO_MANY_PAIRS}`)
  }
  return rows[0]
}

/**
 * A page of files by age. Only the filters that are asked for are in the statement: each has its own plan.
 * `removed_at` is NULL in every row; ordering by it as well is ordering by the index of the list.
 */
export async function listFiles(
  db: Queryable,
  workspaceId: string,
  filter: FileFilter,
): Promise<FileRecord[]> {
  const values: unknown[] = [workspaceId, filter.network]
  const where = [`workspace_id = $1`, `network = $2`, `status = 'pinned'`, `removed_at IS NULL`]
  const add = (condition: (placeholder: string) => string, value: unknown) => {
    values.push(value)
    where.push(condition(`$${values.length}`))
  }
  if (filter.name !== undefined) add((p) => `name ILIKE ${p}`, `%${escapeLike(filter.name)}%`)
  if (filter.group === null) where.push('group_id IS NULL')
  else if (filter.group !== undefined) add((p) => `group_id = ${p}`, filter.group)
  if (filter.mimeType !== undefined) add((p) => `mime_type = ${p}`, filter.mimeType)
  if (filter.canonical !== undefined) add((p) => `cid_v1 = ${p}`, filter.canonical)
  if (filter.keyvalues !== null) add((p) => `keyvalues @> ${p}`, filter.keyvalues)
  if (filter.after !== undefined) add((p) => `id ${filter.order === 'ASC' ? '>' : '<'} ${p}`, filter.after)
  const { rows } = await db.query(
    `SELECT ${FILE_COLUMNS} FROM file WHERE ${where.join(' AND ')}
     ORDER BY removed_at ${filter.order}, id ${filter.order} LIMIT ${filter.limit}`,
    values,
  )
  return rows
}
