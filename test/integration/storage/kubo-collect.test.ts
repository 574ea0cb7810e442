/** Garbage in a Kubo that Berth owns: it is collected after a release, and never during an import. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { CID } from 'multiformats/cid'
import { isAwaited } from '../../../src/db/advisory-locks.ts'
import { queryOne } from '../../../src/db/pool.ts'
import { SharedLock } from '../../../src/db/shared-lock.ts'
import { noteRelease } from '../../../src/db/statements/garbage.ts'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { collectReleased } from '../../../workers/reconcile/collect.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { type KuboNode, kuboBinary, startKubo } from '../../support/kubo.ts'
import { run, until } from '../../support/processes.ts'
import { block, inPieces, node } from './cases/blocks.ts'
import { MIB } from './cases/context.ts'
import { collect, file, texts } from './content.ts'
import { startProvider } from './node-process.ts'

const skip = kuboBinary
  ? false
  : 'BERTH_TEST_KUBO is not set: it names the Kubo binary, see scripts/ci/kubo.sh'
const { signal } = new AbortController()

describe('a Kubo that Berth owns', { skip }, () => {
  let kubo: KuboNode
  let database: TestDatabase
  /** Storages as two processes open them. */
  let storage: Storage
  let other: Storage
  before(async () => {
    ;[kubo, database] = await Promise.all([startKubo(), startDatabase()])
    const open = async () => {
      const lock = new SharedLock(database.url, 'kuboPublic')
      const opened = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'public', lock })
      await opened.start()
      return opened
    }
    ;[storage, other] = await Promise.all([open(), open()])
  })
  after(async () => {
    await Promise.all([storage?.stop(), other?.stop()])
    await Promise.all([kubo?.stop(), database?.stop()])
  })
  const repoBytes = async () => (await storage.info({ signal })).repoBytes ?? 0
  const gcWaits = () => until('the collection waits', () => isAwaited(database.pool, 'kuboPublic'))

  test('a Kubo that Berth owns keeps released content until GC, which reports what it freed', async () => {
    const { cid } = await storage.add(file('deleted', 8 * MIB), { signal })
    const full = await repoBytes()
    await storage.unpin(cid, { signal })
    assert.ok(Math.abs((await repoBytes()) - full) < MIB)
    const { removedBytes } = await storage.gc({ signal })
    assert.ok(removedBytes > 7 * MIB, `${removedBytes}`)
    assert.ok(full - (await repoBytes()) > 7 * MIB)
  })

  test('a Kubo that Berth owns is collected once per release by one worker, and totals are kept', async () => {
    const services = { pool: database.pool, intervalMs: 3_600_000, log: database.log }
    const passHours = () =>
      database.pool.query(
        `UPDATE garbage_collection SET started_at = started_at - interval '2 hours',
          released_at = released_at - interval '2 hours'`,
      )
    const turns = [storage, other].map((one) => collectReleased(services, one))
    const turn = () => Promise.all(turns.map((one) => one(signal)))
    const read = (network = 'public') =>
      queryOne<{ runs: number; blocks: number; bytes: number }>(
        database.pool,
        `SELECT runs::int, removed_blocks::int AS blocks, removed_bytes::int AS bytes
          FROM garbage_collection WHERE network = $1`,
        [network],
      )
    // The first collection is due because there was none before.
    await until('it is collected', () => turn().then(async () => (await read()).runs === 1))
    const { cid } = await storage.add(file('released', 4 * MIB), { signal })
    await passHours()
    await turn()
    assert.equal((await read()).runs, 1)
    await storage.unpin(cid, { signal })
    await noteRelease.run(database.pool, 'public')
    const before = await read()
    await until('it is collected again', () => turn().then(async () => (await read()).runs === 2))
    const { blocks, bytes } = await read()
    assert.ok(blocks - before.blocks > 4 && bytes - before.bytes > 4 * MIB)
    await passHours()
    await turn()
    assert.equal((await read()).runs, 2)
    assert.equal((await read('private')).runs, 0)
  })

  test('a Kubo that Berth owns is not collected during an import or a build of another process', async () => {
    const source = await storage.add(file('in the middle', 3 * MIB), { signal })
    const bytes = await collect(storage.cat(source.cid, { signal }))
    const car = await collect(storage.exportCar(source.cid, { signal }))
    await storage.unpin(source.cid, { signal })
    await storage.gc({ signal })
    /** Yields pieces, and makes a collection wait between the first and the others. */
    const collections: Promise<unknown>[] = []
    const withCollection = async function* (pieces: AsyncIterable<Uint8Array>) {
      let given = 0
      for await (const piece of pieces) {
        if (++given === 2) {
          collections.push(other.gc({ signal }))
          await gcWaits()
        }
        yield piece
      }
    }
    const root = await node([])
    const imports: (() => Promise<CID>)[] = [
      async () => {
        const content = withCollection(inPieces(bytes, MIB))
        const entries = (async function* () {
          yield { path: 'f', content }
        })()
        return (await storage.add(entries, { signal })).cid
      },
      async () => (await storage.importCar(withCollection(inPieces(car, MIB)), { signal })).cid,
      () =>
        storage.build(
          async (put) => {
            await put(root)
            collections.push(other.gc({ signal }))
            await gcWaits()
            return root.cid
          },
          { base: null, signal },
        ),
    ]
    for (const start of imports) {
      const cid = await start()
      await Promise.all(collections)
      await storage.gc({ signal })
      assert.equal(await storage.isPinned(cid, { signal }), true)
      // Every block exists, so this pins offline.
      await storage.unpin(cid, { signal })
      await storage.pin(cid, { offline: true, stallMs: 10_000, signal })
      await storage.unpin(cid, { signal })
      await storage.gc({ signal })
    }
    assert.equal(collections.length, 3)
  })

  for (const [kind, what] of [
    ['add', 'an upload'],
    ['build', 'a snapshot'],
  ] as const)
    test(`a Kubo that Berth owns is collected after a kill during ${what}, keeping other imports`, async (t) => {
      const base = await storage.add(texts({ 'a.txt': `the snapshot before ${kind}` }), { signal })
      const program = join(import.meta.dirname, 'kubo-import.program.ts')
      const victim = run(process.execPath, [program, kubo.apiUrl, database.url, kind, `${base.cid}`])
      t.after(() => victim.end('SIGKILL'))
      const empty = await repoBytes()
      await until('half of it is there', async () => {
        if (victim.process.exitCode !== null) throw new Error(victim.output())
        return victim.output().includes('half') && (await repoBytes()) > empty + 4 * MIB
      })
      const leaf = await block(Buffer.from(`of another process than the killed ${kind}`))
      const root = await node([leaf.cid, base.cid])
      let collection: ReturnType<Storage['gc']> | undefined
      const cid = await storage.build(
        async (put) => {
          await put(leaf)
          collection = other.gc({ signal })
          await gcWaits()
          await victim.end('SIGKILL')
          await put(root)
          return root.cid
        },
        { base: base.cid, signal },
      )
      const report = await collection
      assert.ok((report?.removedBytes ?? 0) > 4 * MIB, `${report?.removedBytes}`)
      for (const kept of [base.cid, cid]) {
        assert.equal(await storage.isPinned(kept, { signal }), true)
        assert.ok((await collect(storage.exportCar(kept, { signal }))).length > 0)
        await storage.unpin(kept, { signal })
      }
    })

  test('a Kubo that Berth owns is not collected during a retrieval, which would block other pins', async () => {
    const provider = await startProvider()
    try {
      const cid = CID.parse(await provider.node.call('addFile', 'kubo retrieving', 150 * MIB))
      let collection: Promise<unknown> | undefined
      let waited = false
      await storage.pin(cid, {
        origins: [provider.address],
        stallMs: 20_000,
        signal,
        onProgress: ({ phase }) => {
          if (phase !== 'retrieving' || collection !== undefined) return
          // As soon as its own session has the lock.
          collection = until('the retrieval is inside', async () => {
            const { rows } = await database.pool.query(
              `SELECT FROM pg_locks WHERE locktype = 'advisory' AND mode = 'ShareLock' AND granted`,
            )
            return rows.length > 0
          }).then(() => {
            waited = true
            return other.gc({ signal })
          })
        },
      })
      await collection
      assert.ok(waited)
      assert.equal(await storage.isPinned(cid, { signal }), true)
    } finally {
      await provider.stop()
    }
  })

  test('a Kubo that Berth owns keeps third-party pins and its own files', async () => {
    const mine = await storage.add(texts({ 'a.txt': 'pinned by somebody else' }), { signal })
    await storage.unpin(mine.cid, { signal })
    const call = (command: string) => fetch(`${kubo.apiUrl}/api/v0/${command}`, { method: 'POST' })
    assert.ok((await call(`pin/add?arg=${mine.cid}`)).ok)
    const inFiles = await storage.add(texts({ 'b.txt': 'in the files of the node' }), { signal })
    assert.ok((await call(`files/cp?arg=/ipfs/${inFiles.cid}&arg=/kept`)).ok)
    await storage.unpin(inFiles.cid, { signal })
    const { removedBlocks } = await storage.gc({ signal, dryRun: true })
    assert.equal((await storage.gc({ signal })).removedBlocks, removedBlocks)
    for (const { cid } of [mine, inFiles]) assert.ok((await storage.stat(cid, { signal })).size > 0)
  })
})
