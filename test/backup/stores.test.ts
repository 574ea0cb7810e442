/** Where backups are stored: one suite, run on a folder and on an S3 bucket. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { mkdir, readdir, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { openStore, resolveTarget } from '../../src/backup/open-store.ts'
import { BackupError, type BackupStore } from '../../src/backup/store.ts'
import { type S3Server, startS3, withoutS3 } from '../support/s3.ts'
import { makeDir } from './world.ts'

/** More than one upload part. */
const LARGE = 40 * 1024 * 1024

describe('where backups are', () => {
  it('a backup store is a folder, or a bucket given by its URL', () => {
    assert.equal(resolveTarget('s3://bucket/some/prefix/'), 's3://bucket/some/prefix')
    assert.equal(resolveTarget('s3://bucket'), 's3://bucket')
    assert.equal(resolveTarget('/srv/backups/'), '/srv/backups')
    assert.throws(() => resolveTarget('s3:///prefix'), /^BackupError: s3:\/\/\/prefix names no bucket/)
    assert.match(resolveTarget('backups'), /^\/.*\/backups$/)
  })
})

function suite(open: () => Promise<BackupStore>): void {
  let store: BackupStore
  before(async () => {
    store = await open()
    await store.prepare()
  })
  after(() => store.close())
  const pathsOf = async (folder: string): Promise<string[]> => {
    const paths: string[] = []
    for await (const path of store.list(folder)) paths.push(path)
    return paths.sort()
  }

  it('a backup store is empty at first', async () => {
    assert.deepEqual(await store.names('backups'), [])
    assert.deepEqual(await pathsOf('backups'), [])
    assert.equal(await store.size('backups/a'), null)
    assert.equal(await store.read('backups/a'), null)
    await assert.rejects(store.stream('backups/a').toArray(), { code: 'ENOENT' })
  })

  it('a backup store returns files as they were written, and replaces former ones', async () => {
    await store.write('backups/one/a.txt', Buffer.from('first'))
    await store.write('backups/one/a.txt', Buffer.from('second'))
    await store.write('backups/one/empty', new Uint8Array())
    await store.write('backups/two/deep/b.txt', Buffer.from('b'))
    await store.write('top.json', Buffer.from('{}'))
    await store.settle()
    assert.equal(String(await store.read('backups/one/a.txt')), 'second')
    assert.equal(await store.size('backups/one/a.txt'), 6)
    assert.equal(await store.size('backups/one/a'), null)
    assert.equal(await store.size('backups/one/empty'), 0)
    assert.equal((await store.read('backups/one/empty'))?.length, 0)
    assert.deepEqual((await store.names('backups')).sort(), ['one', 'two'])
    assert.deepEqual((await store.names('backups/one')).sort(), ['a.txt', 'empty'])
    assert.deepEqual(await pathsOf('backups'), [
      'backups/one/a.txt',
      'backups/one/empty',
      'backups/two/deep/b.txt',
    ])
    assert.ok((await store.names('')).includes('top.json'))
  })

  it('a backup store reads and writes streams of unknown length', async () => {
    for (const bytes of [Buffer.alloc(0), randomBytes(100_000), randomBytes(LARGE)]) {
      async function* content() {
        for (let from = 0; from < bytes.length; from += 1_000_000)
          yield bytes.subarray(from, from + 1_000_000)
      }
      await store.write('backups/one/stream', content())
      assert.equal(await store.size('backups/one/stream'), bytes.length)
      const found = Buffer.concat(await store.stream('backups/one/stream').toArray())
      assert.ok(found.equals(bytes))
    }
  })

  it('a backup store writes a stream completely or not at all, and fails with the source’s error', async () => {
    async function* broken() {
      yield randomBytes(LARGE / 2)
      throw new RangeError('it broke')
    }
    await assert.rejects(store.write('backups/one/broken', broken()), new RangeError('it broke'))
    assert.equal(await store.size('backups/one/broken'), null)
    assert.deepEqual((await store.names('backups/one')).sort(), ['a.txt', 'empty', 'stream'])
  })

  it('a backup store lists its blocks, including blocks that were added and removed', async () => {
    const path = (n: number) => `ipfs/public/blocks/${n % 3}/${n}.data`
    await Promise.all(Array.from({ length: 150 }, (_, n) => store.write(path(n), Buffer.alloc(n, 1))))
    assert.equal(await store.size(path(149)), 149)
    assert.equal(await store.size('ipfs/private/blocks/1/1.data'), null)
    await store.remove([path(1), path(2), path(999)])
    assert.equal(await store.size(path(1)), null)
    assert.equal((await pathsOf('ipfs/public/blocks')).length, 148)
    await store.write(path(1), Buffer.from('again'))
    assert.equal(await store.size(path(1)), 5)
  })

  it('a backup store is empty when everything is removed', async () => {
    await store.remove(await pathsOf('backups'))
    await store.remove(await pathsOf('ipfs'))
    await store.remove(['top.json'])
    assert.deepEqual(
      (await store.names('')).filter((name) => !name.startsWith('.')),
      [],
    )
    await store.remove([])
  })
}

