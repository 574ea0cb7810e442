import assert from 'node:assert/strict'
import { test } from 'node:test'
import { WindowCounts } from './window-counts.ts'

test('a name is counted in a window that begins with its first count', (t) => {
  let now = 1_000_000.5
  t.mock.method(performance, 'now', () => now)
  const counts = new WindowCounts(100)
  assert.deepEqual(counts.read('a'), { count: 0, msLeft: 100 })
  counts.add('a')
  assert.deepEqual(counts.add('a'), { count: 2, msLeft: 100 })
  assert.equal(counts.add('b').count, 1)
  now += 99
  assert.deepEqual(
    [counts.read('a'), counts.read('b')],
    [
      { count: 2, msLeft: 1 },
      { count: 1, msLeft: 1 },
    ],
  )
  now += 1
  assert.deepEqual([counts.read('a').count, counts.read('b').count], [0, 0])
  assert.equal(counts.size, 0)
})

test('the oldest name is dropped when there are too many', () => {
  const counts = new WindowCounts(60_000, 3)
  for (const name of ['a', 'b', 'a', 'c', 'd']) counts.add(name)
  assert.equal(counts.size, 3)
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((name) => counts.read(name).count),
    [0, 1, 1, 1],
  )
})
