/** A backup of one Berth, restored into others: what is restored, what is refused, and what a kill leaves. */
import assert from 'node:assert/strict'
import { copyFile, mkdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { gatewayReader } from '../support/gateway.ts'
import { runCli, type Stack, startOnce, startStack } from '../support/stack.ts'
import { backupsOf, berth, clientOf, type Filled, fill, makeDir, readBlocks, readTables } from './world.ts'

const SETTINGS = { BERTH_RUNTIME: 'process', BERTH_QUEUES: 'pins,repairs,storage' }

describe('berth restore', { timeout: 400_000 }, () => {
  let stack: Stack | undefined
  let filled: Filled
  let root: string
  let dir: string
  let removeRoot: () => Promise<void>
  let env: NodeJS.ProcessEnv
  const databases: TestDatabase[] = []
  /** Settings of a Berth that was never started, with a new data folder. */
  const fresh = async (name: string) => {
    const database = await startDatabase({ isEmpty: true })
    databases.push(database)
    return { ...env, DATABASE_URL: database.url, BERTH_DATA_DIR: join(root, name) }
  }
  before(async () => {
    const made = await makeDir()
    root = made.path
    removeRoot = made.remove
    dir = join(root, 'backups')
    stack = await startStack({ env: SETTINGS, database: 'of the run' })
    filled = await fill(stack)
    env = { ...stack.env, BERTH_BACKUP_PASSPHRASE: 'a passphrase of the tests' }
    await berth(env, 'backup', dir, '--with-keys')
  })
  after(async () => {
    await stack?.stop()
    for (const database of databases) await database.stop()
    await removeRoot?.()
  })

  it('berth restore refuses a Berth that runs or is not empty', async () => {
    const running = await runCli(env, 'restore', dir)
    assert.equal(running.code, 1)
    assert.match(running.stderr, /Berth runs on this database: stop it, then restore/)
    await stack?.stop()
    stack = undefined
    const used = await fresh('used')
    await berth(used, 'migrate')
    await berth(used, 'workspaces', 'create', 'mine')
    const { code, stderr } = await runCli(used, 'restore', dir)
    assert.equal(code, 1)
    assert.match(
      stderr,
      /not empty \(workspace has 1 row, app_user has 1 row\): restore into another BERTH_DATA_DIR/,
    )
  })

  it('berth restore restores all rows and blocks with the keys, and the Berth serves them', async () => {
    const target = { ...env, DATABASE_URL: '', BERTH_DATA_DIR: join(root, 'restored') }
    const said = await berth(target, 'restore', dir)
    assert.match(
      said,
      /✔ restored .*: \d+ rows, 3 public roots, 1 private root\n {2}JWT_KEY is under .*\n {2}SECRETS_KEY/,
    )
    await berth(target, 'backup', join(root, 'second'))
    assert.deepEqual(await readTables(join(root, 'second')), await readTables(dir))
    assert.deepEqual(await readBlocks(join(root, 'second')), await readBlocks(dir))

    stack = await startStack({ env: { ...SETTINGS, BERTH_DATA_DIR: join(root, 'restored') } })
    const api = await clientOf(stack.url, filled.key)
    const { files } = (await api.get('/v3/files/public')).body.data
    assert.equal(files.length, 3)
    assert.equal(files[0].keyvalues.odd, 'a\ttab, a\nline, a \\ and \\N, ünï')
    const gateway = gatewayReader(stack.url, 'default.gateway.localhost')
    // The first one is swapped to the second one.
    for (const { cid, bytes } of filled.contents.slice(1, 3))
      assert.deepEqual((await gateway.get(`/ipfs/${cid}`)).bytes, bytes)
    const { secrets } = (await api.get('/v0/secrets')).body
    assert.deepEqual(
      secrets.map(({ name }: { name: string }) => name),
      ['TOKEN'],
    )
    await stack.stop()
    stack = undefined
  })

  it('berth restore names missing and wrong keys, and reads them where they are put', async () => {
    const target: NodeJS.ProcessEnv = { ...(await fresh('keys')), BERTH_BACKUP_PASSPHRASE: '' }
    const missing = await runCli(target, 'restore', dir)
    assert.equal(missing.code, 1)
    assert.match(
      missing.stderr,
      /JWT_KEY: is not here; set BERTH_BACKUP_PASSPHRASE to take it out of the backup, or set it/,
    )
    assert.match(
      missing.stderr,
      /SECRETS_KEY: is not here.*--without-keys\) its secrets and channels of agents are lost/,
    )
    const other = await runCli({ ...target, SECRETS_KEY: 'x'.repeat(32) }, 'restore', dir)
    assert.match(other.stderr, /SECRETS_KEY: is set to another key than that of the backup/)
    const wrong = await runCli({ ...target, BERTH_BACKUP_PASSPHRASE: 'another passphrase' }, 'restore', dir)
    assert.match(wrong.stderr, /keys\.age does not open with this BERTH_BACKUP_PASSPHRASE/)
    await copyFile(join(root, 'restored/jwt.key'), join(root, 'keys/jwt.key'))
    const changed = {
      SECRETS_KEY: 'x'.repeat(32),
      SECRETS_KEY_PREVIOUS_FILE: join(root, 'restored/secrets.key'),
    }
    assert.match(await berth({ ...target, ...changed }, 'restore', dir), /✔ restored/)
  })

  it('berth restore works without the keys if told to', async () => {
    const target = { ...(await fresh('keyless')), BERTH_BACKUP_PASSPHRASE: '' }
    assert.match(await berth(target, 'restore', dir, '--without-keys'), /✔ restored/)
  })

  for (const point of ['restore-after-content', 'restore-after-rows'])
    it(`berth restore killed at ${point} locks all roles out of the database, and resumes`, async () => {
      const target = await fresh(point)
      const killed = await runCli(
        { ...target, BERTH_CRASH_AT: `${point}@${join(root, `mark-${point}`)}` },
        'restore',
        dir,
      )
      assert.notEqual(killed.code, 0)
      const unfinished = /a restore into this database has not ended; run the same `npx berth restore` again/
      assert.match((await runCli(target, 'migrate')).stderr, unfinished)
      assert.match((await runCli(target, 'backup', join(root, 'never'))).stderr, unfinished)
      const started = await startOnce(target)
      assert.notEqual(started.code, 0)
      assert.match(started.output, unfinished)
      assert.match(await berth(target, 'restore', dir), /✔ restored/)
      const again = join(root, `again-${point}`)
      await berth(target, 'backup', again)
      assert.deepEqual(await readTables(again), await readTables(dir))
      assert.deepEqual(await readBlocks(again), await readBlocks(dir))
    })

  it('berth restore changes nothing if the backup is damaged or from a newer Berth', async () => {
    const backup = join(dir, 'backups', (await backupsOf(dir)).at(-1) ?? '')
    const target = await fresh('unchanged')
    const manifest = await readFile(join(backup, 'manifest.json'), 'utf8')
    try {
      const newer = { ...JSON.parse(manifest), berth: '9.0.0' }
      newer.schema.push('9999_future')
      await writeFile(join(backup, 'manifest.json'), JSON.stringify(newer))
      assert.match(
        (await runCli(target, 'restore', dir)).stderr,
        /made by a newer Berth \(9\.0\.0, schema 9999_future\): restore it with that one/,
      )
      await writeFile(join(backup, 'manifest.json'), JSON.stringify({ ...JSON.parse(manifest), format: 2 }))
      assert.match((await runCli(target, 'restore', dir)).stderr, /written by a newer Berth \(format 2\)/)
    } finally {
      await writeFile(join(backup, 'manifest.json'), manifest)
    }
    const table = join(backup, 'tables/file.copy.gz')
    const bytes = await readFile(table)
    await writeFile(table, bytes.subarray(1))
    assert.match(
      (await runCli(target, 'restore', dir)).stderr,
      /is damaged:\n {2}tables\/file\.copy\.gz has \d+ bytes/,
    )
    await writeFile(table, bytes)
    const [block] = [...(await readBlocks(dir)).keys()].filter((path) => path.includes('private'))
    await rm(join(dir, block ?? ''))
    assert.match(
      (await runCli(target, 'restore', dir)).stderr,
      /private \w+ cannot be restored: .* is not stored here/,
    )
    // The backup cannot be restored, and this Berth can still be set up as a new one.
    assert.match((await runCli(target, 'migrate')).stderr, /has not ended/)
  })

  it('berth restore rejects a folder without a backup', async () => {
    await mkdir(join(root, 'nothing'))
    assert.match(
      (await runCli(await fresh('nobody'), 'restore', join(root, 'nothing'))).stderr,
      /is no folder of backups/,
    )
  })
})
