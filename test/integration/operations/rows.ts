import { uuidv7 } from 'uuidv7'
import { type Pool, queryOne } from '../../../src/db/pool.ts'

/** Inserts an operation that is due, with the given columns overridden. */
export async function insertOperation(
  pool: Pool,
  workspaceId: string,
  columns: Record<string, unknown> = {},
): Promise<string> {
  const row: Record<string, unknown> = {
    id: uuidv7(),
    workspace_id: workspaceId,
    kind: 'pin.add',
    queue: 'pins',
    target_id: uuidv7(),
    ...columns,
  }
  const names = Object.keys(row)
  await pool.query(
    `INSERT INTO operation (${names.join(', ')}) VALUES (${names.map((_, i) => `$${i + 1}`).join(', ')})`,
    Object.values(row),
  )
  return row.id as string
}

export async function readOperation(pool: Pool, id: string): Promise<Record<string, unknown>> {
  return queryOne(pool, 'SELECT * FROM operation WHERE id = $1', [id])
}
