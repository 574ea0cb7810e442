import assert from 'node:assert/strict'
import { readdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { useFolder } from '../../../../test/support/folder.ts'
import { DiskReserve } from '../../../lib/disk-reserve.ts'
import { createLogger } from '../../../log.ts'
import { ImageCache } from './cache.ts'

const KB = 1000
const folder = await useFolder('berth-images-')
const log = createLogger('test', 'silent')
const disk = new DiskReserve({ folders: {}, reserveBytes: 0 })
let count = 0
const open = (maxBytes = 100 * KB, reserve = disk) =>
  new ImageCache({ folder: join(folder, `${count++}`), maxBytes, disk: reserve, log })

describe('the cache of converted images', () => {
  it('an image is found by its key, even by another process', async () => {
    const options = { folder: join(folder, 'shared'), maxBytes: 100 * KB, disk, log }
    await new ImageCache(options).write('a', Buffer.from('image'))
    assert.equal(`${await new ImageCache(options).read('a')}`, 'image')
    assert.equal(await new ImageCache(options).read('b'), undefined)
  })

  it('the least recently read images and leftovers make room for new ones', async () => {
    const where = join(folder, 'small')
    const cache = new ImageCache({ folder: where, maxBytes: 100 * KB, disk, log })
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

  it('an image is not written below the disk reserve, or if it takes a tenth of the room', async () => {
    const short = new DiskReserve({ folders: { data: folder }, reserveBytes: 100 }, async () => ({
      free: 10,
      size: 1000,
    }))
    for (const cache of [open(100 * KB, short), open(0), open(4 * KB)]) {
      await cache.write('a', Buffer.alloc(500))
      assert.equal(await cache.read('a'), undefined)
    }
  })

  it('an unwritable cache folder does not fail the image', async () => {
    await writeFile(join(folder, 'taken'), '')
    const cache = new ImageCache({ folder: join(folder, 'taken'), maxBytes: 100 * KB, disk, log })
    await cache.write('a', Buffer.from('image'))
    assert.equal(await cache.read('a'), undefined)
  })
})
