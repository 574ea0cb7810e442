import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ReadAhead } from './read-ahead.ts'

/** Reads pieces 0 to 9, and records which. */
function reader() {
  const begun: number[] = []
  const ahead = new ReadAhead<number>(3)
  const push = (piece: number) =>
    ahead.push(async () => {
      begun.push(piece)
      return piece
    })
  return { ahead, push, begun }
}

test('a quick consumer finds some pieces already read', async () => {
  const { ahead, push, begun } = reader()
  const taken: number[] = []
  for (let piece = 0; piece < 6; piece++) {
    push(piece)
    if (ahead.isFull) taken.push(await ahead.next())
  }
  assert.deepEqual([taken, begun.length], [[0, 1, 2, 3].slice(0, taken.length), 6])
  assert.equal(begun.length - taken.length, 2)
  while (!ahead.isEmpty) taken.push(await ahead.next())
  assert.deepEqual(taken, [0, 1, 2, 3, 4, 5])
})

test('a slow consumer’s read-ahead pieces are dropped, and read again in their turn', async (context) => {
  context.mock.timers.enable({ apis: ['setTimeout'] })
  const { ahead, push, begun } = reader()
  push(0)
  await ahead.next()
  push(1)
  push(2)
  await ahead.next()
  context.mock.timers.tick(1000)
  assert.ok(ahead.isFull)
  assert.equal(await ahead.next(), 2)
  assert.deepEqual(begun, [0, 1, 2, 2])
})

test('an unreadable piece fails in its turn, and not before', async () => {
  const { ahead, push } = reader()
  push(0)
  ahead.push(() => Promise.reject(new Error('gone')))
  assert.equal(await ahead.next(), 0)
  await assert.rejects(ahead.next(), /gone/)
})
