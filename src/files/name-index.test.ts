import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { isInManyNames, wordsToLookUp } from './name-index.ts'

const SAMPLE = Array.from({ length: 100 }, (_, n) => `img_${n < 10 ? 'paris_' : ''}${100_000 + n * 700}.jpg`)

describe('what is looked up in the index of names', () => {
  for (const [part, words] of [
    ['IMG_123456.jpg', ['123456']],
    ['img_paris_123456', ['paris', '123456']],
    // No word is in next to no name.
    ['img_paris', []],
    ['img.jpg', []],
    // No word is common.
    ['london 123456', []],
    // Letters beyond ASCII.
    ['img_ΟΔΟΣ.123456', []],
    ['_%', []],
  ] as const)
    it(`of the part ${part} of a name ${words.join(' and ') || 'all'} is looked up`, () => {
      assert.deepEqual(wordsToLookUp(part, SAMPLE), words)
    })

  it('a part that one of twenty names has is in many names', () => {
    assert.equal(isInManyNames('Paris', SAMPLE), true)
    assert.equal(isInManyNames('img_1', SAMPLE), true)
    assert.equal(isInManyNames('100700', SAMPLE), false)
    assert.equal(isInManyNames('img', []), false)
  })

  it('a part of a name is looked up whole where nothing is known of names', () => {
    assert.deepEqual(wordsToLookUp('IMG_123456.jpg', []), [])
  })
})
