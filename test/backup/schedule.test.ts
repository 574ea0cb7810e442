/** Backups that a worker makes automatically, which of them are removed, and how the age of the newest is reported. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { cp, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import { createPool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { ScheduledBackups } from '../../workers/reconcile/backups.ts'
import { until } from '../support/processes.ts'
import { readMetrics, type Stack, startStack } from '../support/stack.ts'
import { backupsOf, berth, clientOf, makeDir, readBlocks, upload } from './world.ts'

describe('BERTH_BACKUP_DIR', { timeout: 200_000 }, () => {
  let stack: Stack
  let dir: string
  let removeDir: () => Promise<void>
  before(async () => {
    const made = await makeDir()
    dir = join(made.path, 'backups')
    removeDir = made.remove
    stack = await startStack({
      env: { BERTH_RUNTIME: 'process', BERTH_BACKUP_DIR: dir, BERTH_INTERVALS: 'backups=3600' },
      database: 'of the run',
    })
  })
  after(async () => {
    await stack?.stop()
    await removeDir?.()
  })

  it('BERTH_BACKUP_DIR makes a worker create the first backup and report its age', async () => {
    await until('a backup exists', async () => (await backupsOf(dir)).length === 1)
    const age = async () => {
      const text = await (await readMetrics(stack.env, 'worker')).text()
      return Number(/^berth_backup_age_seconds (\S+)$/m.exec(text)?.[1])
    }
    const first = await age()
    assert.ok(first > 0 && first < 120, `${first}`)
    await until('it grows older', async () => (await age()) > first)
    assert.match(await berth(stack.env, 'backup', 'verify', dir), /✔ 1 backup,/)
  })

  it('BERTH_BACKUP_DIR keeps the last backup of each period with its blocks, and no other block', async () => {
    const api = await clientOf(stack.url, await stack.createKey())
    const gone = await upload(api, 'public', randomBytes(3_000_000), { name: 'gone' })
    await berth(stack.env, 'backup', dir)
    const before = await readBlocks(dir)
    await api.delete(`/v3/files/public/${gone.id}`)
    const kept = await upload(api, 'public', randomBytes(2_000_000), { name: 'kept' })
    // The copy of a backup, named after a day long ago, has the first file.
    const [, second] = await backupsOf(dir)
    await cp(join(dir, 'backups', second ?? ''), join(dir, 'backups/2026-01-05T03-00-00.000Z'), {
      recursive: true,
    })
    assert.doesNotMatch(await berth(stack.env, 'backup', dir, '--keep', '5d'), /removed {3}[3-9]/)
    for (const path of before.keys()) assert.ok((await readBlocks(dir)).has(path), 'the old one still has it')
    const said = await berth(stack.env, 'backup', dir, '--keep', '1d')
    assert.match(said, /removed {3}2 older backups, 2\.9 MiB of blocks/)
    assert.equal((await readdir(join(dir, 'backups'))).length, 1)
    const [block] = [...before.keys()].filter((path) => path.includes('public'))
    assert.ok(!(await readBlocks(dir)).has(block ?? ''))
    assert.match(await berth(stack.env, 'backup', 'verify', dir), /✔ 1 backup,/)
    assert.match(await berth(stack.env, 'backup', dir), /in 0 blocks/)
    assert.ok(kept.cid)
  })

  it('BERTH_BACKUP_DIR removes no block while a manifest cannot be read', async () => {
    const [name = ''] = await backupsOf(dir)
    const old = join(dir, 'backups/2026-01-05T03-00-00.000Z')
    await cp(join(dir, 'backups', name), old, { recursive: true })
    await writeFile(join(old, 'manifest.json'), '{')
    const blocks = await readBlocks(dir)
    await assert.rejects(berth(stack.env, 'backup', dir, '--keep', '9d'), /manifest\.json is damaged/)
    assert.deepEqual(await readBlocks(dir), blocks)
  })

  it('BERTH_BACKUP_DIR with a backup from the future gets no new backups, and the worker reports why', async () => {
    const names = await backupsOf(dir)
    const ahead = `${new Date().getUTCFullYear() + 1}-01-05T03-00-00.000Z`
    await rm(join(dir, 'backups/2026-01-05T03-00-00.000Z'), { recursive: true })
    await cp(join(dir, 'backups', names.at(-1) ?? ''), join(dir, 'backups', ahead), { recursive: true })
    const config = loadConfig(stack.env)
    const log = createLogger('test', 'silent')
    const pool = createPool(config.DATABASE_URL ?? '', 2, log)
    const signal = AbortSignal.timeout(60_000)
    await assert.rejects(
      new ScheduledBackups(config, dir).makeInTurn({ pool, log }, signal),
      (error: Error) => error.message.includes(`has a backup of a time to come (${ahead})`),
    )
    await pool.end()
    assert.ok((await backupsOf(dir)).includes(ahead))
  })
})
