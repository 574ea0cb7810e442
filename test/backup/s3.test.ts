/** Backups in a bucket: made while Berth runs, killed, verified, removed by age, and restored elsewhere. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { readdir, readFile, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { fileURLToPath } from 'node:url'
import { createPool, transaction } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { until } from '../support/processes.ts'
import { type S3Server, startS3, withoutS3 } from '../support/s3.ts'
import { runCli, type Stack, startStack } from '../support/stack.ts'
import { backupsOf, berth, type Filled, fill, makeDir, readBlocks, readTables, upload } from './world.ts'

const CLI = fileURLToPath(new URL('../../bin/berth.mjs', import.meta.url))
const TARGET = 's3://kept/of/berth'

describe('backups in a bucket of S3', { skip: withoutS3, timeout: 300_000 }, () => {
  let server: S3Server
  let stack: Stack
  let filled: Filled
  let env: NodeJS.ProcessEnv
  let root: string
  /** The bucket's objects, as the server stores them in a folder. */
  let dir: string
  let target: TestDatabase
  const stops: (() => Promise<unknown>)[] = []
  before(async () => {
    const made = await makeDir()
    root = made.path
    stops.push(made.remove)
    server = await startS3()
    stops.push(() => server.stop())
    dir = join(await server.createBucket('kept'), 'of/berth')
    stack = await startStack({
      env: {
        ...server.env,
        BERTH_S3_PATH_STYLE: 'true',
        BERTH_RUNTIME: 'process',
        BERTH_QUEUES: 'pins,repairs,storage',
      },
      database: 'of the run',
    })
    stops.push(() => stack.stop())
    env = { ...stack.env, BERTH_BACKUP_PASSPHRASE: 'a passphrase of the tests' }
    filled = await fill(stack)
  })
  after(async () => {
    for (const stop of stops.reverse()) await stop()
  })

  it('a killed backup is not complete in the bucket, and the next one reuses its blocks', async () => {
    const pool = createPool(stack.env.DATABASE_URL ?? '', 2, createLogger('test', 'silent'))
    await transaction(pool, async (client) => {
      // A table that is read after the blocks: the backup cannot be complete before it is killed.
      await client.query('LOCK TABLE secret IN ACCESS EXCLUSIVE MODE')
      const killed = spawn(process.execPath, [CLI, 'backup', TARGET], { env, stdio: 'ignore' })
      await until('blocks exist', async () => (await readBlocks(dir).catch(() => new Map())).size > 3)
      killed.kill('SIGKILL')
      await new Promise((resolve) => killed.once('close', resolve))
    })
    await until('its connection is closed', async () => {
      const { rowCount } = await pool.query(
        `SELECT FROM pg_stat_activity
         WHERE datname = current_database() AND application_name = 'berth-backup'`,
      )
      return rowCount === 0
    })
    await pool.end()
    assert.deepEqual(await backupsOf(dir), [])
    const marked = `backup-before-manifest@${join(root, 'mark')}`
    assert.notEqual((await runCli({ ...env, BERTH_CRASH_AT: marked }, 'backup', TARGET)).code, 0)
    assert.deepEqual(await backupsOf(dir), [])
    assert.equal((await readdir(join(dir, 'backups'))).length, 1, 'everything except the manifest')
    assert.match((await runCli(env, 'restore', TARGET)).stderr, /Berth runs on this database/)
    assert.match((await runCli(env, 'backup', 'verify', TARGET)).stderr, /has no backup that is whole/)

    const said = await berth(env, 'backup', TARGET, '--with-keys')
    assert.match(said, /written {3}0 B in 0 blocks; the rest was there/)
    assert.match(said, /✔ s3:\/\/kept\/of\/berth\/backups\/\d{4}-/)
    assert.equal((await readdir(join(dir, 'backups'))).length, 1, 'nothing is left half done')
    assert.doesNotMatch(said, /secret of the tests|tester/)
  })

  it('backups in a bucket write only new blocks, are listed, and are verified', async () => {
    filled.contents.push(await upload(filled.api, 'public', randomBytes(64), { name: 'new' }))
    assert.match(await berth(env, 'backup', TARGET), /written {3}64 B in 1 block;/)
    const rows = JSON.parse(await berth(env, 'backup', 'list', TARGET, '--json'))
    assert.deepEqual(
      rows.map(({ public: roots, keys }: { public: number; keys: string }) => [roots, keys]),
      [
        [3, 'yes'],
        [4, 'no'],
      ],
    )
    assert.match(await berth(env, 'backup', 'verify', TARGET), /✔ 2 backups, \d+ blocks, .*: all is there/)
    const [file = ''] = [...(await readBlocks(dir)).keys()].filter((path) => path.includes('private'))
    await truncate(join(dir, file), 10)
    const damaged = await runCli(env, 'backup', 'verify', TARGET)
    assert.match(damaged.stdout, new RegExp(`✘ ${file} is damaged`))
    assert.equal(damaged.code, 1)
    assert.match(await berth(env, 'backup', TARGET, '--recheck'), /in 1 block;/)
    assert.match(await berth(env, 'backup', 'verify', TARGET), /all is there/)
  })

  it('backups in a bucket have the same files as in a folder', async () => {
    const folder = join(root, 'folder')
    await berth(env, 'backup', folder)
    await berth(env, 'backup', TARGET)
    assert.deepEqual(await readTables(dir), await readTables(folder))
    assert.deepEqual(await readBlocks(dir), await readBlocks(folder))
  })

  it('backups in a bucket are removed by age, with the blocks that only they have', async () => {
    const [gone] = filled.contents.splice(3, 1)
    const before = await readBlocks(dir)
    await filled.api.delete(`/v3/files/private/${gone?.id}`)
    const said = await berth(env, 'backup', TARGET, '--keep', '1d', '--with-keys')
    assert.match(said, /removed {3}4 older backups, 2\.1 MiB of blocks/)
    assert.equal((await backupsOf(dir)).length, 1)
    const now = await readBlocks(dir)
    assert.ok(now.size < before.size)
    for (const path of before.keys()) assert.equal(now.has(path), path.includes('public'), path)
    assert.match(await berth(env, 'backup', 'verify', TARGET), /✔ 1 backup,/)
  })

  it('backups in a bucket are also made by a worker if BERTH_BACKUP_DIR names the bucket', async () => {
    const { ScheduledBackups } = await import('../../workers/reconcile/backups.ts')
    const { loadConfig } = await import('../../src/config.ts')
    const config = loadConfig({
      ...stack.env,
      BERTH_BACKUP_DIR: 's3://kept/by/itself/',
      BERTH_RUNTIME: 'process',
    })
    assert.equal(config.BERTH_BACKUP_DIR, 's3://kept/by/itself/')
    const former = { ...process.env }
    Object.assign(process.env, stack.env)
    target = await startDatabase({ isEmpty: true })
    try {
      const backups = new ScheduledBackups(config, config.BERTH_BACKUP_DIR ?? '')
      assert.equal(await backups.newest(), undefined)
      const before = Date.now()
      await backups.makeInTurn(
        { pool: { directUrl: stack.env.DATABASE_URL } as never, log: target.log },
        AbortSignal.timeout(240_000),
      )
      const made = await backupsOf(join(dir, '../../by/itself'))
      assert.equal(made.length, 1)
      const newest = (await backups.newest()) ?? 0
      assert.ok(newest >= before && newest <= Date.now(), `${newest}`)
    } finally {
      process.env = former
    }
  })

  it('backups in a bucket are restored into another Berth, even after a SIGKILL halfway', async () => {
    const second = { ...env, DATABASE_URL: target.url, BERTH_DATA_DIR: join(root, 'second') }
    const marked = `restore-after-content@${join(root, 'restored')}`
    assert.notEqual((await runCli({ ...second, BERTH_CRASH_AT: marked }, 'restore', TARGET)).code, 0)
    assert.match(
      await berth(second, 'restore', TARGET),
      /✔ restored .*: \d+ rows, 4 public roots, 0 private roots/,
    )
    await berth(second, 'backup', join(root, 'copy'))
    assert.deepEqual(await readTables(join(root, 'copy')), await readTables(dir))
    assert.deepEqual(await readBlocks(join(root, 'copy')), await readBlocks(dir))
    await target.stop()
  })

  it('backups in a bucket fail with its name if it is missing or the server is away', async () => {
    const nowhere = await runCli(env, 'backup', 's3://nowhere')
    assert.equal(nowhere.code, 1)
    assert.match(nowhere.stderr, /^s3:\/\/nowhere: there is no such bucket/)
    await server.kill()
    const away = await runCli(env, 'backup', 'list', TARGET)
    assert.equal(away.code, 1)
    assert.match(away.stderr, /^s3:\/\/kept: the server does not answer: .*ECONNREFUSED/)
    await rm(join(root, 'copy'), { recursive: true, force: true })
    assert.ok(await readFile(join(dir, 'berth-backup.json')))
  })
})
