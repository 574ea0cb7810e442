import assert from 'node:assert/strict'
import { test } from 'node:test'
import { decodeName, encodeName, nameFromUrl, nameToUrl, pathFromShown, showName } from './names.ts'

const LATIN1 = Buffer.from('café 100%.txt', 'latin1')

test('a name keeps its bytes, whatever they are [report: raw names]', () => {
  const names = ['', 'a.txt', 'größe 🚢', '\ufeffbom.txt', 'a\0b', '\ufffd'].map((name) => Buffer.from(name))
  const all = Buffer.from(Array.from({ length: 256 }, (_, byte) => byte))
  for (const bytes of [...names, LATIN1, all, Buffer.from('eda080', 'hex'), Buffer.from('c3', 'hex')]) {
    const name = decodeName(bytes)
    assert.deepEqual(encodeName(name), bytes)
    assert.equal(nameFromUrl(nameToUrl(name)), name)
    assert.doesNotThrow(() => decodeURI(nameToUrl(showName(name))))
  }
  assert.equal(decodeName(Buffer.from('\ufeffbom.txt')), '\ufeffbom.txt')
  assert.notEqual(decodeName(Buffer.from('ff', 'hex')), decodeName(Buffer.from('fe', 'hex')))
})

test('a name that is not text is shown percent-escaped, and any other unchanged [report: raw names]', () => {
  const name = decodeName(LATIN1)
  assert.equal(showName(name), 'caf%E9 100%25.txt')
  assert.equal(nameToUrl(name), 'caf%E9%20100%25.txt')
  assert.equal(showName('größe 100%.txt'), 'größe 100%.txt')
  assert.equal(showName('a\0b'), 'a%00b')
  assert.equal(pathFromShown('größe 100%25/caf%E9 100%25.txt'), `größe 100%25/${name}`)
})

test('a name in a URL may contain invalid escapes [report: raw names]', () => {
  assert.equal(nameFromUrl('100%'), '100%')
  assert.equal(nameFromUrl('%zz%41'), '%zzA')
  assert.equal(nameFromUrl('gr%C3%B6%C3%9Fe'), 'größe')
  assert.equal(nameFromUrl('größe%20'), 'größe ')
})
