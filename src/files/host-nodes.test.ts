import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../errors.ts'
import { parseHostNode, resolveHostNodes } from './host-nodes.ts'

const ED25519 = '12D3KooWAYL2UWeQNGUfrEMbt25ruas8RKZzpYnjHyFvPZxfSip6'
const RSA = 'QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN'
const PUBLIC = `/ip4/104.131.131.82/tcp/4001/p2p/${ED25519}`

describe('host nodes', () => {
  it('are peer ids or multiaddrs that end in one', () => {
    const read = (text: string) => parseHostNode(text, 'host_nodes[0]', false)
    assert.equal(read(ED25519), `/p2p/${ED25519}`)
    assert.equal(read(RSA), `/p2p/${RSA}`)
    assert.equal(read(PUBLIC), PUBLIC)
    assert.equal(read(`/dnsaddr/example.org/p2p/${RSA}`), `/dnsaddr/example.org/p2p/${RSA}`)
    assert.equal(
      read(`/ip4/104.131.131.82/udp/4001/quic-v1/p2p/${RSA}`),
      `/ip4/104.131.131.82/udp/4001/quic-v1/p2p/${RSA}`,
    )
  })

  const malformed = [
    '',
    '/',
    'hello',
    '/ip4/104.131.131.82/tcp/4001',
    '/ip4/300.1.1.1/tcp/4001/p2p/12D3',
    `/ip4/104.131.131.82/tcp/99999/p2p/${RSA}`,
    `/unix/tmp/socket/p2p/${RSA}`,
    'http://example.org',
    `${ED25519}0`,
    '12D3KooW',
    'bafybeihdwdcefgh4dqkjv67uzcmw7ojee6xedzdetojuzjevtenxquvyku',
  ]
  for (const text of malformed) {
    it(`are refused as ${text || 'nothing'}`, () => {
      assert.throws(
        () => parseHostNode(text, 'host_nodes[3]', true),
        (error) =>
          error instanceof ApiError && error.status === 400 && error.message.startsWith('host_nodes[3]: '),
      )
    })
  }

  it('may be private addresses only where that is allowed', () => {
    for (const host of [
      '/ip4/127.0.0.1',
      '/ip4/10.1.2.3',
      '/ip6/::1',
      '/ip6/fd00::1',
      '/ip4/169.254.169.254',
    ]) {
      const text = `${host}/tcp/4001/p2p/${RSA}`
      assert.equal(parseHostNode(text, 'host_nodes[0]', true), text)
      assert.throws(() => parseHostNode(text, 'host_nodes[0]', false), /private addresses are not allowed/)
    }
  })

  it('with a name are resolved, and dropped where the name leads to a private address', async () => {
    const node = `/dns4/localhost/tcp/4001/p2p/${RSA}`
    assert.deepEqual(await resolveHostNodes([node], true), [`/ip4/127.0.0.1/tcp/4001/p2p/${RSA}`])
    assert.deepEqual(await resolveHostNodes([node], false), [])
    assert.deepEqual(await resolveHostNodes([PUBLIC], false), [PUBLIC])
  })
})
