/** Operations: reading, waiting, listing, streaming and cancelling. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { insertAgent } from './agents/rows.ts'
import { inlineCid, missingCid, openContext } from './context.ts'
import { collectPages } from './pages.ts'

const OPERATIONS = '/v0/operations'
const QUEUE = '/v3/files/public/pin_by_cid'

const context = await openContext()
const { provider, sql, workspace } = context
const { api } = await workspace()

const get = async (id: string) => (await api.get(`${OPERATIONS}/${id}`)).body.data
const running = (id: string) =>
  until('the operation runs', async () => {
    const operation = await get(id)
    return operation.state === 'running' && operation
  })
/** A pin that stays retrieving, and a function that lets it finish. */
async function held() {
  const node = await provider()
  const cid = await node.file(randomBytes(2_500_000))
  const leaf = (await node.links(cid))[2]
  assert.ok(leaf)
  const release = node.hold(leaf)
  return { ...(await api.pin({ cid: `${cid}`, host_nodes: [node.multiaddr] })), release }
}
/** The events of a stream that has ended. */
async function events(id: string, headers?: Record<string, string>) {
  const { status, body } = await api.get(`${OPERATIONS}/${id}/events`, undefined, headers)
  assert.equal(status, 200)
  return body
    .split('\n\n')
    .filter((event: string) => event && !event.startsWith(':'))
    .map((event: string) => {
      const [, name, version, data] = /^event: (\w+)\nid: (\d+)\ndata: (.+)$/.exec(event) ?? []
      assert.equal(name, 'operation', event)
      return { version: Number(version), operation: JSON.parse(data ?? '') }
    })
}

