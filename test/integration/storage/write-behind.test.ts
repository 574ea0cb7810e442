import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { BlockFolder } from '../../../src/storage/embedded/blocks.ts'
import { WriteBehind } from '../../../src/storage/embedded/import.ts'
import { cidOf } from './cases/context.ts'

/** A disk that is slower than its writers, and counts concurrent requests. */
class SlowFolder extends BlockFolder {
  written = 0
  most = 0
  #underWay = 0

  override async use(): Promise<null> {
    return null
  }

  override async write(): Promise<void> {
    this.most = Math.max(this.most, ++this.#underWay)
    for (let i = 0; i < 10; i++) await turn()
    this.#underWay--
    this.written++
  }
}

test('blocks wait for a slow disk, however many writers there are', async () => {
  const folder = new SlowFolder('/nowhere', { touchAfterMs: 0 })
  const writes = new WriteBehind(folder)
  const cid = await cidOf('any block')
  const writer = async () => {
    for (let i = 0; i < 30; i++) await writes.put(cid, new Uint8Array())
  }
  await Promise.all(Array.from({ length: 10 }, writer))
  await writes.settle()
  assert.equal(folder.written, 300)
  assert.equal(folder.most, 16)
})
