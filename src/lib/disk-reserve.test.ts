import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../test/support/processes.ts'
import type { Room } from './disk.ts'
import { DiskReserve } from './disk-reserve.ts'

const GIB = 1024 ** 3
const folders = { data: '/data', uploads: '/uploads' }
const reading = (rooms: Record<string, Room>) => async (folder: string) => rooms[folder] as Room

test('bytes that would leave a disk below its reserve get a 507 that names the disk', async () => {
  const rooms = {
    '/data': { free: 50 * GIB, size: 100 * GIB },
    '/uploads': { free: 3 * GIB, size: 100 * GIB },
  }
  const reserve = new DiskReserve({ folders, reserveBytes: undefined }, reading(rooms))
  await reserve.admit(GIB / 2)
  await assert.rejects(reserve.admit(2 * GIB), {
    status: 507,
    code: 'no_space',
    message:
      'No space left: the disk of resumable uploads (BERTH_UPLOAD_DIR) is down to its reserve (BERTH_DISK_RESERVE_MB)',
  })
})

test('the configured reserve applies, even if it is zero', async () => {
  const rooms = { '/data': { free: GIB, size: 100 * GIB }, '/uploads': { free: GIB, size: 100 * GIB } }
  const none = new DiskReserve({ folders, reserveBytes: 0 }, reading(rooms))
  await none.admit(GIB)
  await assert.rejects(none.admit(GIB + 1), { status: 507 })
  const large = new DiskReserve({ folders, reserveBytes: 2 * GIB }, reading(rooms))
  assert.equal(await large.findShort(), 'data')
})

test('bytes that are being written when the disk is read reduce its free space', async () => {
  let looks = 0
  const read = async () => {
    looks++
    return { free: 10 * GIB, size: 100 * GIB }
  }
  const reserve = new DiskReserve({ folders: { data: '/data' }, reserveBytes: 8 * GIB }, read)
  const again = async () => {
    const before = looks
    await until('the disk is read again after a while', async () => {
      await reserve.findShort()
      return looks > before
    })
  }
  assert.equal(await reserve.take(1.5 * GIB), undefined)
  await again()
  assert.equal(await reserve.findShort(GIB), 'data')
  reserve.written(1.5 * GIB)
  await again()
  assert.equal(await reserve.findShort(GIB), undefined)
})

test('a disk that cannot be read rejects nothing', async () => {
  const reserve = new DiskReserve({ folders, reserveBytes: undefined }, async () => {
    throw new Error('EIO')
  })
  await reserve.admit(GIB)
})
