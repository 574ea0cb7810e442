import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { test } from 'node:test'
import { Masker, maskText, patternsOf } from './mask.ts'

const VALUE = 'sk-a/b+c"d\\e=&f~5Zq9'
const patterns = (...values: string[]) =>
  patternsOf(values.map((value) => ({ placeholder: 'p', value, hosts: [], via: { as: 'bearer' } })))
const OF_VALUE = patterns(VALUE)

/** Masks a text that comes in chunks of `size` bytes. */
function inChunks(text: string, size: number, of = OF_VALUE) {
  const masker = new Masker(of)
  const bytes = Buffer.from(text)
  const passed = Array.from({ length: Math.ceil(bytes.length / size) }, (_, i) =>
    masker.push(bytes.subarray(i * size, (i + 1) * size)),
  )
  return Buffer.concat([...passed, masker.end()]).toString()
}

test('a value is masked in every spelling, with its length, across borders of chunks', () => {
  const json = JSON.stringify(VALUE).slice(1, -1)
  const plain = [
    VALUE,
    json,
    json.replaceAll('/', '\\/'),
    json.replaceAll('&', '\\u0026'),
    encodeURIComponent(VALUE),
    encodeURIComponent(VALUE).replace(/%../g, (text) => text.toLowerCase()),
    new URLSearchParams({ a: VALUE }).toString().slice(2),
  ]
  for (const size of [1, 2, 3, 7, 19, 20, 21, 1000])
    for (const spelling of plain) {
      const text = `{"token":"${spelling}","again":"${spelling}"}`
      assert.equal(inChunks(text, size), text.replaceAll(spelling, '*'.repeat(spelling.length)))
    }
})

test('a value is masked at every place in base64, and nothing of it but a few bits is left', () => {
  for (const encoding of ['base64', 'base64url'] as const)
    for (const before of ['', 'u', 'us', 'user:', 'user1:', 'user12:'])
      for (const size of [1, 5, 1000]) {
        const text = Buffer.from(`${before}${VALUE}${before}`).toString(encoding)
        const masked = inChunks(text, size)
        assert.equal(masked.length, text.length)
        const decoded = Buffer.from(masked, encoding)
        const left = decoded.subarray(before.length, before.length + VALUE.length)
        assert.ok(left.subarray(1, -1).every((byte) => byte === 0))
        assert.equal(decoded.subarray(0, before.length).toString(), before)
      }
})

test('values that overlap, repeat or contain each other are masked whole', () => {
  assert.equal(inChunks('xabcabcababcabcabx', 3, patterns('abcabcab')), `x${'*'.repeat(16)}x`)
  assert.equal(inChunks('abcdabcdabcdabcd', 1, patterns('abcdabcd')), '*'.repeat(16))
  const both = patterns('abcdefgh', 'efghijkl', 'fgh12345')
  for (const size of [1, 4, 100])
    assert.equal(inChunks('-abcdefghijkl-fgh1234-', size, both), `-${'*'.repeat(12)}-fgh1234-`)
})

test('a stream holds back only the beginning of a value', () => {
  const masker = new Masker(patterns('abcabcabd'))
  assert.equal(masker.push(Buffer.from('data: 1\n\n')).toString(), 'data: 1\n\n')
  assert.equal(masker.push(Buffer.from('xabcabc')).toString(), 'x')
  assert.equal(masker.push(Buffer.from('abc')).toString(), 'abc')
  assert.equal(masker.push(Buffer.from('abd.')).toString(), '*********.')
  assert.equal(masker.end().toString(), '')
})

test('random bytes pass unchanged', () => {
  const bytes = randomBytes(100_000).toString('latin1').replaceAll(VALUE, '')
  assert.equal(inChunks(bytes, 777), bytes)
  assert.equal(maskText(OF_VALUE, 'plain'), 'plain')
  assert.equal(maskText(OF_VALUE, `Bearer ${VALUE}; é`), `Bearer ${'*'.repeat(VALUE.length)}; é`)
})