describe('a folder of backups', () => {
  let root: string
  let removeRoot: () => Promise<void>
  before(async () => {
    const made = await makeDir()
    root = made.path
    removeRoot = made.remove
  })
  after(() => removeRoot())
  suite(() => openStore(join(root, 'new/folder'), { pathStyle: false }))

  it('a folder of backups is named in the error if it cannot be used', async () => {
    await writeFile(join(root, 'file'), '')
    const store = await openStore(join(root, 'file'), { pathStyle: false })
    await assert.rejects(store.prepare(), (error) => {
      assert.ok(error instanceof BackupError)
      assert.match(error.message, /\/file cannot be used: E\w+/)
      return true
    })
  })

  it('a folder of backups is cleaned of files that a killed writer left', async () => {
    await mkdir(join(root, 'left/.tmp'), { recursive: true })
    await writeFile(join(root, 'left/.tmp/half'), 'half')
    await (await openStore(join(root, 'left'), { pathStyle: false })).prepare()
    assert.deepEqual(await readdir(join(root, 'left/.tmp')), [])
  })
})

describe('a bucket of backups', { skip: withoutS3, timeout: 120_000 }, () => {
  let server: S3Server
  /** The SDK reads its settings from the environment. */
  const use = (env: Record<string, string | undefined>) => {
    for (const [name, value] of Object.entries(env))
      if (value === undefined) delete process.env[name]
      else process.env[name] = value
  }
  const former = Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith('AWS_')))
  before(async () => {
    server = await startS3()
    use({ ...server.env, AWS_EC2_METADATA_DISABLED: 'true' })
    await server.createBucket('berth')
  })
  after(async () => {
    await server?.stop()
    for (const name of Object.keys(process.env)) if (name.startsWith('AWS_')) delete process.env[name]
    use(former)
  })
  describe('with a prefix', () => suite(() => openStore('s3://berth/some/prefix/', { pathStyle: true })))
  describe('with none', () => suite(() => openStore('s3://berth', { pathStyle: true })))

  it('a bucket of backups ignores objects whose prefix only begins like its own', async () => {
    const [a, ab] = await Promise.all(
      ['s3://berth/a', 's3://berth/ab'].map((target) => openStore(target, { pathStyle: true })),
    )
    await ab?.write('backups/x', Buffer.from('x'))
    assert.deepEqual(await a?.names(''), [])
    assert.deepEqual(await ab?.names(''), ['backups'])
  })

  const refusal = async (
    env: Record<string, string | undefined>,
    target = 's3://berth/x',
  ): Promise<string> => {
    const kept = Object.fromEntries(Object.keys(env).map((name) => [name, process.env[name]]))
    use(env)
    try {
      const store = await openStore(target, { pathStyle: true })
      return await store.write('a', Buffer.from('a')).then(
        () => assert.fail('the upload was accepted'),
        (error) => {
          assert.ok(error instanceof BackupError, error.stack)
          return error.message
        },
      )
    } finally {
      use(kept)
    }
  }
  it('a bucket of backups is named with its setting if it is missing or cannot be used', async () => {
    assert.match(await refusal({}, 's3://nowhere/x'), /^s3:\/\/nowhere: there is no such bucket/)
    const wrong = await refusal({ AWS_SECRET_ACCESS_KEY: 'a completely different one' })
    assert.match(
      wrong,
      /^s3:\/\/berth: the key is refused \(SignatureDoesNotMatch\): look at AWS_ACCESS_KEY_ID/,
    )
    assert.doesNotMatch(wrong, /quite another one|tester/)
    assert.match(await refusal({ AWS_ACCESS_KEY_ID: 'nobody' }), /^s3:\/\/berth: the key is refused/)
    const stranger = await server.createStranger()
    assert.match(await refusal(stranger), /^s3:\/\/berth: this key has not the right to do that/)
    assert.match(
      await refusal({ AWS_ACCESS_KEY_ID: undefined, AWS_SECRET_ACCESS_KEY: undefined }),
      /^s3:\/\/berth: there are no credentials: set AWS_ACCESS_KEY_ID/,
    )
    assert.match(await refusal({ AWS_REGION: undefined }), /^s3:\/\/berth: AWS_REGION: not set/)
    assert.match(
      await refusal({ AWS_ENDPOINT_URL_S3: 'http://127.0.0.1:1' }),
      /^s3:\/\/berth: the server does not answer: .*ECONNREFUSED/,
    )
  })
})
