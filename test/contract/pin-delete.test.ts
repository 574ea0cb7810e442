/** Withdrawing pin requests and deleting files: at each stage, and what happens to the content. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { inlineCid, missingCid, openContext } from './context.ts'

const QUEUE = '/v3/files/public/pin_by_cid'
const FILES = '/v3/files/public'
const NO_PIN = 'There is no such pin request'
const NO_FILE = 'There is no such file'

const { isPinned, provider, sql, workspace } = await openContext()
const { api } = await workspace()
const other = await workspace()
const node = await provider()
const host_nodes = [node.multiaddr]

/** Withdraws a request, and checks that nothing of it remains. */
async function withdraw(id: string, operation: string) {
  const { status, headers, body } = await api.delete(`${QUEUE}/${id}`)
  assert.deepEqual([status, body], [200, { data: null }])
  assert.equal(await api.queued(id), undefined, 'gone at once')
  const removal = await api.finished(headers.get('operation-id') ?? '')
  assert.deepEqual([removal.kind, removal.state, removal.target], ['pin.remove', 'succeeded', id])
  assert.notEqual((await api.finished(operation)).state, 'succeeded')
  assertError(await api.delete(`${QUEUE}/${id}`), 404, NO_PIN)
  assertError(await api.get(`${FILES}/${id}`), 404, NO_FILE)
}
async function pinned(cid: string, client = api): Promise<string> {
  const { record } = await client.pin({ cid, host_nodes }, { wait: 120 })
  assert.equal(record.status, 'pinned')
  return record.id
}
async function remove(id: string, client = api) {
  const { status, headers, body } = await client.delete(`${FILES}/${id}`)
  assert.deepEqual([status, body], [200, { data: null }])
  assert.equal((await client.finished(headers.get('operation-id') ?? '')).state, 'succeeded')
}

describe('withdrawing a pin request', () => {
  it('a pin request can be withdrawn right after its creation', async () => {
    const { record, operation } = await api.pin({ cid: `${await missingCid()}` })
    await withdraw(record.id, operation)
  })
  it('a pin request can be withdrawn while it is searching', async () => {
    const { record, operation } = await api.pin({ cid: `${await missingCid()}` })
    await until('it is searching', async () => (await api.queued(record.id))?.status === 'searching')
    await withdraw(record.id, operation)
  })
  it('a pin request can be withdrawn while it is retrieving', async () => {
    const held = await provider()
    const cid = await held.file(randomBytes(2_500_000))
    const [leaf] = await held.links(cid)
    assert.ok(leaf)
    held.hold(leaf)
    const { record, operation } = await api.pin({ cid: `${cid}`, host_nodes: [held.multiaddr] })
    await until('it is retrieving', async () => (await api.queued(record.id))?.status === 'retrieving')
    await withdraw(record.id, operation)
    assert.equal(await isPinned(cid), false)
  })
  it('a pin request can be withdrawn while it waits for its next attempt', async () => {
    const { record, operation } = await api.pin({ cid: `${await missingCid()}` })
    await until('an attempt has ended', async () => {
      const { state, attempts } = (await api.get(`/v0/operations/${operation}`)).body.data
      return state === 'queued' && attempts > 0
    })
    await withdraw(record.id, operation)
  })
  it('a pin request can be withdrawn after it has failed', async () => {
    const cid = `${await node.block(randomBytes(20))}`
    const { record, operation } = await api.pin({ cid, host_nodes }, { wait: 120 })
    assert.equal(record.status, 'invalid_object')
    await withdraw(record.id, operation)
  })
  it('a pin request with a formerly accepted CID can be withdrawn [report: impossible content]', async () => {
    for (const cid of [inlineCid('x'.repeat(200)), CID.createV1(0x78, (await missingCid()).multihash)]) {
      const { record, operation } = await api.pin({ cid: `${await missingCid()}` })
      const { record: failing, operation: failed } = await api.pin({ cid: `${await missingCid()}` })
      for (const { id } of [record, failing])
        await sql('UPDATE file SET cid = $2, cid_v1 = $2 WHERE id = $1', [id, `${cid}`])
      await withdraw(record.id, operation)
      await sql(`UPDATE operation SET next_attempt_at = now() WHERE id = $1`, [failed])
      assert.equal((await api.finished(failed)).state, 'failed')
      assert.equal((await api.queued(failing.id))?.status, 'invalid_object')
      await withdraw(failing.id, failed)
    }
  })
  it('only unpinned requests are withdrawn in the queue, and only pinned ones deleted as files', async () => {
    const id = await pinned(`${await node.file(randomBytes(10))}`)
    assertError(await api.delete(`${QUEUE}/${id}`), 404, NO_PIN)
    const { record } = await api.pin({ cid: `${await missingCid()}` })
    assertError(await api.delete(`${FILES}/${record.id}`), 404, NO_FILE)
    assert.equal((await api.delete(`${QUEUE}/${record.id}`)).status, 200)
  })
})

