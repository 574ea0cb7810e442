/** Tests with every possible outcome, for `test/async-context.test.ts`. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'

describe('a suite', () => {
  let steps: string[] = []
  before(async () => {
    await turn()
    steps = ['before']
  })
  beforeEach(() => void steps.push('each'))
  after(() => assert.deepEqual(steps, ['before', 'each', 'each', 'after inner', 'each', 'each', 'each']))

  describe('a suite in it', () => {
    after(() => void steps.push('after inner'))
    it('passes, with a test in it', async (t) => {
      await turn()
      await t.test('passes as well', () => {})
    })
  })
  it('fails', async () => {
    await turn()
    assert.equal(1, 2)
  })
  it('leaves a rejection unhandled', async () => {
    await turn()
    void Promise.reject(new Error('rejected'))
    await turn()
  })
  it('throws without a handler', async () => {
    await turn()
    setImmediate(() => {
      throw new Error('thrown')
    })
    await turn()
    await turn()
  })
})

describe('a suite that is declared asynchronously', async () => {
  await turn()
  it('passes', () => {})
})

describe('a suite whose end fails', () => {
  after(() => {
    throw new Error('not tidy')
  })
  it('passes', () => {})
})

test('a test that never ends', { timeout: 500 }, () => new Promise(() => {}))
test.todo('is to be done')
test('is left out', { skip: true }, () => {})
