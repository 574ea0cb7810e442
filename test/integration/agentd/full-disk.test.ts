/**
 * An agent whose file system refuses every write: agentd reports it, stays reachable, and recovers when there is room.
 * Tested with a full disk and with an exceeded quota, whose error code Node does not name.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { globSync } from 'node:fs'
import { mkdir, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import type { AgentStatus, ExecResult } from '../../../agentd/protocol.ts'
import { TestDisks, whyNoDisks } from '../../support/disk-helper.ts'
import { mountSmallDisk, NO_MOUNT } from '../../support/small-disk.ts'
import { standInEngine, TestAgentd } from './agentd.ts'

const run = promisify(execFile)

interface Place {
  dir: string
  release(): Promise<void>
}

const small = await mountSmallDisk(32)
const onTmpfs = async (): Promise<Place> => {
  assert.ok(small)
  return { dir: small.dir, release: () => small.unmount() }
}

async function onQuota(): Promise<Place> {
  const disks = await TestDisks.start()
  const dir = await mkdtemp(join(tmpdir(), 'berth-quota-'))
  const { device, subvolume } = await disks.helper.ensure('xagentd1', 32 * 2 ** 20, undefined)
  await run('mount', ['-t', 'btrfs', '-o', `subvol=${subvolume}`, device, dir])
  return {
    dir,
    async release() {
      await run('umount', [dir])
      await rm(dir, { recursive: true })
      await disks.close()
    },
  }
}

for (const [what, make, skip] of [
  ['a full disk', onTmpfs, small ? false : NO_MOUNT],
  ['a disk at its quota', onQuota, await whyNoDisks()],
] as const)
  describe(`an agent on ${what}, with a hard limit`, { skip }, () => {
    let place: Place
    let engineDir: string
    let agentd: TestAgentd
    const inRun = (name: string, state: string) => (status: AgentStatus) =>
      status.gateway.run === name && status.gateway.state === state
    before(async () => {
      place = await make()
      engineDir = await standInEngine()
      const home = join(place.dir, 'home')
      await mkdir(home)
      agentd = await TestAgentd.start({ engineDir, home, hardLimit: true })
      await agentd.start({ run: 'first' })
      await agentd.until('ready', 60_000, inRun('first', 'ready'))
      await assert.rejects(run('dd', ['if=/dev/urandom', `of=${join(home, 'big')}`, 'bs=64k']))
    })
    after(async () => {
      await agentd?.close()
      await place?.release()
      await rm(engineDir, { recursive: true, force: true })
    })

    test('a gateway that dies on a full disk is not restarted, and the reason names the disk', async () => {
      process.kill((await agentd.status()).gateway.pid as number, 'SIGKILL')
      const { gateway, disk } = await agentd.until('failed', 60_000, inRun('first', 'failed'))
      assert.match(gateway.reason ?? '', /^disk full: the agent's files take \d+ MiB of \d+ MiB$/)
      assert.equal(disk.hardLimit, true)
    })

    test('an agentd started on a full disk responds, and reports why the gateway does not start', async () => {
      await agentd.kill('SIGKILL')
      await agentd.boot()
      const { status, body } = await agentd.call<{ message: string }>('GET', '/v1/repository')
      assert.equal(status, 507)
      assert.match(body.message, /^disk full: the agent's files take \d+ MiB of \d+ MiB$/)
      await agentd.start({ run: 'second' }, 2)
      const { gateway } = await agentd.until('failed', 60_000, inRun('second', 'failed'))
      assert.match(gateway.reason ?? '', /^disk full/)
    })

    test('the console makes room on a full disk, and the gateway starts', async () => {
      const json = { command: 'rm ../big', timeoutMs: 10_000, outputBytes: 1000 }
      const { status, body } = await agentd.call<ExecResult>('POST', '/v1/exec', { json })
      assert.deepEqual([status, body.exitCode], [200, 0], body.stderr)
      await agentd.start({ run: 'third' }, 2)
      await agentd.until('ready', 60_000, inRun('third', 'ready'))
    })

    test('a commit that does not fit on the disk fails with disk_full and leaves no temporary files', async () => {
      const root = join(agentd.home, 'clawd')
      await agentd.call('PUT', '/v1/workspace', { json: { files: [] }, epoch: 2 })
      // More than half of the disk, and git would store it twice.
      const large = join(root, 'large')
      await run('dd', ['if=/dev/urandom', `of=${large}`, 'bs=1M', 'count=20'])
      const commit = () =>
        agentd.call<{ error?: string }>('POST', '/v1/repository/commit', {
          json: { message: 'sync' },
          epoch: 2,
        })
      assert.equal((await commit()).body.error, 'disk_full')
      assert.deepEqual(globSync(join(root, '.git/objects/**/tmp_*')), [])
      await rm(large)
      assert.equal((await commit()).status, 200)
    })
  })
