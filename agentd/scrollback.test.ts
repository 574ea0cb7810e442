import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Scrollback } from './scrollback.ts'

const filled = (size: number, ...parts: string[]) => {
  const scrollback = new Scrollback(size)
  for (const part of parts) scrollback.push(Buffer.from(part))
  return scrollback
}
const since = (scrollback: Scrollback, position?: number) => {
  const { from, bytes } = scrollback.since(position)
  return [from, `${bytes}`]
}

test('the scrollback returns all bytes, or those since a position', () => {
  const scrollback = filled(10, 'ab', 'cde')
  assert.equal(scrollback.end, 5)
  assert.deepEqual(since(scrollback), [0, 'abcde'])
  assert.deepEqual(since(scrollback, 3), [3, 'de'])
  assert.deepEqual(since(scrollback, 5), [5, ''])
  assert.deepEqual(since(scrollback, 99), [5, ''])
})

test('a full scrollback keeps the last bytes, across its end', () => {
  const scrollback = filled(8, 'abcdef', 'ghij', 'k')
  assert.equal(scrollback.end, 11)
  assert.deepEqual(since(scrollback, 3), [3, 'defghijk'])
  assert.deepEqual(since(scrollback, 9), [9, 'jk'])
})

test('bytes after lost ones start with a whole line, if there is one', () => {
  assert.deepEqual(since(filled(8, 'one\ntwo\n', 'three\n')), [8, 'three\n'])
  assert.deepEqual(since(filled(4, 'abcdefgh')), [4, 'efgh'])
})

test('the scrollback of a chunk larger than itself has its end', () => {
  assert.deepEqual(since(filled(4, 'ab', '0123456789'), 8), [8, '6789'])
})