describe('an operation', () => {
  it('an operation has exactly these fields', async () => {
    const { record, operation } = await api.pin({ cid: `${inlineCid('fields')}` }, { wait: 120 })
    const { created_at, started_at, finished_at, step, progress, ...rest } = await get(operation)
    assert.deepEqual(rest, {
      id: operation,
      kind: 'pin.add',
      target: record.id,
      target_name: record.cid,
      state: 'succeeded',
      attempts: 1,
      error: null,
      error_code: null,
      next_attempt_at: null,
    })
    for (const time of [created_at, started_at, finished_at])
      assert.match(time, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    assert.ok(created_at <= started_at && started_at <= finished_at)
    assert.ok(step && (progress === null || typeof progress === 'object'))
  })
  it('an operation shows the progress of a retrieval', async () => {
    const { operation, release } = await held()
    const { step, progress } = await until('blocks have arrived', async () => {
      const latest = await get(operation)
      return latest.progress?.blocks > 0 && latest
    })
    assert.equal(step, 'retrieving')
    const { bytes, total_bytes } = progress
    assert.ok(bytes > 0 && (total_bytes === null || total_bytes > 2_500_000), JSON.stringify(progress))
    release()
    const end = await api.finished(operation)
    assert.deepEqual([end.state, (end.progress as { blocks: number }).blocks], ['succeeded', 4])
  })
  it('an operation shows why its last attempt failed and when the next one is due', async () => {
    const { record, operation } = await api.pin({ cid: `${await missingCid()}` })
    const waiting = await until('an attempt has ended', async () => {
      const latest = await get(operation)
      // If it is queued without a code, a slow worker gave it back and it will be claimed again.
      return latest.state === 'queued' && latest.error_code !== null && latest
    })
    assert.equal(waiting.error_code, 'stalled')
    assert.ok(waiting.next_attempt_at > waiting.started_at)
    await api.delete(`${QUEUE}/${record.id}`)
  })
})

describe('waiting for an operation', () => {
  it('waiting for an operation ends when the operation does', async () => {
    const { operation, release } = await held()
    await running(operation)
    const waiting = api.get(`${OPERATIONS}/${operation}`, { wait: '30' })
    release()
    assert.equal((await waiting).body.data.state, 'succeeded')
  })
  it('waiting for an operation ends when the requested time is over', async () => {
    const { record, operation } = await api.pin({ cid: `${await missingCid()}` })
    const ask = async (wait: string) => (await api.get(`${OPERATIONS}/${operation}`, { wait })).body.data
    let isOver = false
    const tenSeconds = ask('10').finally(() => {
      isOver = true
    })
    const start = performance.now()
    assert.equal((await ask('1')).finished_at, null)
    assert.ok(performance.now() - start >= 950)
    assert.ok(!isOver, 'the request that may wait ten seconds has not ended yet')
    await api.delete(`${QUEUE}/${record.id}`)
    await tenSeconds
  })
  it('waiting 0 seconds for an operation returns at once', async () => {
    const { operation } = await api.pin({ cid: `${inlineCid('now')}` })
    assert.equal((await api.get(`${OPERATIONS}/${operation}`, { wait: '0' })).status, 200)
  })
})

describe('Prefer', () => {
  const pin = async (prefer: string, cid = `${inlineCid(prefer)}`) => api.post(QUEUE, { cid }, { prefer })

  for (const prefer of ['wait=30', 'Wait = 30'])
    it(`Prefer: ${prefer} responds when the operation has ended`, async () => {
      assert.equal((await pin(prefer)).body.data.status, 'pinned')
    })
  for (const prefer of ['respond-async', 'something-else', ''])
    it(`Prefer: ${prefer || 'nothing'} responds at once`, async () => {
      assert.equal((await pin(prefer)).body.data.status, 'prechecking')
    })
  it('Prefer: wait=1 responds after a second with the current state of the request', async () => {
    const cid = `${await missingCid()}`
    const start = performance.now()
    const { body } = await pin('wait=1', cid)
    assert.ok(performance.now() - start >= 950)
    // A busy worker may not be that far.
    assert.ok(['prechecking', 'searching'].includes(body.data.status), body.data.status)
    await api.delete(`${QUEUE}/${body.data.id}`)
  })
})

describe('the list of operations', async () => {
  const own = await workspace()
  const pins: Awaited<ReturnType<typeof own.api.pin>>[] = []
  for (let i = 0; i < 13; i++) pins.push(await own.api.pin({ cid: `${inlineCid(`operation ${i}`)}` }))
  for (const { operation } of pins) await own.api.finished(operation)
  for (const { record } of pins.slice(0, 12))
    await own.api.delete(`/v3/files/public/${record.id}`, { prefer: 'wait=30' })
  const open = await own.api.pin({ cid: `${await missingCid()}` })
  const list = async (query: Record<string, string>) =>
    (await own.api.get(OPERATIONS, query)).body.data.operations

  for (const order of ['ASC', 'DESC', 'DSC'])
    it(`pages of operations skip and repeat nothing with ${order}`, async () => {
      for (const limit of ['1', '10', '26', '250']) {
        const all = await collectPages(own.api, OPERATIONS, 'operations', { order, limit })
        const ids = all.map(({ id }) => id)
        assert.equal(new Set(ids).size, 26)
        assert.deepEqual(ids, order === 'ASC' ? ids.toSorted() : ids.toSorted().reverse())
      }
    })
  it('the list of operations filters by kind, state and target', async () => {
    assert.equal((await list({ kind: 'pin.remove', limit: '250' })).length, 12)
    assert.equal((await list({ kind: 'pin.add', state: 'succeeded', limit: '250' })).length, 13)
    const [first] = pins
    const kinds = (await list({ target: first?.record.id ?? '' })).map(({ kind }: { kind: string }) => kind)
    assert.deepEqual(kinds, ['pin.remove', 'pin.add'])
    assert.deepEqual(await list({ state: 'failed' }), [])
    assert.deepEqual(await list({ target: 'x' }), [])
    const unfinished = [...(await list({ state: 'queued' })), ...(await list({ state: 'running' }))]
    assert.ok(unfinished.every(({ id }) => id === open.operation))
    await own.api.delete(`${QUEUE}/${open.record.id}`)
  })
})

describe('scopes of operations', async () => {
  const own = await workspace()
  const agent = await insertAgent(context, own)
  const restart = async () => {
    const { headers } = await own.api.post(`${agent.path}/restart`, undefined, { prefer: 'respond-async' })
    return headers.get('operation-id') ?? ''
  }
  const ofFiles = [
    (await own.api.pin({ cid: `${inlineCid('a')}` }, { wait: 120 })).operation,
    (await own.api.pin({ cid: `${inlineCid('b')}` }, { wait: 120 })).operation,
    (await own.api.pin({ cid: `${await missingCid()}` })).operation,
  ]
  const ofAgents = [await restart()]
  await own.api.finished(ofAgents[0] ?? '')
  ofAgents.push(await restart())
  await own.api.finished(ofAgents[1] ?? '')
  const files = await own.keyed('org:files:write')
  const agents = await own.keyed('org:agents:write')

  it('operations are listed only for keys with the scope of their resource, on every page', async () => {
    for (const [key, expected] of [
      [files, ofFiles],
      [agents, ofAgents],
      [own.api, [...ofFiles, ...ofAgents]],
    ] as const)
      for (const limit of ['1', '2', '250']) {
        const all = await collectPages(key, OPERATIONS, 'operations', { order: 'ASC', limit })
        assert.deepEqual(
          all.map(({ id }) => id),
          expected.toSorted(),
        )
      }
    const { body } = await agents.get(OPERATIONS, { kind: 'pin.add' })
    assert.deepEqual(body.data.operations, [])
  })
  it('an operation can be read, awaited and streamed only with the scope of its resource', async () => {
    for (const [key, id, scope] of [
      [agents, ofFiles[2], 'org:files:read'],
      [files, ofAgents[0], 'org:agents:read'],
    ] as const)
      for (const path of [`${id}`, `${id}?wait=30`, `${id}/events`])
        assertError(await key.get(`${OPERATIONS}/${path}`), 403, `Missing scope: ${scope}`)
    for (const [key, id] of [
      [files, ofFiles[0]],
      [agents, ofAgents[0]],
    ] as const)
      for (const path of [`${id}`, `${id}/events`])
        assert.equal((await key.get(`${OPERATIONS}/${path}`)).status, 200)
  })
  it('cancelling an operation needs the scope to change its resource', async () => {
    const [, , waiting = ''] = ofFiles
    const reader = await own.keyed('org:files:read', 'org:agents:write')
    for (const key of [agents, reader])
      assertError(await key.delete(`${OPERATIONS}/${waiting}`), 403, 'Missing scope: org:files:write')
    assertError(await files.delete(`${OPERATIONS}/${ofAgents[0]}`), 403, 'Missing scope: org:agents:write')
    assert.equal((await own.api.get(`${OPERATIONS}/${waiting}`)).body.data.finished_at, null)
    assert.equal((await files.delete(`${OPERATIONS}/${waiting}`)).status, 200)
    assert.equal((await own.api.finished(waiting)).state, 'canceled')
  })
})

describe('events of operations', () => {
  it('the events of an operation report each change, and end with the operation', async () => {
    const { operation, release } = await held()
    await running(operation)
    const stream = events(operation)
    await until('blocks have arrived', async () => (await get(operation)).progress?.blocks > 0)
    release()
    const seen = await stream
    const versions = seen.map(({ version }: { version: number }) => version)
    assert.deepEqual(
      versions,
      versions.toSorted((a: number, b: number) => a - b),
    )
    assert.equal(new Set(versions).size, versions.length)
    assert.equal(seen[0].operation.state, 'running')
    assert.deepEqual(seen.at(-1).operation, await get(operation))

    const later = await events(operation, { 'last-event-id': String(versions.at(-2)) })
    assert.deepEqual(later, seen.slice(-1))
    assert.deepEqual(await events(operation, { 'last-event-id': String(versions.at(-1)) }), [])
  })
  it('the events of an operation start from the current state if Last-Event-ID is unknown', async () => {
    const { operation } = await api.pin({ cid: `${inlineCid('events')}` }, { wait: 120 })
    for (const id of ['x', '', '-5', '0'])
      assert.equal((await events(operation, { 'last-event-id': id })).length, 1, id)
  })
})

describe('cancelling an operation', () => {
  const cancel = (id: string) => api.delete(`${OPERATIONS}/${id}`)

  it('cancelling a queued operation ends it, and removes what it was creating', async () => {
    const { record, operation } = await api.pin({ cid: `${await missingCid()}` })
    // Between two attempts, with the next one postponed: it would start within a second, maybe before the request
    // arrives.
    const putOff = `UPDATE operation SET next_attempt_at = now() + interval '1 day'
                    WHERE id = $1 AND state = 'queued' AND attempts > 0 RETURNING id`
    await until('an attempt has ended', async () => (await sql(putOff, [operation])).length === 1)
    const { status, body } = await cancel(operation)
    assert.deepEqual([status, body.data.state], [200, 'canceled'])
    assert.ok(body.data.finished_at)
    assert.equal(await api.queued(record.id), undefined)
  })
  it('cancelling a running operation ends it within about a second', async () => {
    const { record, operation } = await held()
    await running(operation)
    assert.equal((await cancel(operation)).status, 200)
    assert.equal((await api.finished(operation)).state, 'canceled')
    assert.equal(await api.queued(record.id), undefined)
    assert.equal((await api.get(`/v3/files/public/${record.id}`)).status, 404)
    const again = await cancel(operation)
    assert.deepEqual([again.status, again.body.data.state], [200, 'canceled'], 'a repeat changes nothing')
  })
  it('cancelling an operation that has ended returns 409', async () => {
    const done = await api.pin({ cid: `${inlineCid('done')}` }, { wait: 120 })
    const reply = await cancel(done.operation)
    assertError(reply, 409, 'The operation has succeeded already')
    assert.equal(reply.headers.get('error-code'), 'finished')
    assert.equal((await api.get(`/v3/files/public/${done.record.id}`)).status, 200)

    const node = await provider()
    const cid = `${await node.block(randomBytes(20))}`
    const failed = await api.pin({ cid, host_nodes: [node.multiaddr] }, { wait: 120 })
    assertError(await cancel(failed.operation), 409, 'The operation has failed already')
  })
})
