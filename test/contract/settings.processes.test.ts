/** Cases that need different settings: a separate Berth with short times and small limits. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { startStack } from '../support/stack.ts'
import { inlineCid, missingCid, openContext } from './context.ts'

const QUEUE = '/v3/files/public/pin_by_cid'
const PEER = '12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV'
const OTHER_PEER = '12D3KooWEqnTdgqHnkkwarSrJjeMP2ZJiADWLYADaNvUb6SQNyPF'

const berth = await startStack({
  database: 'of the run',
  env: {
    BERTH_PINS: 'stallSeconds=1,retrySeconds=0.2,expirySeconds=15,active=2',
    BERTH_ALLOW_PRIVATE_HOST_NODES: 'false',
  },
})
const { provider, workspace } = await openContext(berth)
const { api } = await workspace()
const other = await workspace()

describe('a pin request', () => {
  it('a pin request is backfilled beyond the search limit, and expired if no node was found', async () => {
    const pins = []
    for (let i = 0; i < 3; i++) pins.push(await api.pin({ cid: `${await missingCid()}` }))
    const [first, , third] = pins
    assert.ok(first && third)
    await until('it is backfilled', async () => (await api.queued(third.record.id))?.status === 'backfilled')
    const { body } = await api.get(QUEUE, { status: 'backfilled' })
    assert.deepEqual(
      body.data.jobs.map(({ id }: { id: string }) => id),
      [third.record.id],
    )
    const { record } = await other.api.pin({ cid: `${inlineCid('other')}` }, { wait: 120 })
    assert.equal(record.status, 'pinned', 'another workspace has its own searches')

    const operation = await api.finished(first.operation)
    assert.equal((await api.queued(first.record.id))?.status, 'expired')
    assert.deepEqual(
      [operation.state, operation.error_code, operation.error],
      ['failed', 'expired', 'No node that provides the content was found in time'],
    )
    await until(
      'the third is searched for',
      async () => (await api.queued(third.record.id))?.status === 'searching',
    )
    assert.equal((await api.get(QUEUE, { status: 'expired' })).status, 200)
  })

  it('a backfilled pin request can be withdrawn', async () => {
    const pins = []
    for (let i = 0; i < 3; i++) pins.push(await other.api.pin({ cid: `${await missingCid()}` }))
    const id = pins[2]?.record.id ?? ''
    await until('it is backfilled', async () => (await other.api.queued(id))?.status === 'backfilled')
    const { status, headers } = await other.api.delete(`${QUEUE}/${id}`)
    assert.equal(status, 200)
    assert.equal((await other.api.finished(headers.get('operation-id') ?? '')).state, 'succeeded')
  })
})

describe('a host node', () => {
  const privates = [
    '/ip4/127.0.0.1/tcp/4001',
    '/ip4/10.0.0.1/tcp/4001',
    '/ip4/172.16.0.1/tcp/4001',
    '/ip4/192.168.1.1/udp/4001/quic-v1',
    '/ip4/169.254.169.254/tcp/80',
    '/ip4/100.64.0.1/tcp/4001',
    '/ip4/0.0.0.0/tcp/4001',
    '/ip4/224.0.0.1/tcp/4001',
    '/ip6/::1/tcp/4001',
    '/ip6/::/tcp/4001',
    '/ip6/fe80::1/tcp/4001',
    '/ip6/fd00::1/tcp/4001',
    '/ip6/::ffff:127.0.0.1/tcp/4001',
    '/ip6/64:ff9b::7f00:1/tcp/4001',
  ]
  for (const address of privates)
    it(`a host node may not be ${address}`, async () => {
      const reply = await api.post(QUEUE, {
        cid: `${inlineCid('x')}`,
        host_nodes: [`${address}/p2p/${PEER}`],
      })
      assertError(reply, 400, 'host_nodes[0]: private addresses are not allowed')
    })
  it('a private address of a host node is ignored if the node has another address', async () => {
    const local = `/ip4/192.168.1.1/tcp/4001/p2p/${PEER}`
    const host_nodes = [local, `/ip4/8.8.8.8/tcp/4001/p2p/${PEER}`]
    const { status, body } = await api.post(QUEUE, { cid: `${inlineCid('x')}`, host_nodes })
    assert.equal(status, 200)
    assert.deepEqual(body.data.host_nodes, host_nodes)
    const other = local.replace(PEER, OTHER_PEER)
    const reply = await api.post(QUEUE, { cid: `${inlineCid('x')}`, host_nodes: [...host_nodes, other] })
    assertError(reply, 400, 'host_nodes[2]: private addresses are not allowed')
  })
  it('a host node behind a relay must not be private either', async () => {
    const relayed = `/ip4/10.0.0.1/tcp/4001/p2p/${PEER}/p2p-circuit/p2p/${PEER}`
    const reply = await api.post(QUEUE, { cid: `${inlineCid('x')}`, host_nodes: [relayed] })
    assertError(reply, 400, 'host_nodes[0]: private addresses are not allowed')
  })
  it('a host node may be public', async () => {
    const host_nodes = [
      PEER,
      `/ip4/8.8.8.8/tcp/4001/p2p/${PEER}`,
      `/ip6/2001:4860:4860::8888/tcp/1/p2p/${PEER}`,
    ]
    assert.equal((await api.post(QUEUE, { cid: `${inlineCid('x')}`, host_nodes })).status, 200)
  })
  it('a host node whose name resolves to a private address is not dialed', async () => {
    const node = await provider()
    const cid = `${await node.file(randomBytes(100))}`
    const named = node.multiaddr.replace('/ip4/127.0.0.1/', '/dns4/localhost/')
    const { api } = await workspace()
    const { operation } = await api.pin({ cid, host_nodes: [named] })
    assert.equal((await api.finished(operation)).state, 'failed')
  })
})
