import assert from 'node:assert/strict'
import { test } from 'node:test'
import { refusalOf } from './refusal.ts'

test('the rejection of an image always has a reason, whatever the library reports [report: error texts]', () => {
  const reasons: [message: string, reason: RegExp][] = [
    ['\nVipsJpeg: premature end of JPEG image\nVipsJpeg: more', /^VipsJpeg: premature end of JPEG image$/],
    ['', /^it is damaged/],
    [' \n\n', /^it is damaged/],
    ['Input buffer contains unsupported image format', /^it is not a JPEG, PNG, GIF or WebP$/],
    ['Input image exceeds pixel limit', /^it has more than 5 pixels/],
    ['out of memory', /takes too much memory$/],
  ]
  for (const [message, reason] of reasons) assert.match(refusalOf(new Error(message), 5), reason)
})
