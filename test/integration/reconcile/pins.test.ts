import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { reconcilePins } from '../../../workers/reconcile/pins.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'

describe('reconciling pins', () => {
  const { signal } = new AbortController()
  let database: TestDatabase
  let storage: Storage
  let dir: string
  before(async () => {
    database = await startDatabase()
    dir = await mkdtemp(join(tmpdir(), 'berth-reconcile-'))
    storage = createEmbeddedStorage({ dir, network: 'public' })
    await storage.start()
  })
  after(async () => {
    await storage?.stop()
    await database.stop()
    await rm(dir, { recursive: true, force: true })
  })
  beforeEach(async () => {
    await database.pool.query('TRUNCATE operation, correction, file')
    for await (const cid of storage.list({ signal })) await storage.unpin(cid, { signal })
  })

  async function add(text: string): Promise<CID> {
    async function* content() {
      yield new TextEncoder().encode(text)
    }
    async function* entries() {
      yield { path: 'file.txt', content: content() }
    }
    return (await storage.add(entries(), { signal })).cid
  }

  async function insertFile(cid: CID, status: string): Promise<string> {
    const id = uuidv7()
    const workspace = await database.createWorkspace()
    await database.pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, pinned_at)
       VALUES ($1, $2, 'public', $3, $4, $4, '{}', '{}', now() - interval '1 minute')`,
      [id, workspace, status, cid.toString()],
    )
    return id
  }

  const corrections = async () => {
    const { rows } = await database.pool.query('SELECT loop, reason, target FROM correction ORDER BY id')
    return rows
  }

  it('changes nothing where files and pins agree', async () => {
    await insertFile(await add('kept'), 'pinned')
    assert.deepEqual(await reconcilePins(database.pool, storage, signal), { missing: 0, orphaned: 0 })
    assert.deepEqual(await corrections(), [])
  })

  it('starts one repair for a file whose pin is gone', async () => {
    const cid = await add('lost')
    const id = await insertFile(cid, 'pinned')
    await storage.unpin(cid, { signal })
    assert.equal((await reconcilePins(database.pool, storage, signal)).missing, 1)
    assert.equal((await reconcilePins(database.pool, storage, signal)).missing, 0, 'a repair is under way')
    const { rows } = await database.pool.query('SELECT kind, target_id FROM operation')
    assert.deepEqual(rows, [{ kind: 'pin.repair', target_id: id }])
    assert.deepEqual(await corrections(), [{ loop: 'pins', reason: 'pin missing', target: id }])
  })

  it('releases a pin that no file keeps', async () => {
    const cid = await add('orphan')
    await insertFile(await add('neighbour'), 'pinned')
    assert.equal((await reconcilePins(database.pool, storage, signal)).orphaned, 1)
    assert.equal(await storage.isPinned(cid, { signal }), false)
    assert.deepEqual(await corrections(), [
      { loop: 'pins', reason: 'pin that no file keeps', target: cid.toString() },
    ])
  })

  it('leaves a pin to a request that is still being worked on, but not to one that failed', async () => {
    const [working, failed] = [await add('working'), await add('failed')]
    await insertFile(working, 'retrieving')
    await insertFile(failed, 'expired')
    assert.equal((await reconcilePins(database.pool, storage, signal)).orphaned, 1)
    assert.equal(await storage.isPinned(working, { signal }), true)
    assert.equal(await storage.isPinned(failed, { signal }), false)
  })
})
