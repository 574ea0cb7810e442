import assert from 'node:assert/strict'
import { it } from 'node:test'
import { isVisible } from './visible.ts'

it('a text without a visible character is detected [report: display names]', () => {
  for (const text of [
    '',
    ' \t\n',
    '\u200b',
    '\u200b\u200c\u200d\u2060\ufeff',
    '\u00ad',
    '\u034f',
    '\u115f\u3164\uffa0',
    '\u180e',
    '\u2800',
    '\u202e\u2066',
    '\ufe0f',
    '\u{e0001}\u{e0041}',
    '\u3000\u00a0',
    '\0',
  ])
    assert.equal(isVisible(text), false, JSON.stringify(text))
  for (const text of ['a', ' a ', '\u200bа', '-', '名', '😀', '👩‍💻', '❤️', 'ا', '\u0301', '.'])
    assert.equal(isVisible(text), true, JSON.stringify(text))
})
