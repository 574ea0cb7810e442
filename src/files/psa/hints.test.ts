/** Provider hints: which origins are accepted, and which delegates are returned. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { pickDelegates, readOrigins } from './hints.ts'

const PEER = '/p2p/12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV'
const PUBLIC = `/ip4/8.8.8.8/tcp/4001${PEER}`
const NAMED = `/dns4/node.example.com/tcp/4001${PEER}`
const LOCAL = [`/ip4/127.0.0.1/tcp/4001${PEER}`, `/ip6/fd00::1/udp/4001/quic-v1${PEER}`]

describe('delegates', () => {
  it('delegates exclude local addresses if there are others', () => {
    assert.deepEqual(pickDelegates([...LOCAL, PUBLIC, NAMED]), [PUBLIC, NAMED])
    assert.deepEqual(pickDelegates(LOCAL), LOCAL)
  })
  it('delegates name their peer and contain no duplicates', () => {
    assert.deepEqual(pickDelegates(['/ip4/8.8.8.8/tcp/4001', PUBLIC, PUBLIC]), [PUBLIC])
  })
  it('delegates are at most 20, and none without an address', () => {
    const many = Array.from({ length: 30 }, (_, i) => `/ip4/8.8.8.${i}/tcp/4001${PEER}`)
    assert.deepEqual(pickDelegates(many), many.slice(0, 20))
    assert.deepEqual(pickDelegates([]), [])
  })
})

describe('origins', () => {
  it('origins are limited to addresses that may be dialled', () => {
    const odd = [
      '',
      'x',
      '/ip4/8.8.8.8/tcp/4001',
      `/dns4/a\0b/tcp/1${PEER}`,
      `${'/tcp/1'.repeat(500)}${PEER}`,
    ]
    assert.deepEqual(readOrigins([...LOCAL, ...odd, PUBLIC, NAMED], false), [PUBLIC, NAMED])
    assert.deepEqual(readOrigins(LOCAL, true), LOCAL)
  })
})
