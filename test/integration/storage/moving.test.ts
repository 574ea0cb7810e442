/** Moves from one node to another while they are in use: the port on two nodes, and a whole move to Kubo and back. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, test } from 'node:test'
import { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import { verify } from '../../../src/cli/storage.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import { createMovingStorage } from '../../../src/storage/moving.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { reconcilePins } from '../../../workers/reconcile/pins.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { type KuboNode, kuboBinary, startKubo } from '../../support/kubo.ts'
import { freePort } from '../../support/processes.ts'
import { buildCases } from './cases/build.ts'
import { failsWith } from './cases/context.ts'
import { gcCases } from './cases/gc.ts'
import { pinCases } from './cases/pin.ts'
import { collect, texts } from './content.ts'
import { storageContract } from './contract.ts'
import { openSubject } from './embedded-subject.ts'
import { temporaryFolder } from './node-process.ts'

// Reads only pass through, and large imports cost as much again.
const groups = [buildCases, pinCases, gcCases]

storageContract(
  'moving',
  async () => {
    const [previous, next] = await Promise.all([openSubject(), openSubject()])
    const storage = createMovingStorage({
      previous: previous.storage,
      next: next.storage,
      isPreviousOwn: true,
    })
    await storage.start()
    return {
      storage,
      close: async () => {
        await storage.stop()
        await Promise.all([previous.close(), next.close()])
      },
    }
  },
  { groups },
)

const skip = kuboBinary ? false : 'BERTH_TEST_KUBO is not set: see scripts/ci/kubo.sh'

describe('a move', { skip }, () => {
  const { signal } = new AbortController()
  let database: TestDatabase
  let workspace: string
  let kubo: KuboNode
  let folder: Awaited<ReturnType<typeof temporaryFolder>>
  let embedded: Storage
  let onKubo: Storage
  const opened: Storage[] = []

  before(async () => {
    ;[database, kubo, folder] = await Promise.all([startDatabase(), startKubo(), temporaryFolder()])
    workspace = await database.createWorkspace()
    embedded = await open(createEmbeddedStorage({ dir: folder.dir, network: 'public', offline: true }))
    onKubo = await open(createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' }))
  })
  after(async () => {
    await Promise.all(opened.map((storage) => storage.stop()))
    await Promise.all([kubo?.stop(), database?.stop(), folder?.remove()])
  })
  beforeEach(async () => {
    await database.pool.query('TRUNCATE operation, repair, file CASCADE')
    for (const node of [embedded, onKubo])
      for await (const cid of node.list({ signal })) await node.unpin(cid, { signal })
  })

  async function open(storage: Storage): Promise<Storage> {
    await storage.start()
    opened.push(storage)
    return storage
  }
  const addFile = async (cid: CID) => {
    await database.pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, pinned_at)
       VALUES ($1, $2, 'public', 'pinned', $3, $3, '{}', '{}', now())`,
      [uuidv7(), workspace, `${cid}`],
    )
    return cid
  }
  const upload = async (storage: Storage, text: string) =>
    addFile((await storage.add(texts({ file: text }), { signal })).cid)
  const read = async (storage: Storage, cid: CID) =>
    Buffer.from(await collect(storage.cat(cid, { signal }))).toString()
  /** Compares once, and does what the operations for missing pins do. @returns the report. */
  const copyRest = async (storage: Storage) => {
    const report = await reconcilePins(database.pool, storage, signal)
    const { rows } = await database.pool.query<{ cid_v1: string }>(
      `SELECT cid_v1 FROM file JOIN operation ON target_id = file.id WHERE kind = 'pin.repair'`,
    )
    for (const { cid_v1 } of rows)
      await storage.pin(CID.parse(cid_v1), { offline: true, stallMs: 20_000, signal })
    await database.pool.query('TRUNCATE operation')
    return report
  }

  for (const way of ['from the embedded node to Kubo', 'from Kubo to the embedded node'])
    test(`a move ${way} keeps old files and those that came during it, and drops deleted ones`, async () => {
      const toKubo = way.endsWith('Kubo')
      const previous = toKubo ? embedded : onKubo
      const next = toKubo ? onKubo : embedded
      const older = await upload(previous, `older, ${way}`)
      const deleted = await upload(previous, `deleted during it, ${way}`)
      const moving = await open(createMovingStorage({ previous, next, isPreviousOwn: false }))
      assert.equal(await read(moving, older), `older, ${way}`)

      const newer = await upload(moving, `newer, ${way}`)
      assert.equal(await next.isPinned(newer, { signal }), true)
      assert.equal((await verify(next, database.pool)).bad.length, 2)
      await database.pool.query('DELETE FROM file WHERE cid_v1 = $1', [`${deleted}`])
      assert.equal(await moving.unpin(deleted, { signal }), true)
      assert.deepEqual(await copyRest(moving), { missing: 1, orphaned: 0 })

      assert.deepEqual(await copyRest(moving), { missing: 0, orphaned: 0 })
      assert.deepEqual(await verify(next, database.pool), { whole: 2, bad: [] })
      for (const [cid, text] of [
        [older, `older, ${way}`],
        [newer, `newer, ${way}`],
      ] as const)
        assert.equal(await read(next, cid), text)
      assert.equal(await next.isPinned(deleted, { signal }), false)
    })

  test('an upload that only the previous node has, because its process was killed, is released', async () => {
    const { cid } = await embedded.add(texts({ file: 'killed in between' }), { signal })
    const moving = await open(createMovingStorage({ previous: embedded, next: onKubo, isPreviousOwn: false }))
    assert.equal(await moving.isPinned(cid, { signal }), false)
    assert.deepEqual(await reconcilePins(database.pool, moving, signal), { missing: 0, orphaned: 1 })
    assert.equal(await embedded.isPinned(cid, { signal }), false)
  })

  test('content that the previous node has lost is read from the next one, and copied back', async () => {
    const moving = await open(createMovingStorage({ previous: onKubo, next: embedded, isPreviousOwn: false }))
    const cid = await upload(moving, 'lost')
    await onKubo.unpin(cid, { signal })
    await onKubo.gc({ signal })
    await assert.rejects(read(onKubo, cid), failsWith('not_found'))
    assert.equal(await read(moving, cid), 'lost')
    assert.deepEqual(await copyRest(moving), { missing: 1, orphaned: 0 })
    assert.equal(await read(onKubo, cid), 'lost')
  })

  test('while the previous node is away, even from the start, the next one is read', async () => {
    const away = createKuboStorage({ apiUrl: `http://127.0.0.1:${await freePort()}`, network: 'public' })
    const cid = await upload(onKubo, 'still here')
    let started = false
    const next = {
      ...createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public' }),
      // A Cluster, or blocks in S3, can only be read after their start.
      start: async () => {
        started = true
      },
    }
    const moving = createMovingStorage({ previous: away, next, isPreviousOwn: false })
    opened.push(moving)
    await assert.rejects(moving.start(), failsWith('unavailable'))
    assert.ok(started)
    assert.equal(await read(moving, cid), 'still here')
    await assert.rejects(moving.add(texts({ file: 'new' }), { signal }), failsWith('unavailable'))
  })

  test('a node cannot move to itself', async () => {
    const again = createKuboStorage({
      apiUrl: kubo.apiUrl.replace('127.0.0.1', 'localhost'),
      network: 'public',
    })
    const moving = createMovingStorage({ previous: again, next: onKubo, isPreviousOwn: false })
    await assert.rejects(moving.start(), /previous node is its present one/)
    await again.stop()
  })
})
