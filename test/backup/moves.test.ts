/** A Berth moves to other parts: Kubo, the embedded node, a newer schema, another PostgreSQL. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes, randomUUID } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { runCommands } from '../../scripts/ci/docs-commands.ts'
import { type BackupReport, backup } from '../../src/backup/backup.ts'
import { FolderStore } from '../../src/backup/folder-store.ts'
import { restore } from '../../src/backup/restore.ts'
import { restorePart } from '../../src/backup/restore-part.ts'
import { verifyBackup } from '../../src/backup/verify.ts'
import { loadConfig } from '../../src/config.ts'
import { migrate } from '../../src/db/migrate.ts'
import { createPool, type Pool } from '../../src/db/pool.ts'
import { requireSchema, schemaState } from '../../src/db/schema-state.ts'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import { createKuboStorage } from '../../src/storage/kubo.ts'
import type { Storages } from '../../src/storage/open.ts'
import type { Network } from '../../src/storage/port.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { DATABASE_SERVER, startDatabaseServer } from '../support/database-server.ts'
import { migrateTo } from '../support/former-schema.ts'
import { type KuboNode, kuboBinary, startKubo } from '../support/kubo.ts'
import { postgresBin, startPostgres } from '../support/servers.ts'
import { makeDir, readBlocks, readTables } from './world.ts'

const { signal } = new AbortController()
const FORMER = '0012_kept_content'
const OPERATIONS = fileURLToPath(new URL('../../docs/operations.md', import.meta.url))

describe('a backup', { timeout: 200_000 }, () => {
  const stops: (() => Promise<unknown>)[] = []
  let root: string
  let from: TestDatabase
  let embedded: Storages
  before(async () => {
    const made = await makeDir()
    stops.push(made.remove)
    root = made.path
    if (!process.env[DATABASE_SERVER]) {
      const server = await startDatabaseServer()
      process.env[DATABASE_SERVER] = server.url
      stops.push(() => server.stop())
    }
    from = await openDatabase()
    embedded = await openEmbedded('first')
  })
  after(async () => {
    for (const stop of stops.reverse()) await stop()
  })

  const config = loadConfig({})
  const parts = (database: TestDatabase, storages: Storages) => ({
    config: { ...config, BERTH_DATA_DIR: join(root, 'data') },
    pool: database.pool,
    databaseUrl: database.url,
    storages,
    runtime: { why: 'no agents' },
    log: database.log,
    signal,
  })
  async function openDatabase(): Promise<TestDatabase> {
    const database = await startDatabase()
    stops.push(() => database.stop())
    return database
  }
  /** Opens a database without tables. */
  async function emptyDatabase(): Promise<TestDatabase> {
    const database = await openDatabase()
    await database.pool.query('DROP SCHEMA public CASCADE; CREATE SCHEMA public')
    return database
  }
  async function openEmbedded(name: string): Promise<Storages> {
    const open = async (network: Network) => {
      const storage = createEmbeddedStorage({ dir: join(root, name, network), network, offline: true })
      await storage.start()
      stops.push(() => storage.stop())
      return storage
    }
    return { public: await open('public'), private: await open('private') }
  }
  async function keep(storages: Storages, network: Network, bytes: Buffer): Promise<string> {
    async function* entries() {
      yield { path: 'file', content: Readable.from([bytes]) }
    }
    const { cid, size } = await storages[network].add(entries(), { signal })
    await from.pool.query(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, size)
       VALUES ($1, $1, $2, 'pinned', $3, $3, '{}', '{}', $4)`,
      [randomUUID(), network, `${cid}`, size],
    )
    return `${cid}`
  }
  const pinned = async (storages: Storages) => {
    const found: string[] = []
    for (const network of ['public', 'private'] as const)
      for await (const cid of storages[network].list({ signal })) found.push(`${network} ${cid}`)
    return found.sort()
  }

  it('a backup of an older schema is restored with it and then migrated', async () => {
    const old = await emptyDatabase()
    await migrateTo(old.pool, FORMER)
    await old.pool.query(
      `INSERT INTO workspace (id, name, plan) VALUES (gen_random_uuid(), 'old', 'pro');
       INSERT INTO correction (loop, reason, target) SELECT 'pins', 'old', 'x' FROM generate_series(1, 3);
       INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, size)
       SELECT gen_random_uuid(), id, 'public', 'searching', 'c', 'c', '{}', '{}', NULL FROM workspace;
       INSERT INTO gateway (id, workspace_id, domain)
         SELECT gen_random_uuid(), id, domain FROM workspace, unnest('{taken,free}'::text[]) AS domain;
       INSERT INTO gateway_token (id, gateway_id, token_hash) SELECT gen_random_uuid(), id, '' FROM gateway`,
    )
    const store = new FolderStore(join(root, 'old'))
    const report: BackupReport = await backup({ store, ...parts(old, embedded) })
    assert.equal(report.unreadable.length, 0)
    const target = await emptyDatabase()
    await restore({ store, ...parts(target, await openEmbedded('old-target')) })
    assert.equal(await schemaState(target.pool), 'current')
    const { rows } = await target.pool.query<{ id: string }>(
      `INSERT INTO repair (loop, reason, target) VALUES ('pins', 'new', 'x') RETURNING id`,
    )
    assert.equal(rows[0]?.id, '4', 'sequences continue')
    const used = await openDatabase()
    const theirs = await used.createWorkspace()
    await used.pool.query(
      `INSERT INTO gateway (id, workspace_id, domain) VALUES (gen_random_uuid(), $1, 'taken')`,
      [theirs],
    )
    // A part of a backup can be restored into any newer schema.
    const { rows: written, notes } = await restorePart({
      store,
      part: { workspace: 'old' },
      ...parts(used, embedded),
    })
    assert.deepEqual(notes, ["the gateway taken is another workspace's here: left out"])
    assert.equal(written, 4, 'the workspace, its file, a gateway and its token; its plan exists')
    const { rows: tokens } = await used.pool.query(
      'SELECT domain FROM gateway_access_token JOIN gateway ON gateway.id = gateway_id',
    )
    assert.deepEqual(tokens, [{ domain: 'free' }], 'the table had another name')
    const { rows: files } = await used.pool.query('SELECT status FROM file')
    assert.deepEqual(files, [{ status: 'searching' }])
    const left = await used.pool.query(`SELECT to_regnamespace('berth_restore') AS left`)
    assert.deepEqual(left.rows, [{ left: null }])
    await assert.rejects(
      restore({ store, ...parts(used, embedded) }),
      /its schema is newer than the backup \(0013_\w+, .*\): restore into a database without tables/,
    )
  })

  it('a backup recounts pinned content', async () => {
    await keep(embedded, 'public', randomBytes(3_000_000))
    await keep(embedded, 'public', Buffer.from(''))
    await keep(embedded, 'private', randomBytes(70_000))
    const store = new FolderStore(join(root, 'counted'))
    await backup({ store, ...parts(from, embedded) })
    const target = await emptyDatabase()
    const storages = await openEmbedded('counted-target')
    await restore({ store, ...parts(target, storages) })
    const { rows } = await target.pool.query(
      `SELECT network, sum(files)::int AS files, sum(bytes)::int AS bytes FROM kept_content_change GROUP BY 1 ORDER BY 1`,
    )
    assert.deepEqual(rows, [
      { network: 'private', files: 1, bytes: 70_000 },
      { network: 'public', files: 2, bytes: 3_000_000 },
    ])
    assert.deepEqual(await pinned(storages), await pinned(embedded))
  })

  /** Backs up content that `storages` have lost into the folder of an earlier backup, with content added after it. */
  async function assertWholeWithout(storages: Storages, kept: Storages, name: string): Promise<void> {
    const store = new FolderStore(join(root, 'counted'))
    const { unreadable } = await backup({ store, ...parts(from, storages) })
    assert.deepEqual(unreadable, [])
    const target = await emptyDatabase()
    const restored = await openEmbedded(name)
    await restore({ store, ...parts(target, restored) })
    assert.deepEqual(await pinned(restored), await pinned(kept))
  }

  it('a backup into an earlier backup’s folder is complete even if the nodes lost its content', async () => {
    await assertWholeWithout(await openEmbedded('lost'), embedded, 'after-loss')
  })

  describe('a move between two PostgreSQL servers', { skip: !postgresBin && 'needs PostgreSQL' }, () => {
    it('a move between two PostgreSQL servers needs only the commands of docs/operations.md', async () => {
      const [old, next] = await Promise.all([startPostgres(), startPostgres()])
      stops.push(() => Promise.all([old.stop(), next.stop()]))
      const [before, behind] = [old, next].map(({ url }) => createPool(url, 2, from.log)) as [Pool, Pool]
      stops.push(() => Promise.all([before.end(), behind.end()]))
      await migrate(before)
      await before.query(
        `INSERT INTO workspace (id, name, plan) VALUES (gen_random_uuid(), 'moved', 'pro');
         INSERT INTO repair (loop, reason, target) VALUES ('pins', 'old', 'x')`,
      )
      const cwd = join(root, 'stack')
      await mkdir(join(cwd, '.berth'), { recursive: true })
      const env = { PATH: `${postgresBin}:${process.env.PATH}`, NEW_DATABASE_URL: next.url }
      const options = ['--format', 'custom', '--no-owner', '--file', '.berth/berth.dump', old.url]
      await promisify(execFile)('pg_dump', options, { cwd, env })
      const { code, output } = await runCommands(OPERATIONS, 'postgres', { cwd, env, quiet: true })
      assert.equal(code, 0, output)
      assert.deepEqual(await requireSchema(behind), [])
      assert.deepEqual(await migrate(behind), [])
      const read = async (pool: Pool) => (await pool.query('SELECT * FROM workspace ORDER BY id')).rows
      assert.deepEqual(await read(behind), await read(before))
      const { rows } = await behind.query<{ id: string }>(
        `INSERT INTO repair (loop, reason, target) VALUES ('pins', 'new', 'x') RETURNING id`,
      )
      assert.equal(rows[0]?.id, '2', 'sequences continue')
    })
  })

  describe('a backup between Kubo and the embedded node', {
    skip: !kuboBinary && 'needs BERTH_TEST_KUBO',
  }, () => {
    const nodes: KuboNode[] = []
    let kubo: Storages
    before(async () => {
      for (let n = 0; n < 2; n++) nodes.push(await startKubo())
      stops.push(() => Promise.all(nodes.map((node) => node.stop())))
      const [open, closed] = nodes.map(({ apiUrl }) => apiUrl)
      kubo = {
        public: createKuboStorage({ network: 'public', apiUrl: open ?? '', otherApiUrl: closed }),
        private: createKuboStorage({ network: 'private', apiUrl: closed ?? '', otherApiUrl: open }),
      }
      for (const storage of Object.values(kubo)) {
        await storage.start()
        stops.push(() => storage.stop())
      }
    })
    it('a backup between Kubo and the embedded node is the same in both directions', async () => {
      const there = await emptyDatabase()
      await restore({ store: new FolderStore(join(root, 'counted')), ...parts(there, kubo) })
      assert.deepEqual(await pinned(kubo), await pinned(embedded))
      const store = new FolderStore(join(root, 'of-kubo'))
      await backup({ store, ...parts(there, kubo) })
      assert.deepEqual((await verifyBackup(store, { signal })).problems, [])
      assert.deepEqual(await readTables(store.where), await readTables(join(root, 'counted')))
      assert.deepEqual(await readBlocks(store.where), await readBlocks(join(root, 'counted')))
      const back = await emptyDatabase()
      const storages = await openEmbedded('back')
      await restore({ store, ...parts(back, storages) })
      assert.deepEqual(await pinned(storages), await pinned(embedded))
    })
    it('a backup into an earlier backup’s folder is complete even if Kubo is empty', async () => {
      const empty = await Promise.all([startKubo(), startKubo()])
      stops.push(() => Promise.all(empty.map((node) => node.stop())))
      const [open, closed] = empty.map(({ apiUrl }) => apiUrl)
      const lost: Storages = {
        public: createKuboStorage({ network: 'public', apiUrl: open ?? '', otherApiUrl: closed }),
        private: createKuboStorage({ network: 'private', apiUrl: closed ?? '', otherApiUrl: open }),
      }
      for (const storage of Object.values(lost)) {
        await storage.start()
        stops.push(() => storage.stop())
      }
      await assertWholeWithout(lost, kubo, 'after-loss-of-kubo')
      const later = await keep(kubo, 'public', randomBytes(5000))
      const { unreadable } = await backup({
        store: new FolderStore(join(root, 'counted')),
        ...parts(from, lost),
      })
      assert.deepEqual(
        unreadable.map(({ cid }) => cid),
        [later],
        'newer content is named',
      )
    })
    it('a backup to or from an unreachable node fails, reports it, and resumes when run again', async () => {
      await keep(kubo, 'private', randomBytes(5000))
      await nodes[1]?.kill()
      const store = new FolderStore(join(root, 'away'))
      await assert.rejects(backup({ store, ...parts(from, kubo) }), { code: 'unavailable' })
      await nodes[1]?.restart()
      const { unreadable } = await backup({ store, ...parts(from, kubo) })
      assert.deepEqual(unreadable, [])
      assert.deepEqual((await verifyBackup(store, { signal })).problems, [])
    })
  })
})
