import type { Queryable } from '../../db/pool.ts'

/** Files that one statement takes out of a group: it must end long before the statement timeout. */
const BATCH = 5000

/**
 * Deletes a group; its files stay, in no group. Not one transaction: if it ends halfway, the group has fewer
 * files, and the next call goes on.
 */
export async function deleteGroup(db: Queryable, id: string): Promise<void> {
  let taken: number | null
  do {
    // Rows that somebody else is writing are left to the reference's own ON DELETE SET NULL, with late comers.
    const { rowCount } = await db.query(
      `UPDATE file SET group_id = NULL WHERE id IN (
         SELECT id FROM file WHERE group_id = $1 LIMIT $2 FOR UPDATE SKIP LOCKED)`,
      [id, BATCH],
    )
    taken = rowCount
  } while (taken === BATCH)
  await db.query('DELETE FROM file_group WHERE id = $1', [id])
}
