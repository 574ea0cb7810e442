/** The disk helper, killed at every step: the next one resumes from there. */
import assert from 'node:assert/strict'
import { describe, test } from 'node:test'
import { TestDisks, whyNoDisks } from '../support/disk-helper.ts'
import { until } from '../support/processes.ts'

const ID = 'xkilled1'
const BYTES = 2 ** 26

describe('a killed disk helper', { skip: await whyNoDisks() }, () => {
  for (const point of ['disks-mid-image', 'disks-after-attach', 'disks-after-mount'] as const)
    test(`a disk helper killed at ${point} restarts with one loop device`, async () => {
      const disks = await TestDisks.start(point)
      try {
        assert.ok(disks.hasEnded, disks.output)
        await disks.boot()
        await disks.helper.ensure(ID, BYTES, undefined)
        assert.equal((await disks.loops()).length, 1)
        assert.deepEqual(await disks.files(), ['device', 'disks.img'])
      } finally {
        await disks.close()
      }
    })

  test('a disk helper killed while it creates or removes a disk does both when asked again', async () => {
    const disks = await TestDisks.start('disk-after-limit')
    try {
      await assert.rejects(disks.helper.ensure(ID, BYTES, undefined))
      await disks.boot('disk-after-rename')
      for (let i = 0; i < 2; i++) await disks.helper.ensure(ID, BYTES, undefined)
      assert.deepEqual(await disks.helper.list(undefined), [ID])
      await assert.rejects(disks.helper.remove(ID, undefined))
      await disks.boot()
      assert.deepEqual(await disks.helper.list(undefined), [])
      await disks.helper.remove(ID, undefined)
      await until('it is gone', async () => (await disks.leftovers()) === '')
    } finally {
      await disks.close()
    }
  })
})
