import assert from 'node:assert/strict'
import { test } from 'node:test'
import { collectInTurn } from './cleanup.ts'

const GIB = 1024 ** 3
const { signal } = new AbortController()

test('garbage is collected when it is due, and before while the disk is short of room', async () => {
  let free = 50 * GIB
  let collected = 0
  const gc = async () => {
    collected++
    return { removedBlocks: 0, removedBytes: 0, keptBlocks: 0 }
  }
  const turn = collectInTurn({ gc }, { folder: '/', reserveBytes: undefined }, 3_600_000, async () => ({
    free,
    size: 100 * GIB,
  }))
  await turn(signal)
  await turn(signal)
  assert.equal(collected, 1)
  free = GIB
  await turn(signal)
  assert.equal(collected, 2)
})
