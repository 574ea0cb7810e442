import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { ApiError } from '../errors.ts'
import { type NameResolver, parseHostNode, resolveHostNodes } from './host-nodes.ts'

const ED25519 = '12D3KooWAYL2UWeQNGUfrEMbt25ruas8RKZzpYnjHyFvPZxfSip6'
const RSA = 'QmNnooDu7bfjPFoTZYxMNLWUQJyrVwtbZg5gBMjTezGAJN'
const PUBLIC = `/ip4/104.131.131.82/tcp/4001/p2p/${ED25519}`

describe('host nodes', () => {
  it('host nodes are peer ids or multiaddrs that end in one', () => {
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
    it(`host nodes are rejected: ${text || 'nothing'}`, () => {
      assert.throws(
        () => parseHostNode(text, 'host_nodes[3]', true),
        (error) =>
          error instanceof ApiError && error.status === 400 && error.message.startsWith('host_nodes[3]: '),
      )
    })
  }

  it('host nodes may be private addresses only if allowed', () => {
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

  it('host nodes with a name are resolved, and dropped if the address is private', async () => {
    const node = `/dns4/localhost/tcp/4001/p2p/${RSA}`
    assert.deepEqual(await resolveHostNodes([node], true), [`/ip4/127.0.0.1/tcp/4001/p2p/${RSA}`])
    assert.deepEqual(await resolveHostNodes([node], false), [])
    assert.deepEqual(await resolveHostNodes([PUBLIC], false), [PUBLIC])
  })

  it('host nodes must name a single host', () => {
    const relayed = `/ip4/104.131.131.82/tcp/4001/p2p/${RSA}/p2p-circuit/p2p/${ED25519}`
    assert.equal(parseHostNode(relayed, 'host_nodes[0]', false), relayed)
    const inner = `/ip4/10.0.0.1/tcp/4001/p2p/${RSA}`
    for (const outer of ['/ip4/104.131.131.82/tcp/1', '/dns4/example.org/tcp/1', `/p2p/${RSA}`]) {
      assert.throws(() => parseHostNode(`${outer}${inner}`, 'host_nodes[0]', false), /a single host/)
    }
  })

  describe('host nodes with a dnsaddr', () => {
    const asked: string[] = []
    const records: Record<string, string[]> = {}
    const resolver: NameResolver = {
      lookup: async () => [{ address: '10.0.0.7', family: 4 }],
      resolveTxt: async (name) => {
        asked.push(name)
        return (records[name] ?? []).map((text) => [text.slice(0, 20), text.slice(20)])
      },
    }
    const resolve = (allowPrivate: boolean) =>
      resolveHostNodes([`/dnsaddr/a.test/p2p/${ED25519}`], allowPrivate, resolver)

    it('host nodes with a dnsaddr resolve to addresses of the same peer that are allowed', async () => {
      const inside = `/ip4/169.254.169.254/tcp/80/p2p/${ED25519}`
      records['_dnsaddr.a.test'] = [
        `dnsaddr=${PUBLIC}`,
        `dnsaddr=${inside}`,
        `dnsaddr=/dns4/inside.test/tcp/1/p2p/${ED25519}`,
        `dnsaddr=/dnsaddr/b.test/p2p/${ED25519}`,
        `dnsaddr=/ip4/104.131.131.82/tcp/4001/p2p/${RSA}`,
        `dnsaddr=/ip4/104.131.131.82/tcp/1/ip4/10.0.0.1/tcp/1/p2p/${ED25519}`,
        `dnsaddr=/nonsense/p2p/${ED25519}`,
        'v=spf1 -all',
      ]
      const next = `/ip6/2606:4700::1/tcp/4001/p2p/${ED25519}`
      records['_dnsaddr.b.test'] = [`dnsaddr=${next}`]
      assert.deepEqual(await resolve(false), [PUBLIC, next])
      assert.deepEqual(await resolve(true), [PUBLIC, inside, `/ip4/10.0.0.7/tcp/1/p2p/${ED25519}`, next])
    })

    it('host nodes with a dnsaddr are followed at most three levels deep, to 16 addresses', async () => {
      records['_dnsaddr.a.test'] = [`dnsaddr=/dnsaddr/a.test/p2p/${ED25519}`]
      asked.length = 0
      assert.deepEqual(await resolve(false), [])
      assert.equal(asked.length, 3)
      records['_dnsaddr.a.test'] = Array.from(
        { length: 40 },
        (_, i) => `dnsaddr=/ip4/104.131.131.82/tcp/${i + 1}/p2p/${ED25519}`,
      )
      assert.equal((await resolve(false)).length, 16)
    })

    it('host nodes with a dnsaddr are dropped if the name does not resolve', async () => {
      const failing = { ...resolver, resolveTxt: () => Promise.reject(new Error('ENOTFOUND')) }
      const nodes = [`/dnsaddr/a.test/p2p/${ED25519}`, PUBLIC]
      assert.deepEqual(await resolveHostNodes(nodes, false, failing), [PUBLIC])
    })
  })
})
