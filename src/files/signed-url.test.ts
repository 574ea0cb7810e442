import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { SigningKeys } from '../lib/signing-keys.ts'
import { type Permission, UrlSigner } from './signed-url.ts'

const NOW = 1_795_258_683
const KEY = new TextEncoder().encode('a key of at least 32 characters.')
const signer = new UrlSigner([KEY])
const permission: Permission = { algorithm: 'PINATA1', date: NOW, expires: 30, method: 'GET' }
const FILE = new URL('https://gateway.example/files/bafkqaaa?img-width=100#part')
const sign = (changes: Partial<Permission> = {}, url = FILE) =>
  signer.sign(url, { ...permission, ...changes })
const verify = (url: URL, now = NOW) => signer.verify(url, 'PINATA1', now)
const changed = (change: (url: URL) => void) => {
  const url = sign()
  change(url)
  return url
}

describe('a signed URL', () => {
  it('a URL signed with the previous key is valid while that key is set', () => {
    const other = new TextEncoder().encode('another key of 32 characters or so')
    const verifyBy = (...keys: SigningKeys) => new UrlSigner(keys).verify(sign(), 'PINATA1', NOW)
    assert.equal(verifyBy(other, KEY), 'good')
    assert.equal(verifyBy(other), 'forged')
    assert.equal(verifyBy(other, other), 'forged')
  })
  it('a signed URL carries its permission and keeps its own parameters', () => {
    const url = sign({ extra: { 'X-User-ID': 'me' } })
    const { 'X-Signature': signature, ...params } = Object.fromEntries(url.searchParams)
    assert.deepEqual(params, {
      'img-width': '100',
      'X-Algorithm': 'PINATA1',
      'X-Date': `${NOW}`,
      'X-Expires': '30',
      'X-Method': 'GET',
      'X-User-ID': 'me',
    })
    assert.match(signature ?? '', /^[0-9a-f]{64}$/)
    assert.equal(url.hash, '', 'no server would see it')
    assert.equal(FILE.search, '?img-width=100', 'what was signed is unchanged')
  })

  it('a signed URL is valid from its date (less a clock tolerance) until it expires', () => {
    const url = sign()
    assert.equal(verify(url), 'good')
    assert.equal(verify(url, NOW + 29.9), 'good')
    assert.equal(verify(url, NOW + 30), 'expired')
    assert.equal(verify(url, NOW - 300), 'good')
    assert.equal(verify(url, NOW - 301), 'early')
  })

  it('a signed URL is valid with another scheme or parameter order', () => {
    const url = sign()
    const reordered = new URL(url.href.replace('https:', 'http:'))
    reordered.search = `${new URLSearchParams([...url.searchParams].reverse())}`
    assert.equal(verify(reordered), 'good')
  })

  it('signing a URL again replaces its permission', () => {
    const again = sign({ expires: 60 }, sign())
    assert.equal(again.searchParams.getAll('X-Expires').join(), '60')
    assert.equal(verify(again, NOW + 59), 'good')
  })

  const forgeries: Record<string, URL> = {
    'another host': changed((url) => {
      url.host = 'other.example'
    }),
    'another port': changed((url) => {
      url.port = '8443'
    }),
    'another path': changed((url) => {
      url.pathname = '/files/bafkqaab'
    }),
    'a longer time': changed((url) => url.searchParams.set('X-Expires', '3000')),
    'another method': changed((url) => url.searchParams.set('X-Method', 'PUT')),
    'another parameter': changed((url) => url.searchParams.set('img-width', '101')),
    'one parameter more': changed((url) => url.searchParams.append('img-width', '101')),
    'one parameter less': changed((url) => url.searchParams.delete('img-width')),
    'another signature': changed((url) => url.searchParams.set('X-Signature', '0'.repeat(64))),
    'a signature that is cut': changed((url) => url.searchParams.set('X-Signature', '0')),
    'a signature for something else': sign({ algorithm: 'PINATA2' }),
    'the signature for another subject': sign({ subject: 'another' }),
    'the signature of another key': new UrlSigner([new Uint8Array(32)]).sign(FILE, permission),
  }
  for (const [what, url] of Object.entries(forgeries)) {
    it(`a signed URL with ${what} is forged`, () => assert.equal(verify(url), 'forged'))
  }
  it('a URL without a signature is unsigned', () => {
    assert.equal(verify(FILE), 'unsigned')
  })
})
