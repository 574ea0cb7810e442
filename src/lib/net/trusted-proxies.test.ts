import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { parseTrustedProxies } from './trusted-proxies.ts'

describe('proxies that are trusted', () => {
  const right: [text: string, proxies: number | string[]][] = [
    ['0', 0],
    ['10', 10],
    ['10.229.0.2', ['10.229.0.2']],
    ['fd00::/8, loopback', ['fd00::/8', 'loopback']],
    ['caddy,10.0.0.0/8', ['caddy', '10.0.0.0/8']],
    ['proxy_1.example.org', ['proxy_1.example.org']],
  ]
  for (const [text, proxies] of right)
    it(`proxies that are trusted are ${text}`, () => {
      assert.deepEqual(parseTrustedProxies(text), proxies)
    })

  const wrong = ['', '11', '-1', '1.5', '10.0.0', '10.0.0.0/0', '10.0.0.0/33', '10.0.0.1/24/8', '::/129']
  for (const text of [...wrong, 'a b', 'caddy,', 'https://caddy', 'caddy:80', '*'])
    it(`proxies that are trusted cannot be ${text || 'nothing'}`, () => {
      assert.equal(parseTrustedProxies(text), undefined)
    })
})
