/** Placeholders have the shape of values, and nothing else of them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import fc from 'fast-check'
import { isPlaceholderFor, makePlaceholder } from './placeholder.ts'

const value = fc.string({ unit: 'grapheme-ascii', minLength: 8, maxLength: 60 })
const shapeOf = (text: string) => text.replace(/[A-Z]/g, 'A').replace(/[a-z]/g, 'a').replace(/[0-9]/g, '0')

describe('a placeholder', () => {
  it('a placeholder has the length, the classes and the known prefix of the value', () => {
    for (const [value, shape] of [
      ['sk-proj-Ab3dEf9hIj', /^sk-proj-[A-Z][a-z]\d[a-z][A-Z][a-z]\d[a-z][A-Z][a-z]$/],
      ['ghp_0123456789', /^ghp_\d{10}$/],
      ['Ab3d_Ef9h-ij', /^[A-Z][a-z]\d[a-z]_[A-Z][a-z]\d[a-z]-[a-z]{2}$/],
      ['hunter2+hunter2', /^[a-z]{6}\d\+[a-z]{6}\d$/],
    ] as const) {
      const placeholder = makePlaceholder(value)
      assert.match(placeholder, shape)
      assert.notEqual(placeholder, value)
    }
  })
  it('a placeholder shares no random character with the value, except by chance', () => {
    // A password whose beginning looks like a prefix.
    const value = 'correct-horse-battery-staple'
    const same = Array.from(value, (c, i) =>
      Array.from({ length: 40 }, () => makePlaceholder(value)[i]).every((other) => other === c),
    )
    assert.deepEqual(
      same,
      Array.from(value, (c) => c === '-'),
    )
  })
  it('a value with fewer than 8 letters and digits gets a random placeholder', () => {
    for (const value of ['!"#$%&()', 'sk-proj-1234567', '-------abcdefg'])
      assert.match(makePlaceholder(value), /^[a-z0-9]{24}$/)
  })
  it('a placeholder stays as long as values have its shape', () => {
    fc.assert(
      fc.property(value, (value) => {
        const placeholder = makePlaceholder(value)
        assert.ok(isPlaceholderFor(placeholder, value))
        assert.ok(!isPlaceholderFor(value, value))
        // With fewer than 8 letters and digits it has 24 characters, which may be the length of the value.
        const isRandom = value.length === 24 && value.replace(/[^A-Za-z0-9]/g, '').length < 8
        if (placeholder.length === value.length && !isRandom)
          assert.equal(shapeOf(placeholder), shapeOf(value))
      }),
      { examples: [['!'.repeat(24)]] },
    )
    const placeholder = makePlaceholder('ghp_Ab3dEf9hIj')
    assert.ok(isPlaceholderFor(placeholder, 'ghp_Zy3xEf9hIj'))
    for (const other of ['gho_Ab3dEf9hIj', 'ghp_Ab3dEf9hI', 'ghp_Ab3dEf9hIj0', 'ghp_ab3dEf9hIj', '!"#$%&()'])
      assert.ok(!isPlaceholderFor(placeholder, other), other)
  })
})
