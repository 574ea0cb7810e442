/** Groups of files. A group is on one network, and so are its files. */
import { uuidv7 } from 'uuidv7'
import { escapeLike } from '../../db/like.ts'
import type { Queryable } from '../../db/pool.ts'
import { isoTime } from '../../operations/store.ts'
import type { Network } from '../../storage/port.ts'
import type { GroupRecord } from './schema.ts'

const COLUMNS = `id, name, is_public, ${isoTime('created_at')} AS created_at`

/** Whose groups, and on which network. */
export interface GroupOwner {
  workspaceId: string
  network: Network
}

export async function createGroup(
  db: Queryable,
  { workspaceId, network }: GroupOwner,
  { name, is_public }: { name: string; is_public: boolean },
): Promise<GroupRecord> {
  const { rows } = await db.query(
    `INSERT INTO file_group (id, workspace_id, network, name, is_public) VALUES ($1, $2, $3, $4, $5)
     RETURNING ${COLUMNS}`,
    [uuidv7(), workspaceId, network, name, is_public],
  )
  return rows[0]
}

export async function findGroup(
  db: Queryable,
  { workspaceId, network }: GroupOwner,
  id: string,
): Promise<GroupRecord | undefined> {
  const { rows } = await db.query(
    `SELECT ${COLUMNS} FROM file_group WHERE id = $1 AND workspace_id = $2 AND network = $3`,
    [id, workspaceId, network],
  )
  return rows[0]
}

export interface GroupFilter {
  /** Part of the name. */
  name?: string
  isPublic?: boolean
  /** Only groups older than the one with this id. */
  after?: string
  limit: number
}

/**
 * A page of groups, the newest first. BETWEEN is equality that the planner does not see through, so that
 * ordering by the network as well is an order that only the list's index has: by id alone it takes the primary
 * key, and walks through everybody's newer groups.
 */
export async function listGroups(
  db: Queryable,
  { workspaceId, network }: GroupOwner,
  { name, isPublic, after, limit }: GroupFilter,
): Promise<GroupRecord[]> {
  const { rows } = await db.query(
    `SELECT ${COLUMNS} FROM file_group WHERE workspace_id = $1 AND network BETWEEN $2 AND $2
       AND ($3::text IS NULL OR name ILIKE $3) AND ($4::boolean IS NULL OR is_public = $4)
       AND ($5::uuid IS NULL OR id < $5)
     ORDER BY network DESC, id DESC LIMIT $6`,
    [workspaceId, network, name === undefined ? null : `%${escapeLike(name)}%`, isPublic, after, limit],
  )
  return rows
}

/** The group after the change; undefined when there is no such group. */
export async function updateGroup(
  db: Queryable,
  { workspaceId, network }: GroupOwner,
  id: string,
  { name, is_public }: { name?: string; is_public?: boolean },
): Promise<GroupRecord | undefined> {
  const { rows } = await db.query(
    `UPDATE file_group SET name = coalesce($4, name), is_public = coalesce($5, is_public)
     WHERE id = $1 AND workspace_id = $2 AND network = $3 RETURNING ${COLUMNS}`,
    [id, workspaceId, network, name, is_public],
  )
  return rows[0]
}