describe('a retry of a pin request', () => {
  const retry = (id: string, client = api) => client.post(`/v0/files/public/pin_by_cid/${id}/retry`, {})
  it('a retried pin request keeps its id, name and metadata, and is pinned', async () => {
    const late = await provider()
    const cid = `${await late.file(randomBytes(100))}`
    await late.stop()
    const request = { cid, name: 'late', keyvalues: { a: '1' }, host_nodes: [late.multiaddr] }
    const failed = await api.pin(request, { wait: 120 })
    assert.equal(failed.record.status, 'bad_host_node')
    await sql('UPDATE file SET host_nodes = $2, cid = $3, cid_v1 = $3 WHERE id = $1', [
      failed.record.id,
      [node.multiaddr],
      `${await node.file(randomBytes(100))}`,
    ])
    const { status, headers, body } = await retry(failed.record.id)
    assert.equal(status, 200)
    const { id, name, keyvalues, status: state } = body.data
    assert.deepEqual([id, name, keyvalues, state], [failed.record.id, 'late', { a: '1' }, 'prechecking'])
    const operation = headers.get('operation-id') ?? ''
    assert.notEqual(operation, failed.operation)
    assert.equal((await api.finished(operation)).state, 'succeeded')
    assert.equal((await api.get(`${FILES}/${id}`)).body.data.name, 'late')
    assertError(await retry(id), 404, NO_PIN)
  })
  it('concurrent retries of a pin request each return one of its operations', async () => {
    const cid = `${await node.block(randomBytes(20))}`
    const { record } = await api.pin({ cid, host_nodes }, { wait: 120 })
    assert.equal(record.status, 'invalid_object')
    const replies = await Promise.all(Array.from({ length: 4 }, () => retry(record.id)))
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200, 200, 200],
    )
    const [first] = replies
    await api.finished(first?.headers.get('operation-id') ?? '')
    const { body } = await api.get('/v0/operations', { target: record.id, kind: 'pin.add' })
    const known = body.data.operations.map(({ id }: { id: string }) => id)
    // A request that arrives after the failure starts another operation.
    for (const { headers } of replies) assert.ok(known.includes(headers.get('operation-id')))
    await api.delete(`${QUEUE}/${record.id}`)
  })
  it('a retry does not restart a pin request under way or one of another workspace', async () => {
    const { record, operation } = await api.pin({ cid: `${await missingCid()}` })
    const { status, headers } = await retry(record.id)
    assert.deepEqual([status, headers.get('operation-id')], [200, operation])
    assertError(await retry(record.id, other.api), 404, NO_PIN)
    await api.delete(`${QUEUE}/${record.id}`)
    assertError(await retry(record.id), 404, NO_PIN)
    assertError(await retry('x'), 404, NO_PIN)
  })
})

describe('content of deleted files', () => {
  it('the content of a deleted file is released', async () => {
    const cid = await node.file(randomBytes(100))
    const id = await pinned(`${cid}`)
    assert.equal(await isPinned(cid), true)
    await remove(id)
    assert.equal(await isPinned(cid), false)
    assertError(await api.get(`${FILES}/${id}`), 404, NO_FILE)
    assertError(await api.delete(`${FILES}/${id}`), 404, NO_FILE)
  })
  it('the content of a deleted file stays while another file has it, in any workspace', async () => {
    const cid = await node.folder({ a: randomBytes(100), b: randomBytes(100) })
    const first = await pinned(`${cid}`)
    const second = await pinned(`${cid.toV0()}`)
    const foreign = await pinned(`${cid}`.toUpperCase(), other.api)
    await remove(first)
    assert.equal(await isPinned(cid), true)
    await remove(second)
    assert.equal(await isPinned(cid), true)
    assert.equal((await other.api.get(`${FILES}/${foreign}`)).status, 200)
    await remove(foreign, other.api)
    assert.equal(await isPinned(cid), false)
  })
  it('the content of a deleted file can be pinned again', async () => {
    const cid = await node.file(randomBytes(100))
    for (let i = 0; i < 3; i++) {
      const id = await pinned(`${cid}`)
      assert.equal(await isPinned(cid), true)
      await remove(id)
    }
  })
  it('the content of a deleted file stays if it is requested again during its release', async () => {
    const cid = await node.file(randomBytes(100))
    let id = await pinned(`${cid}`)
    for (let i = 0; i < 5; i++) {
      const [removal, next] = await Promise.all([api.delete(`${FILES}/${id}`), pinned(`${cid}`)])
      await api.finished(removal.headers.get('operation-id') ?? '')
      assert.equal(await isPinned(cid), true)
      id = next
    }
  })
  it('deleting with Prefer: wait responds after the content is released', async () => {
    const cid = await node.file(randomBytes(100))
    const id = await pinned(`${cid}`)
    const { status } = await api.delete(`${FILES}/${id}`, { prefer: 'wait=120' })
    assert.equal(status, 200)
    assert.equal(await isPinned(cid), false)
  })
  it('concurrent deletions of a file: one succeeds and the others return 404', async () => {
    const id = await pinned(`${await node.file(randomBytes(100))}`)
    const replies = await Promise.all(Array.from({ length: 10 }, () => api.delete(`${FILES}/${id}`)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(9).fill(404)])
  })
})
