/** Backups of a running Berth: what is in them, what is written again, and what verify detects. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { appendFile, mkdir, readdir, readFile, rename, rm, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { runCli, type Stack, startStack } from '../support/stack.ts'
import { backupsOf, berth, type Filled, fill, makeDir, readBlocks, readTables, upload } from './world.ts'

const PASSPHRASE = 'a passphrase of the tests'

describe('berth backup', { timeout: 600_000 }, () => {
  let stack: Stack
  let filled: Filled
  let env: NodeJS.ProcessEnv
  let dir: string
  let removeDir: () => Promise<void>
  before(async () => {
    stack = await startStack({
      env: { BERTH_RUNTIME: 'process', BERTH_QUEUES: 'pins,repairs,storage' },
      database: 'of the run',
    })
    env = { ...stack.env, BERTH_BACKUP_PASSPHRASE: PASSPHRASE }
    filled = await fill(stack)
    const made = await makeDir()
    dir = join(made.path, 'backups')
    removeDir = made.remove
  })
  after(async () => {
    await stack?.stop()
    await removeDir?.()
  })

  const run = (...args: string[]) => runCli(env, ...args)

  it('berth backup writes all rows and all pinned blocks, and lists the keys that it omits', async () => {
    const said = await berth(env, 'backup', dir)
    assert.match(said, /database {2}\d+ rows of \d+ tables/)
    assert.match(said, /public {4}3 roots\n {2}private {3}1 root\n/)
    assert.match(said, /✔ .*\/backups\/\d{4}-.*Z, in [\d.]+ s/)
    assert.match(said, /keep elsewhere:\n {2}JWT_KEY, .*jwt\.key: .*\n {2}SECRETS_KEY, .*secrets\.key: /)
    const tables = await readTables(dir)
    assert.equal(tables['file.copy.gz']?.split('\n').length, filled.contents.length + 1)
    for (const name of ['swap', 'secret', 'api_key', 'gateway', 'file_group', 'workspace'])
      assert.notEqual(tables[`${name}.copy.gz`], '', name)
    assert.equal(tables['worker.copy.gz'], undefined, 'processes that run now are not part of it')
    const blocks = await readBlocks(dir)
    const kept = await readBlocks(stack.dataDir)
    for (const [path, hash] of blocks) assert.equal(kept.get(path), hash)
    assert.ok(blocks.size >= 10, 'leaves and nodes')
    assert.match(await berth(env, 'backup', 'verify', dir), /✔ 1 backup, \d+ blocks, .*: all is there/)
  })

  it('berth backup includes no key, API key or secret', async () => {
    const keys = await Promise.all(
      ['jwt.key', 'secrets.key', 'agent-proxy.key'].map(async (name) =>
        (await readFile(join(stack.dataDir, name), 'utf8')).trim(),
      ),
    )
    const all = JSON.stringify(await readTables(dir)) + (await manifestText(dir))
    for (const text of [...keys, filled.key, 'encrypted value']) assert.ok(!all.includes(text))
  })

  it('berth backup writes no block that the folder already has', async () => {
    const before = await readBlocks(dir)
    const added = await upload(filled.api, 'public', randomBytes(64), { name: 'new' })
    filled.contents.push(added)
    const said = await berth(env, 'backup', dir)
    assert.match(said, /public {4}4 roots/)
    assert.match(said, /written {3}64 B in 1 block;/)
    const now = await readBlocks(dir)
    assert.equal(now.size, before.size + 1)
    assert.equal((await backupsOf(dir)).length, 2)
  })

  it('berth backup includes the keys if a passphrase encrypts them', async () => {
    const said = await berth(env, 'backup', dir, '--with-keys')
    assert.match(said, /JWT_KEY and SECRETS_KEY are in it, encrypted/)
    const newest = join(dir, 'backups', (await backupsOf(dir)).at(-1) ?? '')
    const encrypted = await readFile(join(newest, 'keys.age'))
    assert.match(encrypted.toString('latin1'), /^age-encryption\.org\/v1\n-> scrypt /)
    const { decryptKeys } = await import('../../src/backup/keys.ts')
    const opened = await decryptKeys(encrypted, PASSPHRASE)
    assert.equal(opened.JWT_KEY, (await readFile(join(stack.dataDir, 'jwt.key'), 'utf8')).trim())
    await assert.rejects(
      decryptKeys(encrypted, 'another passphrase'),
      /does not open with this BERTH_BACKUP_PASSPHRASE/,
    )
    const { code, stderr } = await runCli(stack.env, 'backup', dir, '--with-keys')
    assert.equal(code, 1)
    assert.match(stderr, /BERTH_BACKUP_PASSPHRASE: not set/)
  })

  it('berth backup lists existing backups', async () => {
    const rows = JSON.parse(await berth(env, 'backup', 'list', dir, '--json'))
    assert.deepEqual(
      rows.map(({ public: roots, keys }: { public: number; keys: string }) => [roots, keys]),
      [
        [3, 'no'],
        [4, 'no'],
        [4, 'yes'],
      ],
    )
  })

  for (const point of ['backup-after-blocks', 'backup-before-manifest'])
    it(`berth backup leaves no backup if killed at ${point}, and the next one writes no block twice`, async () => {
      const names = await backupsOf(dir)
      const added = await upload(filled.api, 'private', randomBytes(1_500_000), { name: point })
      filled.contents.push(added)
      const killed = await runCli(
        { ...env, BERTH_CRASH_AT: `${point}@${join(dir, '..', point)}` },
        'backup',
        dir,
      )
      assert.notEqual(killed.code, 0)
      assert.deepEqual(await backupsOf(dir), names)
      assert.match(await berth(env, 'backup', dir), /written {3}0 B in 0 blocks/)
      assert.deepEqual(
        (await readdir(join(dir, 'backups'))).length,
        names.length + 1,
        'nothing is left half done',
      )
      assert.match(await berth(env, 'backup', 'verify', dir), /all is there/)
    })

  it('a second concurrent berth backup is refused', async () => {
    const { withCopyConnection } = await import('../../src/db/copy-connection.ts')
    const { tryLockSession } = await import('../../src/db/advisory-locks.ts')
    const { code, stderr } = await withCopyConnection(env.DATABASE_URL ?? '', async (other) => {
      assert.ok(await tryLockSession(other as never, 'backupFiles'))
      return run('backup', dir)
    })
    assert.equal(code, 1)
    assert.match(stderr, /another process makes a backup of this Berth just now/)
  })

  it('berth backup refuses a folder with other files, and the backups of another Berth', async () => {
    const other = join(dir, '..', 'other')
    await mkdir(other)
    await writeFile(join(other, 'letter.txt'), 'mine')
    assert.match((await run('backup', other)).stderr, /is not empty and no folder of backups/)
    assert.match((await run('backup', 'verify', other)).stderr, /is no folder of backups/)
    const head = join(other, 'berth-backup.json')
    await writeFile(head, '{"format":1,"instance":"somebody"}')
    assert.match((await run('backup', other)).stderr, /has backups of another Berth \(somebody\)/)
    await writeFile(head, '{"format":2,"instance":"somebody"}')
    assert.match((await run('backup', other)).stderr, /was written by a newer Berth \(format 2\)/)
  })

  describe('berth backup verify', () => {
    const newest = async () => join(dir, 'backups', (await backupsOf(dir)).at(-1) ?? '')
    const finds = async (what: RegExp) => {
      const { code, stdout } = await run('backup', 'verify', dir)
      assert.equal(code, 1)
      assert.match(stdout, what)
    }
    const aside = async (path: string, work: () => Promise<void>) => {
      const bytes = await readFile(path)
      await work()
      await rm(path, { force: true })
      await writeFile(path, bytes)
    }
    it('berth backup verify names a table file that is missing, cut off or changed', async () => {
      const path = join(await newest(), 'tables/file.copy.gz')
      await aside(path, async () => {
        await truncate(path, 20)
        await finds(/backups\/.*\/tables\/file\.copy\.gz has 20 bytes, not \d+/)
        await rm(path)
        await finds(/tables\/file\.copy\.gz is missing/)
      })
      await aside(path, async () => {
        const bytes = await readFile(path)
        bytes[30] = (bytes[30] ?? 0) ^ 1
        await writeFile(path, bytes)
        await finds(/tables\/file\.copy\.gz has another checksum/)
      })
    })
    it('berth backup verify names a damaged manifest', async () => {
      const path = join(await newest(), 'manifest.json')
      await aside(path, async () => {
        await appendFile(path, '}')
        await finds(/manifest\.json: .* is damaged/)
      })
    })
    it('berth backup verify names damaged blocks with their roots, and --recheck repairs them', async () => {
      const [file] = [...(await readBlocks(dir)).keys()].filter((path) => path.includes('private'))
      const path = join(dir, file ?? '')
      await truncate(path, 10)
      await finds(new RegExp(`${file} is damaged\\n.*private bafy?k?\\w+ has not its block \\w+`))
      await rename(path, `${path}.away`)
      await finds(/private \w+ has not its block \w+/)
      await rm(`${path}.away`)
      assert.match(await berth(env, 'backup', dir), /in 0 blocks/)
      assert.match(await berth(env, 'backup', dir, '--recheck'), /in 1 block;/)
      assert.match(await berth(env, 'backup', 'verify', dir), /all is there/)
    })
  })

  it('berth backup reports what Berth itself has lost, and backs up the rest', async () => {
    const lost = await upload(filled.api, 'private', randomBytes(50), { name: 'lost' })
    const { BlockFolder } = await import('../../src/storage/embedded/blocks.ts')
    const { CID } = await import('multiformats/cid')
    const folder = new BlockFolder(join(stack.dataDir, 'ipfs/private'), { touchAfterMs: 1e9 })
    await rm(folder.path(CID.parse(lost.cid)))
    const { code, stdout } = await run('backup', dir)
    assert.equal(code, 1)
    assert.match(
      stdout,
      new RegExp(`✘ Berth itself has not got the content of 1 root:\\n {2}private ${lost.cid}`),
    )
    const verified = await berth(env, 'backup', 'verify', dir)
    assert.match(verified, new RegExp(`all is there.*\\n {2}private ${lost.cid} is in none`))
  })
})

async function manifestText(dir: string): Promise<string> {
  return readFile(join(dir, 'backups', (await backupsOf(dir)).at(-1) ?? '', 'manifest.json'), 'utf8')
}
