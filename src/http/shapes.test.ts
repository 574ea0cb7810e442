import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { limit, nextPageToken, order, pathId, readPageToken, text } from './shapes.ts'

const ID = '01919457-c2c6-770e-9391-8c72c4f41f64'

describe('page tokens', () => {
  it('page tokens are there while there is another page, and lead to where the last one ended', () => {
    const items = [{ id: 'a' }, { id: ID }, { id: 'c' }]
    assert.equal(nextPageToken(items, 3), '')
    assert.equal(readPageToken(nextPageToken(items, 2)), ID)
    assert.equal(readPageToken(''), undefined)
  })

  it('page tokens that are made up are refused', () => {
    for (const token of ['x', 'null', Buffer.from("' OR 1=1").toString('base64'), ID]) {
      assert.throws(() => readPageToken(token), /pageToken/)
    }
  })
})

describe('shapes', () => {
  it('shapes take no text that PostgreSQL cannot hold', () => {
    assert.ok(text(5).safeParse('häß😀').success)
    for (const bad of ['a\0b', '\ud800', 'toolong']) assert.ok(!text(5).safeParse(bad).success)
  })

  it('shapes read limits and orders as clients spell them', () => {
    assert.equal(limit(10, 50).parse(undefined), 10)
    assert.equal(limit(10, 50).parse('50'), 50)
    for (const bad of ['0', '51', '-1', '1.5', 'x', '']) assert.ok(!limit(10, 50).safeParse(bad).success, bad)
    assert.deepEqual(
      ['asc', 'DESC', 'DSC'].map((value) => order.parse(value)),
      ['ASC', 'DESC', 'DESC'],
    )
  })

  it('shapes turn a malformed id into one that nothing has', () => {
    assert.equal(pathId.parse(ID.toUpperCase()), ID)
    assert.match(pathId.parse('../etc/passwd'), /^0{8}-/)
  })
})
