/** Where the disk helper stores disks: in an image that grows, or on the operator's btrfs. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { chmod, mkdtemp, readlink, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import { TestDisks, whyNoDisks } from '../../support/disk-helper.ts'

const run = promisify(execFile)
const MIB = 2 ** 20
const ID = 'xpooled1'

describe('the file system of the disk helper', { skip: await whyNoDisks() }, () => {
  test('the file system of the disk helper is a fully allocated image for root that can grow later', async () => {
    const disks = await TestDisks.start()
    try {
      const { size, blocks, mode } = await stat(disks.image)
      assert.equal(mode & 0o777, 0o600)
      assert.ok(blocks * 512 >= size)
      const before = (await disks.helper.read(undefined)).room.size
      await disks.helper.ensure(ID, 64 * MIB, undefined)
      await disks.kill()
      await disks.boot(undefined, { BERTH_DISKS_MB: '700' })
      const { room, disks: kept } = await disks.helper.read(undefined)
      assert.ok(room.size > before + 150 * MIB, `${room.size} after ${before}`)
      assert.deepEqual(
        kept.map(({ agentId, limitBytes }) => [agentId, limitBytes]),
        [[ID, 64 * MIB]],
      )
      await disks.kill()
      await disks.boot(undefined, { BERTH_DISKS_MB: '300' })
      assert.equal((await disks.helper.read(undefined)).room.size, room.size)
    } finally {
      await disks.close()
    }
  })

  test('the file system of the disk helper survives a reboot, even if its loop device was reused', async () => {
    const disks = await TestDisks.start()
    const [former = ''] = await disks.loops()
    const link = join(disks.dir, 'device')
    let isTaken = false
    try {
      await disks.helper.ensure(ID, 64 * MIB, undefined)
      assert.equal(await readlink(link), former)
      await disks.kill()
      await run('losetup', ['--detach', former])
      const other = join(disks.dir, 'other')
      await run('truncate', ['-s', '1M', other])
      await run('losetup', [former, other])
      isTaken = true
      await disks.boot()
      assert.notEqual(await readlink(link), former)
      assert.deepEqual(await disks.helper.list(undefined), [ID])
    } finally {
      await disks.close()
      if (isTaken) await run('losetup', ['--detach', former])
    }
  })

  test('the file system of the disk helper has one helper: a second one does not start', async () => {
    const disks = await TestDisks.start()
    try {
      const socket = join(disks.dir, 'other.sock')
      const other = await TestDisks.start(undefined, {
        BERTH_DISKS_DIR: disks.dir,
        BERTH_DISKS_SOCKET: socket,
      })
      assert.ok(other.hasEnded)
      assert.match(other.output, /BERTH_DISKS_DIR: another disk helper/)
      await other.close()
      await disks.helper.ensure(ID, 64 * MIB, undefined)
    } finally {
      await disks.close()
    }
  })

  describe('an operator’s device', () => {
    let dir: string
    let device: string
    let mount: string
    before(async () => {
      dir = await mkdtemp(join(tmpdir(), 'berth-device-'))
      await chmod(dir, 0o700)
      const image = join(dir, 'image')
      mount = join(dir, 'mnt')
      await run('truncate', ['-s', '512M', image])
      await run('mkfs.btrfs', ['--quiet', image])
      device = (await run('losetup', ['--find', '--show', image])).stdout.trim()
      await run('mkdir', [mount])
      await run('mount', [device, mount])
      await run('touch', [join(mount, 'mine')])
    })
    after(async () => {
      await run('umount', [mount])
      await run('losetup', ['--detach', device])
      await rm(dir, { recursive: true })
    })

    test('an operator’s device keeps its files next to the disks', async () => {
      const disks = await TestDisks.start(undefined, { BERTH_DISKS_DEVICE: device })
      try {
        const { subvolume } = await disks.helper.ensure(ID, 64 * MIB, undefined)
        await stat(join(mount, 'mine'))
        await assert.rejects(
          run('dd', ['if=/dev/zero', `of=${join(mount, subvolume, 'big')}`, 'bs=1M', 'count=80']),
          /Disk quota exceeded/,
        )
        assert.deepEqual(await disks.files(), ['device'])
      } finally {
        await disks.close()
      }
    })

    test('an operator’s device with quotas of the other kind is left alone', async () => {
      await run('btrfs', ['quota', 'disable', mount])
      await run('btrfs', ['quota', 'enable', mount])
      const disks = await TestDisks.start(undefined, { BERTH_DISKS_DEVICE: device })
      try {
        assert.ok(disks.hasEnded)
        assert.match(disks.output, /BERTH_DISKS_DEVICE: it has quotas of the other kind/)
      } finally {
        await disks.close()
      }
    })
  })
})
