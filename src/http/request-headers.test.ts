import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parsePrefer } from './request-headers.ts'

describe('Prefer', () => {
  it('Prefer sets how long to wait, in seconds', () => {
    assert.equal(parsePrefer(undefined).waitMs, undefined)
    for (const header of ['wait=5', 'wait="5"', 'Wait = 5']) assert.equal(parsePrefer(header).waitMs, 5000)
    assert.equal(parsePrefer('handling=lenient, wait=0').waitMs, 0)
    assert.equal(parsePrefer('wait=999999').waitMs, 300_000)
  })

  it('Prefer can disable waiting', () => {
    assert.equal(parsePrefer('respond-async').waitMs, 0)
    assert.equal(parsePrefer('respond-async, wait=10').waitMs, 0)
  })

  it('Prefer is ignored unless the time is a whole number [report: HTTP rules]', () => {
    for (const header of ['wait=1.5', 'wait=abc', 'wait=-1', 'wait='])
      assert.equal(parsePrefer(header).waitMs, undefined)
    assert.equal(parsePrefer('wait=1.5, respond-async').waitMs, 0)
  })
})
