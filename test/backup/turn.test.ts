/** A backup loses its turn while it removes old backups; another backup may be writing by then. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { after, before, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { backup } from '../../src/backup/backup.ts'
import { FolderStore } from '../../src/backup/folder-store.ts'
import { verifyBackup } from '../../src/backup/verify.ts'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import type { Storage } from '../../src/storage/port.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { until } from '../support/processes.ts'
import { makeDir } from './world.ts'

const { signal } = new AbortController()
let database: TestDatabase
let dir: Awaited<ReturnType<typeof makeDir>>
let storages: Record<'public' | 'private', Storage>
before(async () => {
  database = await startDatabase()
  dir = await makeDir()
  const open = async (network: 'public' | 'private') => {
    const storage = createEmbeddedStorage({ dir: join(dir.path, network), network, offline: true })
    await storage.start()
    return storage
  }
  storages = { public: await open('public'), private: await open('private') }
})
after(async () => {
  await database?.stop()
  await dir?.remove()
})

/** A public file of many blocks. */
async function addFile(workspaceId: string): Promise<void> {
  async function* entries() {
    yield { path: 'file', content: Readable.from([randomBytes(3_000_000)]) }
  }
  const { cid } = await storages.public.add(entries(), { cidVersion: 1, signal })
  await database.pool.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes, user_id, size, number_of_files, mime_type, pinned_at)
     VALUES ($1, $2, 'public', 'pinned', $3, $3, '{}', '{}', $1, 3000000, 1, 'text/plain', now())`,
    [uuidv7(), workspaceId, `${cid.toV1()}`],
  )
}

const sessions = async () =>
  (
    await database.pool.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'berth-backup'`,
    )
  ).rows.length

it('a backup that has lost its turn removes nothing of the backup that has it', async () => {
  const workspaceId = await database.createWorkspace()
  const where = join(dir.path, 'backups')
  const run = (store: FolderStore) =>
    backup({
      store,
      config: { BERTH_DATA_DIR: dir.path } as never,
      databaseUrl: database.url,
      storages,
      runtime: { why: 'none' },
      keep: { d: 1, w: 0, m: 0 },
      signal,
    })
  let isOther = false
  class Interrupted extends FolderStore {
    override async *list(folder: string) {
      if (folder === 'ipfs/public/blocks' && !isOther) {
        isOther = true
        await until('the session with the turn has ended', async () => (await sessions()) === 0)
        await addFile(workspaceId)
        await run(new FolderStore(where))
      }
      yield* super.list(folder)
    }
  }
  await addFile(workspaceId)
  await assert.rejects(run(new Interrupted(where)))
  const { problems } = await verifyBackup(new FolderStore(where), { signal })
  assert.deepEqual([isOther, problems], [true, []])
})
