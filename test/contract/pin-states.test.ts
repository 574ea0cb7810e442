/**
 * The states of a pin request, each reached for real. `backfilled` and `expired` are tested in
 * settings.processes.test.ts.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import * as dagCbor from '@ipld/dag-cbor'
import { soon } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { inlineCid, missingCid, openContext } from './context.ts'

const QUEUE = '/v3/files/public/pin_by_cid'

const { berth, provider, sql, workspace } = await openContext()
const { api } = await workspace()
const node = await provider()
const host_nodes = [node.multiaddr]

/** Requests a pin that fails, and checks how the queue and the operation report it. */
async function fails(pin: object, status: string, error: string | RegExp, client = api) {
  const { record, operation } = await client.pin({ ...pin }, { wait: 120 })
  assert.equal(record.status, status)
  const { state, error: message, error_code } = await client.finished(operation)
  assert.deepEqual({ state, error_code }, { state: 'failed', error_code: status })
  assert.match(String(message), typeof error === 'string' ? new RegExp(`^${RegExp.escape(error)}$`) : error)
  const listed = await client.get(QUEUE, { status, limit: '250' })
  assert.ok(listed.body.data.jobs.some(({ id }: { id: string }) => id === record.id))
  return record
}

describe('a pin request', () => {
  it('a pin request is prechecking first, then searching while no node provides it', async () => {
    const { record } = await api.pin({ cid: `${await missingCid()}` })
    assert.equal(record.status, 'prechecking')
    await until('it is searching', async () => (await api.queued(record.id))?.status === 'searching')
    assert.equal((await api.delete(`${QUEUE}/${record.id}`)).status, 200)
  })

  it('a pin request is retrieving once a block has arrived, and pinned once all have', async () => {
    const held = await provider()
    const cid = await held.file(randomBytes(2_500_000))
    const [, leaf] = await held.links(cid)
    assert.ok(leaf)
    const release = held.hold(leaf)
    const { record, operation } = await api.pin({ cid: `${cid}`, host_nodes: [held.multiaddr] })
    await until('it is retrieving', async () => (await api.queued(record.id))?.status === 'retrieving')
    for (const status of ['retrieving', 'retreiving']) {
      const { body } = await api.get(QUEUE, { status })
      assert.deepEqual(
        body.data.jobs.map(({ id }: { id: string }) => id),
        [record.id],
      )
    }
    assert.equal((await api.get(`/v3/files/public/${record.id}`)).status, 404, 'it is not a file yet')
    release()
    assert.equal((await api.finished(operation)).state, 'succeeded')
    assert.equal(await api.queued(record.id), undefined)
    assert.equal((await api.get(`/v3/files/public/${record.id}`)).body.data.size, 2_500_000)
  })

  it('a pin request is bad_host_node if no host node responds and no other node has the content', async () => {
    const gone = await provider()
    const cid = `${await gone.file(randomBytes(10))}`
    await gone.stop()
    await fails(
      { cid, host_nodes: [gone.multiaddr] },
      'bad_host_node',
      /^No host node could be reached \(\/ip4\/127\.0\.0\.1\/tcp\/\d+\/p2p\/\w+: .+\), and no other node provides the content$/,
    )
  })
  it('a pin request is pinned even if only one of its host nodes responds', async () => {
    const gone = await provider()
    await gone.stop()
    const cid = `${await node.file(randomBytes(10))}`
    const { record } = await api.pin({ cid, host_nodes: [gone.multiaddr, node.multiaddr] }, { wait: 120 })
    assert.equal(record.status, 'pinned')
  })

  it('a pin request is pinned from a host node with a DNS name', async () => {
    const cid = `${await node.file(randomBytes(10))}`
    const named = node.multiaddr.replace('/ip4/127.0.0.1/', '/dns4/localhost/')
    assert.equal((await api.pin({ cid, host_nodes: [named] }, { wait: 120 })).record.status, 'pinned')
  })

  const DECODE = 'A block of the content cannot be decoded'
  it('a pin request is invalid_object if its root does not decode', async () => {
    await fails({ cid: `${await node.block(randomBytes(50))}`, host_nodes }, 'invalid_object', DECODE)
  })
  it('a pin request with an unknown inner codec is invalid_object [report: impossible content]', async () => {
    const inner = await node.block(randomBytes(10), 0x300001)
    const cid = `${await node.block(dagCbor.encode({ inner }), dagCbor.code)}`
    await fails({ cid, host_nodes }, 'invalid_object', /^A block of the content is not supported: .*0x300001/)
  })
})

describe('a pin request on a plan with limits', async () => {
  await sql(`INSERT INTO plan VALUES ('test-files', 1, 1, false, false, true, 1000, NULL, NULL),
    ('test-storage', 1, 1, false, false, true, NULL, 1000, NULL) ON CONFLICT DO NOTHING`)
  const file = async (bytes: number) => ({ cid: `${await node.file(randomBytes(bytes))}`, host_nodes })

  it('a pin request on a plan with limits is over_max_size if it exceeds the size of one file', async () => {
    const { api } = await workspace('test-files')
    const message = 'The content is larger than the plan allows for one file'
    await fails(await file(1001), 'over_max_size', message, api)
    await fails(await file(3_000_000), 'over_max_size', message, api)
    const folder = await node.folder({ 'a/b': randomBytes(600), c: randomBytes(600) })
    await fails({ cid: `${folder}`, host_nodes }, 'over_max_size', message, api)
    assert.equal((await api.pin(await file(900), { wait: 120 })).record.status, 'pinned')
  })

  it('a pin request on a plan with limits is over_free_limit if it exceeds the remaining storage', async () => {
    const { api } = await workspace('test-storage')
    const message = 'The content would exceed the storage of the plan'
    const first = await api.pin(await file(600), { wait: 120 })
    assert.equal(first.record.status, 'pinned')
    await fails(await file(600), 'over_free_limit', message, api)
    assert.equal((await api.pin(await file(300), { wait: 120 })).record.status, 'pinned')

    await api.delete(`/v3/files/public/${first.record.id}`)
    assert.equal((await api.pin(await file(600), { wait: 120 })).record.status, 'pinned', 'room was made')
  })

  it('a pin request is limited by the plan that the workspace has when it runs', async () => {
    const { api, name } = await workspace('test-files')
    await berth('workspaces', 'set-plan', name, 'unlimited')
    assert.equal((await api.pin(await file(2000), { wait: 120 })).record.status, 'pinned')
    await berth('workspaces', 'set-plan', name, 'free')
    const ask = () => api.post(QUEUE, { cid: `${inlineCid('free')}` })
    await soon(ask, ({ status }) => status === 403)
  })
})
