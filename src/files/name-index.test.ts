import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isInManyNames, wordsToLookUp } from './name-index.ts'

const SAMPLE = Array.from({ length: 100 }, (_, n) => `img_${n < 10 ? 'paris_' : ''}${100_000 + n * 700}.jpg`)

describe('the lookup in the name index', () => {
  for (const [part, words] of [
    ['IMG_123456.jpg', ['123456']],
    ['img_paris_123456', ['paris', '123456']],
    // Every word is in some names.
    ['img_paris', []],
    ['img.jpg', []],
    // No word is common.
    ['london 123456', []],
    // Letters beyond ASCII.
    ['img_ΟΔΟΣ.123456', []],
    ['_%', []],
  ] as const)
    it(`for the part ${part} of a name, ${words.join(' and ') || 'the whole part'} is looked up`, () => {
      assert.deepEqual(wordsToLookUp(part, SAMPLE), words)
    })

  it('a part that occurs in one of twenty names is in many names', () => {
    assert.equal(isInManyNames('Paris', SAMPLE), true)
    assert.equal(isInManyNames('img_1', SAMPLE), true)
    assert.equal(isInManyNames('100700', SAMPLE), false)
    assert.equal(isInManyNames('img', []), false)
  })

  it('a part of a name is looked up whole if nothing is known about names', () => {
    assert.deepEqual(wordsToLookUp('IMG_123456.jpg', []), [])
  })
})
