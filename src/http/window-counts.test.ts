import assert from 'node:assert/strict'
import { test } from 'node:test'
import { until } from '../../test/support/processes.ts'
import { WindowCounts } from './window-counts.ts'

test('a name is counted in a window that begins with its first count', async () => {
  const counts = new WindowCounts(100)
  assert.deepEqual(counts.read('a'), { count: 0, msLeft: 100 })
  counts.add('a')
  const { count, msLeft } = counts.add('a')
  assert.equal(count, 2)
  assert.ok(msLeft > 0 && msLeft <= 100, `${msLeft}`)
  assert.equal(counts.add('b').count, 1)
  await until('the windows are over', () => counts.read('b').count === 0)
  assert.equal(counts.read('a').count, 0)
  assert.equal(counts.size, 0)
})

test('no more names than allowed are kept: the oldest goes', () => {
  const counts = new WindowCounts(60_000, 3)
  for (const name of ['a', 'b', 'a', 'c', 'd']) counts.add(name)
  assert.equal(counts.size, 3)
  assert.deepEqual(
    ['a', 'b', 'c', 'd'].map((name) => counts.read(name).count),
    [0, 1, 1, 1],
  )
})
