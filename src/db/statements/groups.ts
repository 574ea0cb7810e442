/**
 * Hand-written SQL: responses show times with microseconds, which Prisma truncates, and emptying a group skips rows in
 * use.
 */
import { isoTime, statement } from './statement.ts'

export const GROUP_COLUMNS = `id, name, is_public, ${isoTime('created_at')} AS created_at`
const columns = { id: 'uuid', name: 'text', is_public: 'bool', created_at: 'text' } as const

export const insertGroup = statement({
  name: 'group-insert',
  parameters: ['uuid', 'uuid', 'text', 'text', 'bool'],
  columns,
  text: `INSERT INTO file_group (id, workspace_id, network, name, is_public) VALUES ($1, $2, $3, $4, $5)
    RETURNING ${GROUP_COLUMNS}`,
})

export const findGroup = statement({
  name: 'group-find',
  parameters: ['uuid', 'uuid', 'text'],
  columns,
  text: `SELECT ${GROUP_COLUMNS} FROM file_group WHERE id = $1 AND workspace_id = $2 AND network = $3`,
})

/** Columns whose parameter is null stay unchanged. */
export const updateGroup = statement({
  name: 'group-update',
  parameters: ['uuid', 'uuid', 'text', 'text?', 'bool?'],
  columns,
  text: `UPDATE file_group SET name = coalesce($4, name), is_public = coalesce($5, is_public)
    WHERE id = $1 AND workspace_id = $2 AND network = $3 RETURNING ${GROUP_COLUMNS}`,
})

/** Takes up to `$2` files out of a group. Rows that another transaction is writing are skipped. */
export const takeFilesOut = statement({
  name: 'group-empty',
  parameters: ['uuid', 'int8'],
  columns: {},
  text: `UPDATE file SET group_id = NULL WHERE id IN (
      SELECT id FROM file WHERE group_id = $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`,
})
