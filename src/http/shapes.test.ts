import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limit, optionalName, order, pathId, text, visibleText } from './shapes.ts'

const ID = '01919457-c2c6-770e-9391-8c72c4f41f64'

describe('shapes', () => {
  it('shapes reject text that PostgreSQL cannot store', () => {
    assert.ok(text(5).safeParse('häß😀').success)
    for (const bad of ['a\0b', '\ud800', 'toolong']) assert.ok(!text(5).safeParse(bad).success)
  })

  it('shapes reject names without visible characters [report: display names]', () => {
    assert.equal(visibleText(5).parse(' a '), 'a')
    assert.equal(optionalName(5).parse(''), '')
    for (const bad of ['\u200b', '\u200b\ufeff', ' \u2060', '\u3164', '\u2800\u2800'])
      for (const shape of [visibleText(5), optionalName(5)]) {
        const { error } = shape.safeParse(bad)
        assert.equal(error?.issues[0]?.message, 'must have a visible character', JSON.stringify(bad))
      }
    assert.ok(!visibleText(5).safeParse('').success)
  })

  it('shapes accept clients’ spellings of limits and orders', () => {
    assert.equal(limit(10, 50).parse(undefined), 10)
    assert.equal(limit(10, 50).parse('50'), 50)
    for (const bad of ['0', '51', '-1', '1.5', 'x', '']) assert.ok(!limit(10, 50).safeParse(bad).success, bad)
    assert.deepEqual(
      ['asc', 'DESC', 'DSC'].map((value) => order.parse(value)),
      ['ASC', 'DESC', 'DESC'],
    )
  })

  it('shapes replace a malformed id with an unused one', () => {
    assert.equal(pathId.parse(ID.toUpperCase()), ID)
    assert.match(pathId.parse('../etc/passwd'), /^0{8}-/)
  })
})
