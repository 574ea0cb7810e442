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
import { insertOperation } from '../operations/rows.ts'

describe('reconciling pins', () => {
  const { signal } = new AbortController()
  let dir: string
  let database: TestDatabase
  let storage: Storage
  let workspace: string
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'berth-reconcile-'))
    database = await startDatabase()
    workspace = await database.createWorkspace()
    storage = createEmbeddedStorage({ dir, network: 'public' })
    await storage.start()
  })
  after(async () => {
    await storage.stop()
    await database.stop()
    await rm(dir, { recursive: true, force: true })
  })
  beforeEach(async () => {
    await database.pool.query('TRUNCATE operation, repair, file CASCADE')
    for await (const cid of storage.list({ signal })) await storage.unpin(cid, { signal })
  })

  async function addPin(text: string): Promise<CID> {
    async function* entries() {
      yield {
        path: 'file',
        content: (async function* () {
          yield Buffer.from(text)
        })(),
      }
    }
    return (await storage.add(entries(), { signal })).cid
  }
  async function addFile(cid: CID, columns: { status?: string; removed?: boolean } = {}): Promise<string> {
    const id = uuidv7()
    await database.pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, pinned_at, removed_at)
       VALUES ($1, $2, 'public', $3, $4, $4, '{}', '{}', now(), $5)`,
      [id, workspace, columns.status ?? 'pinned', `${cid}`, columns.removed ? new Date() : null],
    )
    return id
  }
  const reconcile = () => reconcilePins(database.pool, storage, signal)
  const isPinned = (cid: CID) => storage.isPinned(cid, { signal })

  it('reconciling pins leaves consistent files and pins alone', async () => {
    const cid = await addPin('kept')
    await addFile(cid)
    const pending = await addPin('pinned, and the row not yet written')
    await addFile(pending, { status: 'retrieving' })
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 0 })
    assert.ok(await isPinned(cid))
    assert.ok(await isPinned(pending))
  })

  it('reconciling pins releases a pin without a file', async () => {
    const cid = await addPin('orphan')
    await addFile(cid, { status: 'over_free_limit' })
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 1 })
    assert.equal(await isPinned(cid), false)
    const { rows } = await database.pool.query('SELECT loop, reason, target FROM repair')
    assert.deepEqual(rows, [{ loop: 'pins', reason: 'pin that nothing keeps', target: `${cid}` }])
  })

  it('reconciling pins leaves the pin of a deleted file to its pending operation', async () => {
    const cid = await addPin('deleted a moment ago')
    const fileId = await addFile(cid, { removed: true })
    await insertOperation(database.pool, workspace, {
      kind: 'pin.remove',
      queue: 'storage',
      target_id: fileId,
    })
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 0 })
    assert.ok(await isPinned(cid))
  })

  it('reconciling pins releases the pin of a deleted file whose operation has ended', async () => {
    const cid = await addPin('deleted in vain')
    const fileId = await addFile(cid, { removed: true })
    await insertOperation(database.pool, workspace, {
      kind: 'pin.remove',
      state: 'failed',
      target_id: fileId,
    })
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 1 })
    assert.equal(await isPinned(cid), false)
  })

  it('reconciling pins starts a repair for a file whose pin is gone', async () => {
    const cid = await addPin('lost')
    const fileId = await addFile(cid)
    await storage.unpin(cid, { signal })
    assert.deepEqual(await reconcile(), { missing: 1, orphaned: 0 })
    assert.deepEqual(await reconcile(), { missing: 0, orphaned: 0 })
    const { rows } = await database.pool.query('SELECT kind, target_id FROM operation')
    assert.deepEqual(rows, [{ kind: 'pin.repair', target_id: fileId }])
  })
})
