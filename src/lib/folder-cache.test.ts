import assert from 'node:assert/strict'
import { mkdir, readdir, rm, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { useFolder } from '../../test/support/folder.ts'
import { createLogger } from '../log.ts'
import { DiskReserve } from './disk-reserve.ts'
import { FolderCache, type FolderCacheOptions } from './folder-cache.ts'

const KB = 1000
const folder = await useFolder('berth-cache-')
const disk = new DiskReserve({ folders: {}, reserveBytes: 0 })
let count = 0
const open = (options: Partial<FolderCacheOptions> = {}) =>
  new FolderCache({
    folder: join(folder, `${count++}`),
    maxBytes: 100 * KB,
    maxEntryBytes: 50 * KB,
    isVerified: true,
    disk,
    log: createLogger('test', 'silent'),
    ...options,
  })

describe('a cache on disk', () => {
  for (const isVerified of [true, false])
    it(`an entry is found by its name, even by another process (${isVerified ? 'verified' : 'durable'})`, async () => {
      const options = { folder: join(folder, `shared ${isVerified}`), isVerified }
      await open(options).write('a', Buffer.from('first'))
      await open(options).write('a', Buffer.from('entry'))
      assert.equal(`${await open(options).read('a')}`, 'entry')
      assert.equal(await open(options).read('b'), undefined)
      await open(options).remove('a')
      assert.equal(await open(options).read('a'), undefined)
    })

  it('the least recently read entries and leftovers make room for new ones', async () => {
    const where = join(folder, 'small')
    const cache = open({ folder: where })
    const long = new Date(Date.now() - 3_600_000)
    await cache.write('first', Buffer.alloc(5 * KB))
    await writeFile(join(where, 'x.new-0'), Buffer.alloc(5 * KB))
    for (const name of await readdir(where)) await utimes(join(where, name), long, long)
    assert.ok(await cache.read('first'))
    for (let n = 0; n < 40; n++) await cache.write(`${n}`, Buffer.alloc(5 * KB))
    const names = await readdir(where)
    assert.ok(names.length <= 23 && !names.includes('x.new-0'), `${names.length}`)
    assert.ok(await cache.read('39'))
    assert.equal(await cache.read('0'), undefined)
  })

  it('tidying removes stale entries and files of dead writers, not of running ones', async () => {
    const where = join(folder, 'stale')
    const cache = open({ folder: where })
    for (const name of ['kept', 'stale']) await cache.write(name, Buffer.alloc(10))
    for (const name of ['dead.new-1', 'alive.new-2']) await writeFile(join(where, name), 'part')
    const long = new Date(Date.now() - 3_600_000)
    await utimes(join(where, 'dead.new-1'), long, long)
    await cache.tidy(async (names) => {
      assert.deepEqual(names.toSorted(), ['kept', 'stale'])
      return ['stale']
    })
    assert.deepEqual((await readdir(where)).toSorted(), ['alive.new-2', 'kept'])
  })

  it('an entry is not written below the disk reserve, or if it takes a tenth of the room', async () => {
    const short = new DiskReserve({ folders: { data: folder }, reserveBytes: 100 }, async () => ({
      free: 10,
      size: 1000,
    }))
    for (const cache of [open({ disk: short }), open({ maxBytes: 0 }), open({ maxBytes: 4 * KB })]) {
      await cache.write('a', Buffer.alloc(500))
      assert.equal(await cache.read('a'), undefined)
    }
  })

  it('an unwritable folder fails nothing, and is logged once until it works again', async () => {
    const path = join(folder, 'taken')
    await writeFile(path, '')
    const lines: string[] = []
    const log = createLogger('test', 'warn', { write: (line: string) => void lines.push(line) })
    const cache = open({ folder: path, log })
    const fail = async () => {
      for (const name of ['a', 'b']) {
        await cache.write(name, Buffer.from('entry'))
        assert.equal(await cache.read(name), undefined)
        await cache.remove(name)
      }
      await cache.tidy()
    }
    await fail()
    assert.equal(lines.length, 1)
    await rm(path)
    await mkdir(path)
    await cache.write('a', Buffer.from('entry'))
    assert.equal(`${await cache.read('a')}`, 'entry')
    await rm(path, { recursive: true })
    await writeFile(path, '')
    await fail()
    assert.equal(lines.length, 2)
  })

  it('entries are dropped while too many are being written', async () => {
    const where = join(folder, 'busy')
    const cache = open({ folder: where })
    await Promise.all(Array.from({ length: 20 }, (_, i) => cache.write(`${i}`, Buffer.alloc(10))))
    assert.equal((await readdir(where)).length, 8)
  })
})
