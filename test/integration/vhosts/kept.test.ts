/** The database lookup that gateway requests share. */
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { CID } from 'multiformats/cid'
import type { Pool } from '../../../src/db/pool.ts'
import type { Gateway } from '../../../src/files/gateways/gateways.ts'
import { KeptLookups } from '../../../src/vhosts/gateways/kept.ts'
import { startDatabase } from '../../support/database.ts'
import { until } from '../../support/processes.ts'

const CIDS = [
  'bafkreihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku',
  'bafkreigh2akiscaildcqabsyg3dfr6chu3fgpregiymsck7e7aqa4s52zy',
].map((text) => CID.parse(text)) as [CID, CID]

const database = await startDatabase()
after(() => database.stop())
const workspaceId = await database.createWorkspace()
const gateway = { workspaceId, hasSwaps: false, showsSignatures: false } as Gateway
for (const cid of CIDS) {
  await database.pool.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes, size,
       number_of_files, mime_type, pinned_at)
     VALUES (gen_random_uuid(), $1, 'public', 'pinned', $2, $2, $2, '{}', '{}', 1, 1, 'text/plain', now())`,
    [workspaceId, `${cid}`],
  )
}

/** Lookups whose first query ends when the test releases it; the database has answered it before. */
function openHeld() {
  const { promise, resolve } = Promise.withResolvers<void>()
  let queries = 0
  let answered = 0
  const pool: Pool = Object.create(database.pool)
  pool.query = async <Row>(...asked: Parameters<Pool['query']>) => {
    const isFirst = ++queries === 1
    const result = await database.pool.query<Row>(...asked)
    answered++
    if (isFirst) await promise
    return result
  }
  const lookups = new KeptLookups(pool)
  return {
    find: (cid: CID) => lookups.find(gateway, 'public', cid),
    firstAnswered: () => until('the first query is answered', () => answered > 0),
    letGo: resolve,
  }
}

test('a slow gateway query does not delay later requests', async () => {
  const { find, firstAnswered, letGo } = openHeld()
  const slow = find(CIDS[0])
  await firstAnswered()
  assert.equal((await find(CIDS[1]))?.name, `${CIDS[1]}`)
  assert.equal((await find(CIDS[0]))?.name, `${CIDS[0]}`)
  letGo()
  assert.equal((await slow)?.name, `${CIDS[0]}`)
})

test('a gateway request after a file’s deletion does not find it, whatever query is pending', async () => {
  const { find, firstAnswered, letGo } = openHeld()
  const before = find(CIDS[0])
  await firstAnswered()
  await database.pool.query('UPDATE file SET removed_at = now() WHERE cid_v1 = $1', [`${CIDS[0]}`])
  const gone = [find(CIDS[0]), find(CIDS[0])]
  letGo()
  assert.equal((await before)?.name, `${CIDS[0]}`)
  assert.deepEqual(await Promise.all(gone), [undefined, undefined])
})
