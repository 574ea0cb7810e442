import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { bytes, readSpan, span, table } from './format.ts'
import { harmless, widthOf } from './terminal.ts'

describe('texts for people', () => {
  it('sizes have a unit and at most three digits before it', () => {
    const sizes = [0, 1, 1023, 1024, 1536, 150 * 1024, 5 * 2 ** 40, 2 ** 60].map(bytes)
    assert.deepEqual(sizes, [
      '0 B',
      '1 B',
      '1023 B',
      '1.0 KiB',
      '1.5 KiB',
      '150 KiB',
      '5.0 TiB',
      '1048576 TiB',
    ])
  })
  it('spans of time are read and written', () => {
    assert.deepEqual(['90d', '12h', '30m', '45s', 'soon', '5', '0x1d'].map(readSpan), [
      7_776_000_000,
      43_200_000,
      1_800_000,
      45_000,
      undefined,
      undefined,
      undefined,
    ])
    assert.deepEqual([0, 59_400, 60_000, 7_200_000, 864_000_000].map(span), [
      '0 s',
      '59 s',
      '1 min',
      '2 h',
      '10 d',
    ])
  })
  it('columns align, also with wide characters', () => {
    const rows = [
      { name: '数据', size: 1 },
      { name: 'report', size: null },
    ]
    assert.equal(table(rows), 'name    size\n数据    1\nreport  -')
    assert.equal(table([]), 'none')
  })
  it('third-party texts can neither move the cursor nor begin a line', () => {
    assert.equal(harmless('a\x1b[2Jb\r\nc\x07d'), 'ab c d')
    assert.equal(widthOf('\x1b[1mbold\x1b[22m'), 4)
  })
})
