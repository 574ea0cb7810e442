/** Files that expire: which ones are removed, that they are removed once, and what happens to their content. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import type { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import { createPrisma } from '../../../src/db/prisma.ts'
import { findFile } from '../../../src/db/statements/files.ts'
import { changeFile } from '../../../src/files/files.ts'
import { removeFile } from '../../../src/files/remove.ts'
import { Encryption } from '../../../src/lib/encryption.ts'
import { Runner } from '../../../src/operations/runner.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import type { Storages } from '../../../src/storage/open.ts'
import type { Network } from '../../../src/storage/port.ts'
import { removeExpiredFiles } from '../../../workers/reconcile/cleanup.ts'
import { loadHandlers } from '../../../workers/registry.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { insertOperation, readOperation } from '../operations/rows.ts'

const NETWORKS: Network[] = ['public', 'private']
const { signal } = new AbortController()

describe('expired files', () => {
  let dir: string
  let database: TestDatabase
  let storages: Storages
  let runner: Runner
  let mine: string
  let other: string
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'berth-expiry-'))
    database = await startDatabase()
    mine = await database.createWorkspace()
    other = await database.createWorkspace()
    const open = (network: Network) => createEmbeddedStorage({ dir: join(dir, network), network })
    storages = { public: open('public'), private: open('private') }
    for (const storage of Object.values(storages)) await storage.start()
    const { pool, log } = database
    const prisma = createPrisma(pool)
    const webhooks = { encryption: new Encryption(''), allowed: [] }
    const limits = { stallMs: 1000, retryMs: 1000, expiryMs: 1000, allowPrivateHostNodes: true }
    const handlers = await loadHandlers({ pool, prisma, storages, ...limits, agents: undefined, webhooks })
    runner = new Runner({ pool, prisma, leases: pool, workerId: uuidv7(), log, handlers })
  })
  after(async () => {
    for (const storage of Object.values(storages)) await storage.stop()
    await database.stop()
    await rm(dir, { recursive: true, force: true })
  })
  beforeEach(() => database.pool.query('TRUNCATE operation, file CASCADE'))

  async function addContent(network: Network, text: string): Promise<CID> {
    async function* bytes() {
      yield Buffer.from(text)
    }
    async function* entries() {
      yield { path: 'file', content: bytes() }
    }
    return (await storages[network].add(entries(), { signal })).cid
  }
  /** @param ends seconds from now; null for never. */
  async function addFile(
    ends: number | null,
    { cid = 'cid', workspace = mine, network = 'public', status = 'pinned' }: FileOptions = {},
  ): Promise<string> {
    const id = uuidv7()
    await database.pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, expires_at)
       VALUES ($1, $2, $3, $4, $5, $5, '{}', '{}', now() + $6 * interval '1 second')`,
      [id, workspace, network, status, `${cid}`, ends],
    )
    return id
  }
  interface FileOptions {
    cid?: CID | string
    workspace?: string
    network?: Network
    status?: string
  }
  const remaining = async () => {
    const { rows } = await database.pool.query<{ id: string }>(
      'SELECT id FROM file WHERE removed_at IS NULL ORDER BY id',
    )
    return rows.map(({ id }) => id)
  }
  const removals = async () => {
    const { rows } = await database.pool.query(
      `SELECT id, target_id FROM operation WHERE kind = 'pin.remove' ORDER BY target_id`,
    )
    return rows as { id: string; target_id: string }[]
  }
  const removeExpired = () => removeExpiredFiles(database.pool, signal)

  it('expired files of both networks and all workspaces are removed, and no others', async () => {
    const kept = [await addFile(null), await addFile(60, { network: 'private' })]
    const ended = [
      await addFile(-1),
      await addFile(-3600, { network: 'private' }),
      await addFile(-1, { workspace: other }),
    ]
    const pending = await addFile(-1, { status: 'searching' })
    assert.equal(await removeExpired(), ended.length)
    assert.deepEqual(await remaining(), [...kept, pending].sort())
    assert.deepEqual(
      (await removals()).map(({ target_id }) => target_id),
      ended.sort(),
    )
    assert.equal(await removeExpired(), 0)
  })

  it('expired files are removed once by concurrent workers, in any number', async () => {
    const count = 1203
    await database.pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, expires_at)
       SELECT gen_random_uuid(), $1, 'public', 'pinned', 'cid', 'cid', '{}', '{}', now() FROM generate_series(1, $2::int)`,
      [mine, count],
    )
    const removed = await Promise.all([removeExpired(), removeExpired(), removeExpired()])
    assert.equal(
      removed.reduce((sum, each) => sum + each, 0),
      count,
    )
    assert.equal((await removals()).length, count)
  })

  it('files stay if their expiry changes after a worker has selected them', async () => {
    for (const [ends, expected] of [
      [Math.floor(Date.now() / 1000) + 3600, false],
      [null, false],
      [undefined, true],
    ] as const) {
      const id = await addFile(-1)
      // A client may do this after the worker has selected the files and before it removes this one.
      await changeFile(database.pool, mine, 'public', id, { name: 'seen', expires_at: ends })
      const operation = await removeFile(database.pool, {
        workspaceId: mine,
        network: 'public',
        id,
        only: 'expired',
      })
      assert.equal(operation !== undefined, expected, `${ends}`)
      const file = await findFile.first(database.pool, id, mine, 'public')
      assert.equal(file === undefined, expected, `${ends}`)
    }
  })

  for (const network of NETWORKS) {
    it(`expired files release their ${network} content with its last file`, async () => {
      const storage = storages[network]
      const [shared, single] = [
        await addContent(network, `${network}, two files`),
        await addContent(network, `${network}, one file`),
      ]
      await addFile(-1, { cid: shared, network })
      await addFile(-1, { cid: single, network })
      const kept = await addFile(null, { cid: shared, network, workspace: other })
      assert.equal(await removeExpired(), 2)
      for (const { id } of await removals()) {
        await runner.run(id)
        assert.equal((await readOperation(database.pool, id)).state, 'succeeded')
      }
      const { rows } = await database.pool.query('SELECT id FROM file')
      assert.deepEqual(rows, [{ id: kept }])
      assert.equal(await storage.isPinned(single, { signal }), false)
      assert.equal(await storage.isPinned(shared, { signal }), true)
      assert.equal((await storage.stat(shared, { signal })).files, 1, 'all of it still exists')

      await database.pool.query(`UPDATE file SET expires_at = now()`)
      assert.equal(await removeExpired(), 1)
      for (const { id } of await removals()) await runner.run(id)
      assert.equal(await storage.isPinned(shared, { signal }), false)
    })
  }

  it('expired files of one network leave the same content on the other network alone', async () => {
    const [cid, same] = [await addContent('public', 'on both'), await addContent('private', 'on both')]
    assert.ok(cid.equals(same))
    await addFile(-1, { cid, network: 'private' })
    await addFile(null, { cid, network: 'public' })
    await removeExpired()
    for (const { id } of await removals()) await runner.run(id)
    assert.equal(await storages.private.isPinned(cid, { signal }), false)
    assert.equal(await storages.public.isPinned(cid, { signal }), true)
  })

  it('expired files under repair are removed after the repair was told to stop', async () => {
    const id = await addFile(-1)
    const repair = await insertOperation(database.pool, mine, {
      kind: 'pin.repair',
      queue: 'repairs',
      target_id: id,
    })
    assert.equal(await removeExpired(), 1)
    assert.equal((await readOperation(database.pool, repair)).state, 'canceled')
  })
})
