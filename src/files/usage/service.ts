import type { Queryable } from '../../db/pool.ts'

export interface Usage {
  files: number
  /** Of content, each file counted in full. */
  bytes: number
}

/** What a workspace has stored on both networks, from an index that has nothing else. */
export async function readUsage(db: Queryable, workspaceId: string): Promise<Usage> {
  const { rows } = await db.query({
    name: 'usage',
    text: `SELECT count(*)::float8 AS files, coalesce(sum(size), 0)::float8 AS bytes FROM file
      WHERE workspace_id = $1 AND status = 'pinned' AND removed_at IS NULL`,
    values: [workspaceId],
  })
  return rows[0]
}
