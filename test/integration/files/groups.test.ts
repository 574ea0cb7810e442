/** Groups with many files, or with files that arrive during the deletion. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { transaction } from '../../../src/db/pool.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { addToGroup, deleteGroup } from '../../../src/files/groups.ts'
import { PinService } from '../../../src/files/pins/pin-requests.ts'
import type { Principal } from '../../../src/http/principal.ts'
import { useDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const database = await useDatabase()
const prisma = createPrisma(database.pool)
const workspaceId = await database.createWorkspace()

describe('deleting a group', () => {
  const createGroup = async () => {
    const id = uuidv7()
    await database.pool.query(
      `INSERT INTO file_group (id, workspace_id, network, name) VALUES ($1, $2, 'public', 'group')`,
      [id, workspaceId],
    )
    return id
  }

  /** True while a statement in this database waits for a lock. */
  const isBlocked = async () => {
    const { rowCount } = await database.pool.query(
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    )
    return (rowCount ?? 0) > 0
  }

  it('deleting a group removes its files from it in statements of limited size', async () => {
    const { pool } = database
    const id = await createGroup()
    await pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, group_id)
       SELECT gen_random_uuid(), $1, 'public', 'pinned', 'cid', 'cid', '{}', '{}', $2 FROM generate_series(1, 12000)`,
      [workspaceId, id],
    )
    await pool.query(`
      CREATE FUNCTION refuse_many() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        IF (SELECT count(*) FROM changed) > 5000 THEN RAISE 'too many rows in one statement'; END IF;
        RETURN NULL;
      END $$;
      CREATE TRIGGER refuse_many AFTER UPDATE ON file REFERENCING NEW TABLE AS changed
        FOR EACH STATEMENT EXECUTE FUNCTION refuse_many()`)
    // In a transaction, because a statement without one reports its error before it releases its locks, and the next
    // statement would skip the locked rows.
    const atOnce = transaction(pool, (tx) => tx.query('DELETE FROM file_group WHERE id = $1', [id]))
    await assert.rejects(atOnce, /too many rows/)
    await deleteGroup({ pool, prisma }, id)
    const { rows } = await pool.query(
      'SELECT count(*)::int AS all, count(group_id)::int AS grouped FROM file',
    )
    assert.deepEqual(rows, [{ all: 12000, grouped: 0 }])
    assert.equal((await pool.query('SELECT FROM file_group')).rowCount, 0)
  })

  it('deleting a group while a pin is accepted into it returns 404 for the pin', async () => {
    const { pool } = database
    const groupId = await createGroup()
    const pins = new PinService(pool)
    const caller = { workspaceId, userId: null } as unknown as Principal
    const cid = 'bafkqaaa'
    const pin = { cid, canonical: cid, name: null, groupId, keyvalues: {}, hostNodes: [] }
    const accepted = await transaction(pool, async (client) => {
      await client.query('DELETE FROM file_group WHERE id = $1', [groupId])
      const result = assert.rejects(pins.accept(caller, pin), { status: 404, message: /no such group/ })
      await until('the insert waits for the deletion', isBlocked)
      return { result }
    })
    await accepted.result
    assert.equal((await pool.query('SELECT FROM operation')).rowCount, 0)
  })

  it('deleting a group while a file is moved into it leaves the file where it was', async () => {
    const { pool } = database
    const [from, to] = [await createGroup(), await createGroup()]
    const fileId = uuidv7()
    await pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, group_id)
       VALUES ($1, $2, 'public', 'pinned', 'cid', 'cid', '{}', '{}', $3)`,
      [fileId, workspaceId, from],
    )
    const moved = await transaction(pool, async (client) => {
      await client.query('DELETE FROM file_group WHERE id = $1', [to])
      const put = addToGroup(prisma, { workspaceId, network: 'public' }, to, fileId)
      const result = assert.rejects(put, { status: 404, message: 'There is no such group' })
      await until('the change waits for the deletion', isBlocked)
      return { result }
    })
    await moved.result
    const { rows } = await pool.query('SELECT group_id FROM file WHERE id = $1', [fileId])
    assert.deepEqual(rows, [{ group_id: from }])
  })
})
