/** The parts of the scale benchmark about the end of files, the collection of their content, and backups of all rows. */

import { BackupWriter } from '../../../src/backup/layout.ts'
import type { BackupStore } from '../../../src/backup/store.ts'
import { dumpTables } from '../../../src/backup/tables.ts'
import { withCopyConnection } from '../../../src/db/copy-connection.ts'
import type { Pool, Queryable } from '../../../src/db/pool.ts'
import { readDue } from '../../../src/db/statements/garbage.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { releaseUnlessKept } from '../../../workers/handlers/content.ts'
import { LARGE_WORKSPACE } from './scale-rows.ts'

const GC_SECONDS = 3600

/** Ids of pinned files of the large workspace, which may be deleted. */
export async function readDeletable(pool: Pool, count: number): Promise<string[]> {
  const { rows } = await pool.query<{ id: string }>(
    `SELECT id FROM file WHERE workspace_id = $1 AND network = 'public' AND status = 'pinned' AND removed_at IS NULL
     ORDER BY id DESC LIMIT $2`,
    [LARGE_WORKSPACE, count],
  )
  return rows.map(({ id }) => id)
}

/** Removes the operations of deletions: in the next run on this database, their kind is rare again. */
export async function forgetDeletions(pool: Pool, ids: string[]): Promise<void> {
  await pool.query(`DELETE FROM operation WHERE target_id = ANY($1::uuid[]) AND kind = 'pin.remove'`, [ids])
}

/**
 * The rows' side of releasing content and of its collection, by name.
 * @param undone runs something in a transaction that is rolled back.
 */
export function endPasses(
  pool: Pool,
  file: { id: string; cid: string },
  undone: (work: (db: Queryable) => Promise<unknown>) => Promise<void>,
): Record<string, () => Promise<unknown>> {
  const { signal } = new AbortController()
  const storage = { network: 'public', unpin: async () => true } as unknown as Storage
  return {
    'worker: releasing the content of a deleted file': () =>
      undone(async (db) => {
        await db.query('UPDATE file SET removed_at = now() WHERE id = $1', [file.id])
        await releaseUnlessKept(db, storage, file.cid, { signal })
        await db.query('DELETE FROM file WHERE id = $1', [file.id])
      }),
    'worker: whether a collection is due': () => readDue.run(pool, 'public', GC_SECONDS),
  }
}

/** Reads and compresses all rows as for a backup, and stores nothing. */
export async function dumpAll(url: string): Promise<void> {
  await withCopyConnection(url, async (client) => {
    await dumpTables(client, await BackupWriter.begin(NOWHERE), () => {})
  })
}

const NOWHERE: BackupStore = {
  where: 'nowhere',
  prepare: async () => {},
  names: async () => [],
  async *list() {},
  size: async () => null,
  read: async () => null,
  stream() {
    throw new Error('nothing is stored')
  },
  async write(_, content) {
    for await (const _ of content);
  },
  settle: async () => {},
  remove: async () => {},
  close: () => {},
}
