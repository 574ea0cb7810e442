/** Which group a file is in: one of its own workspace and network, or none. */
import { isForeignKeyViolation } from '../../db/errors.ts'
import type { Queryable } from '../../db/pool.ts'
import type { GroupOwner } from './service.ts'

/** What is not there of that which a membership's path names. */
export type Missing = 'group' | 'file' | undefined

/** Puts a file into a group, out of the one that it was in. Idempotent. */
export async function addToGroup(
  db: Queryable,
  owner: GroupOwner,
  groupId: string,
  fileId: string,
): Promise<Missing> {
  try {
    const set = 'SET group_id = found_group.id'
    return await change(db, owner, groupId, fileId, set, 'IS DISTINCT FROM')
  } catch (error) {
    // Deleted between the statement's look at it and the change.
    if (isForeignKeyViolation(error, 'file_group_id_fkey')) return 'group'
    throw error
  }
}

/** Takes a file out of a group; one that is not in it stays where it is. Idempotent. */
export function removeFromGroup(
  db: Queryable,
  owner: GroupOwner,
  groupId: string,
  fileId: string,
): Promise<Missing> {
  return change(db, owner, groupId, fileId, 'SET group_id = NULL', '=')
}

/** @param comparison of the file's group with the one named, for the change to be needed. */
async function change(
  db: Queryable,
  { workspaceId, network }: GroupOwner,
  groupId: string,
  fileId: string,
  set: string,
  comparison: '=' | 'IS DISTINCT FROM',
): Promise<Missing> {
  const { rows } = await db.query(
    `WITH found_group AS (
       SELECT id FROM file_group WHERE id = $1 AND workspace_id = $3 AND network = $4
     ), found_file AS (
       SELECT id FROM file
       WHERE id = $2 AND workspace_id = $3 AND network = $4 AND status = 'pinned' AND removed_at IS NULL
     ), changed AS (
       UPDATE file ${set} FROM found_group, found_file
       WHERE file.id = found_file.id AND file.group_id ${comparison} found_group.id
     )
     SELECT EXISTS (SELECT FROM found_group) AS "group", EXISTS (SELECT FROM found_file) AS file`,
    [groupId, fileId, workspaceId, network],
  )
  if (!rows[0].group) return 'group'
  return rows[0].file ? undefined : 'file'
}
