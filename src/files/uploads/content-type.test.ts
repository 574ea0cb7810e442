import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { contentType, isAllowedType } from './content-type.ts'

describe('contentType', () => {
  it('contentType takes a claimed type where the bytes allow it', () => {
    const [text, bytes] = ['text/plain', 'application/octet-stream']
    for (const [sniffed, claim, expected] of [
      [text, 'text/html', 'text/html'],
      [text, 'text/css; charset=utf-8', 'text/css'],
      [text, 'Application/JSON', 'application/json'],
      [text, 'image/svg+xml', 'image/svg+xml'],
      ['application/xml', 'image/svg+xml', 'image/svg+xml'],
      [text, 'image/png', text],
      [text, 'application/wasm', text],
      [bytes, 'image/png', bytes],
      [bytes, 'application/x-own', 'application/x-own'],
    ] as const)
      assert.equal(contentType(sniffed, claim), expected, claim)
  })
  it('contentType never overrides a folder or a detected type', () => {
    for (const sniffed of ['directory', 'image/png', 'application/pdf', 'video/mp4']) {
      for (const claim of ['text/html', 'application/x-own', 'image/svg+xml', 'directory', '', 'a/b; c=d'])
        assert.equal(contentType(sniffed, claim), sniffed)
    }
  })
  it('contentType ignores malformed types', () => {
    for (const claim of ['text/', '/html', 'text/html\r\nX: y', 'text/<b>', `text/${'x'.repeat(200)}`, '*/*'])
      assert.equal(contentType('text/plain', claim), 'text/plain', claim)
  })
})

describe('isAllowedType', () => {
  const table: [type: string, allowed: string[], expected: boolean][] = [
    ['image/png', ['image/png'], true],
    ['image/png', ['text/plain', 'IMAGE/PNG'], true],
    ['image/png', ['image/*'], true],
    ['image/png', ['*/*'], true],
    ['image/png', [], false],
    ['image/png', ['image/'], false],
    ['image/png', ['image/p'], false],
    ['image/png', ['*'], false],
    ['imagery/png', ['image/*'], false],
    ['directory', ['directory'], true],
    ['directory', ['image/*'], false],
    ['directory', ['*/*'], false],
  ]
  for (const [type, allowed, expected] of table) {
    it(`isAllowedType ${expected ? 'accepts' : 'rejects'} ${type} for ${JSON.stringify(allowed)}`, () => {
      assert.equal(isAllowedType(type, allowed), expected)
    })
  }
})
