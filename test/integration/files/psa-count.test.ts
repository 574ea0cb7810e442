/** How many pins a page of the Pinning Service API counts. */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { listPins } from '../../../src/files/psa/psa-pins.ts'
import { useDatabase } from '../../support/database.ts'

const LIMIT = 4

it('a page of pins counts up to a limit, and all pins of a search', async () => {
  const { pool, createWorkspace } = await useDatabase()
  const workspaceId = await createWorkspace()
  const add = (name: string) =>
    pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes, size)
       VALUES ($1, $2, 'public', 'pinned', 'bafkqaaa', 'bafkqaaa', $3, '{}', '{}', 0)`,
      [uuidv7(), workspaceId, name],
    )
  const count = async (name?: string) => {
    const filter = { statuses: ['pinned' as const], match: 'exact' as const, name }
    return (await listPins(pool, workspaceId, filter, 1, LIMIT)).count
  }
  for (let total = 1; total <= LIMIT + 2; total++) {
    await add('same')
    assert.equal(await count(), Math.min(total, LIMIT))
    assert.equal(await count('same'), total)
  }
})
