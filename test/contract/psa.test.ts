/** The IPFS Pinning Service API at `/psa`: creating, replacing and removing pins, and its errors. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { forEachConcurrently } from '../../src/lib/each-of.ts'
import type { Client, Reply } from '../support/client.ts'
import { freePort, until } from '../support/processes.ts'
import { inlineCid, missingCid, openContext } from './context.ts'

const PINS = '/psa/pins'
const NOBODY = '0191f0f0-0000-7000-8000-000000000000'

const { anonymous, isPinned, provider, workspace } = await openContext()
const { api } = await workspace()
const node = await provider()
const v1 = await missingCid(0x70)

async function add(body: object, client: Client = api) {
  const reply = await client.post(PINS, body)
  assert.equal(reply.status, 202, JSON.stringify(reply.body))
  return reply.body
}
const get = async (id: string, client: Client = api) => (await client.get(`${PINS}/${id}`)).body
const reaches = (id: string, status: string) =>
  until(`${id} is ${status}`, async () => {
    const pin = await get(id)
    return pin.status === status && pin
  })
/** An address where nothing listens. */
const deadEnd = async () =>
  `/ip4/127.0.0.1/tcp/${await freePort()}/p2p/12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV`

function assertFailure(reply: Reply, status: number, reason: string, details: string | RegExp): void {
  assert.equal(reply.status, status, JSON.stringify(reply.body))
  assert.equal(reply.body.error.reason, reason)
  assert.equal(reply.headers.get('error-code')?.toUpperCase(), reason)
  if (typeof details === 'string') assert.equal(reply.body.error.details, details)
  else assert.match(reply.body.error.details, details)
}
const refused = async (body: unknown, details: RegExp) =>
  assertFailure(await api.post(PINS, body), 400, 'BAD_REQUEST', details)

describe('a pin', () => {
  it('a pin is queued, and pinned when its content has arrived', async () => {
    const request = {
      cid: `${await node.file(randomBytes(100))}`,
      name: 'a name',
      origins: [node.multiaddr],
      meta: { app: 'x' },
    }
    const { requestid, created, delegates, ...rest } = await add(request)
    assert.deepEqual(rest, { status: 'queued', pin: request, info: { status_details: 'prechecking' } })
    assert.match(created, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.ok(Math.abs(Date.parse(created) - Date.now()) < 60_000)
    for (const address of delegates) assert.match(address, /\/p2p\/12D3KooW\w+$/)
    assert.deepEqual(await reaches(requestid, 'pinned'), {
      requestid,
      status: 'pinned',
      created,
      pin: request,
      delegates,
      info: { raw_size: '100' },
    })
    const file = await api.get(`/v3/files/public/${requestid}`)
    assert.deepEqual([file.body.data.name, file.body.data.keyvalues], [request.name, request.meta])
  })
  it('a pin needs only the CID', async () => {
    const { pin } = await add({ cid: `${v1}` })
    assert.deepEqual(pin, { cid: `${v1}`, origins: [], meta: {} })
  })
  it('each repeated request for a CID is a separate pin', async () => {
    const [a, b] = [await add({ cid: `${v1}` }), await add({ cid: `${v1}` })]
    assert.notEqual(a.requestid, b.requestid)
  })
  it('a pin by CID is also a pin here', async () => {
    const { record } = await api.pin({ cid: `${inlineCid('psa')}`, keyvalues: { a: 'b' } }, { wait: 120 })
    const { status, pin } = await get(record.id)
    assert.deepEqual([status, pin], ['pinned', { cid: record.cid, origins: [], meta: { a: 'b' } }])
  })
  it('a pin is pinning while Berth searches for it', async () => {
    const { requestid } = await add({ cid: `${v1}` })
    const { info } = await reaches(requestid, 'pinning')
    assert.match(info.status_details, /^searching/)
  })
  it('a pin that cannot be kept has failed, with the reason', async () => {
    const cid = `${await node.block(Buffer.from('psa failure'))}`
    const { requestid } = await add({ cid, origins: [node.multiaddr] })
    const { info } = await reaches(requestid, 'failed')
    assert.match(info.status_details, /^invalid_object: A block/)
  })
  it('a pin shows when it expires', async () => {
    const { record } = await api.pin({ cid: `${inlineCid('psa expiry')}` }, { wait: 120 })
    const expires_at = Math.floor(Date.now() / 1000) + 3600
    assert.equal((await api.put(`/v3/files/public/${record.id}`, { expires_at })).status, 200)
    const { info } = await get(record.id)
    assert.equal(Date.parse(info.pinned_until), expires_at * 1000)
  })
})

describe('origins', () => {
  it('unusable origins are ignored', async () => {
    const origins = ['nonsense', '/ip4/127.0.0.1/tcp/1', '/dns4/a\0b/tcp/1/p2p/x', 'x'.repeat(5000)]
    const cid = `${await node.file(randomBytes(10))}`
    const { requestid, pin } = await add({ cid, origins: [...origins, node.multiaddr] })
    assert.deepEqual(pin.origins, [node.multiaddr])
    await reaches(requestid, 'pinned')
  })
  it('origins that cannot be dialed do not fail the pin', async () => {
    const cid = `${await missingCid()}`
    const origins = [await deadEnd()]
    const { requestid } = await add({ cid, origins })
    const asHostNode = await api.pin({ cid, host_nodes: origins }, { wait: 120 })
    assert.equal(asHostNode.record.status, 'bad_host_node', 'an unreachable host node does')
    await reaches(requestid, 'pinning')
  })
  it('origins are limited to 100, and the first 20 dialable ones are kept', async () => {
    const local = Array.from({ length: 79 }, (_, i) => `/ip4/127.0.0.1/tcp/${i}`)
    const dialable = Array.from({ length: 21 }, (_, i) => node.multiaddr.replace(/tcp\/\d+/, `tcp/${i + 1}`))
    const { pin } = await add({ cid: `${v1}`, origins: [...local, ...dialable] })
    assert.deepEqual(pin.origins, dialable.slice(0, 20))
    const tooMany = [...local, ...dialable, node.multiaddr]
    await refused({ cid: `${v1}`, origins: tooMany }, /^origins: must have at most 100 entries$/)
  })
})

describe('replacing a pin', () => {
  it('a replaced pin gives way to another with its own id', async () => {
    const old = await add({ cid: `${inlineCid('psa old')}`, name: 'old' })
    await reaches(old.requestid, 'pinned')
    const reply = await api.post(`${PINS}/${old.requestid}`, { cid: `${inlineCid('psa new')}`, name: 'new' })
    assert.equal(reply.status, 202)
    assert.notEqual(reply.body.requestid, old.requestid)
    assert.equal(reply.body.pin.name, 'new')
    assertFailure(await api.get(`${PINS}/${old.requestid}`), 404, 'NOT_FOUND', 'There is no such pin request')
    await reaches(reply.body.requestid, 'pinned')
  })
  it('a replaced pin keeps its content until the new one is pinned', async () => {
    const blocks = { shared: randomBytes(2000), a: randomBytes(10) }
    const root = await node.folder(blocks)
    const old = await add({ cid: `${root}`, origins: [node.multiaddr] })
    await reaches(old.requestid, 'pinned')
    const slow = await provider()
    const next = await slow.folder({ ...blocks, b: randomBytes(10) })
    const letGo = slow.hold(next)
    const path = `${PINS}/${old.requestid}`
    const { body } = await api.post(path, { cid: `${next}`, origins: [slow.multiaddr] })
    await reaches(body.requestid, 'pinning')
    // Removals run in order: if a later one is done, this one is waiting.
    const later = inlineCid('psa later')
    const { record } = await api.pin({ cid: `${later}` }, { wait: 120 })
    await api.delete(`${PINS}/${record.id}`)
    await until('a later removal is done', async () => !(await isPinned(later)))
    assert.equal(await isPinned(root), true)
    letGo()
    await reaches(body.requestid, 'pinned')
    await until('the old content is released', async () => !(await isPinned(root)))
    assert.equal(await isPinned(next), true)
  })
  it('a pin may be replaced by the same CID', async () => {
    const cid = inlineCid('psa same')
    const old = await add({ cid: `${cid}`, name: 'a' })
    await reaches(old.requestid, 'pinned')
    const { body } = await api.post(`${PINS}/${old.requestid}`, { cid: `${cid}`, name: 'b' })
    await reaches(body.requestid, 'pinned')
    const left = async () => {
      const operations = await api.get('/v0/operations', { target: old.requestid, kind: 'pin.remove' })
      return operations.body.data.operations[0]?.state === 'succeeded'
    }
    await until('the old pin is removed', left)
    assert.equal(await isPinned(cid), true)
  })
  it('a pin stays if its replacement is refused', async () => {
    const { requestid } = await add({ cid: `${v1}` })
    assertFailure(await api.post(`${PINS}/${requestid}`, { cid: 'x' }), 400, 'BAD_REQUEST', /^cid: /)
    assert.equal((await get(requestid)).requestid, requestid)
  })
})

describe('removing a pin', () => {
  for (const [what, cid] of Object.entries({ pinned: inlineCid('psa removed'), pinning: v1 })) {
    it(`a removed pin is gone at once if it was ${what}`, async () => {
      const { requestid } = await add({ cid: `${cid}` })
      await reaches(requestid, what)
      const { status, body } = await api.delete(`${PINS}/${requestid}`)
      assert.deepEqual([status, body], [202, ''])
      for (const method of ['GET', 'DELETE'])
        assertFailure(await api.request(method, `${PINS}/${requestid}`), 404, 'NOT_FOUND', /no such pin/)
      await until('its content is released', async () => !(await isPinned(cid)))
    })
  }
})

describe('errors of the Pinning Service API', () => {
  it('the Pinning Service API returns 400 for a malformed pin [report: impossible content]', async () => {
    await refused(
      { cid: `${inlineCid('x'.repeat(200))}` },
      /^cid: an identity CID of 200 bytes is not supported/,
    )
    const broken = await api.request('POST', PINS, { body: '{' })
    assertFailure(broken, 400, 'BAD_REQUEST', 'body: not valid JSON')
  })
  it('the Pinning Service API returns 401 without a key, and with an unknown one', async () => {
    for (const [method, path] of [
      ['GET', PINS],
      ['POST', PINS],
      ['GET', `${PINS}/${NOBODY}`],
      ['POST', `${PINS}/${NOBODY}`],
      ['DELETE', `${PINS}/${NOBODY}`],
    ] as const) {
      assertFailure(await anonymous.request(method, path), 401, 'NO_AUTHORIZATION', /^Missing Authorization/)
      assertFailure(await anonymous.as('x').request(method, path), 401, 'BAD_TOKEN', /^Invalid/)
    }
  })
  it('the Pinning Service API returns 404 for an unknown route', async () => {
    for (const path of ['/psa', '/psa/', '/psa/nowhere'])
      assertFailure(await api.get(path), 404, 'NOT_FOUND', `No such route: GET ${path}`)
    const { error } = (await api.get('/psalm')).body
    assert.equal(typeof error, 'string', '/psalm is not part of this API')
  })
  it('the Pinning Service API returns 409 on a plan without pins by CID', async () => {
    const free = await workspace('free')
    for (const path of [PINS, `${PINS}/${NOBODY}`]) {
      const reply = await free.api.post(path, { cid: `${v1}` })
      assertFailure(reply, 409, 'INSUFFICIENT_FUNDS', 'Pin by CID is not part of the free plan')
    }
    assert.equal((await free.api.get(PINS)).status, 200)
  })
  it('the Pinning Service API returns 413 for a body that is too large', async () => {
    const body = JSON.stringify({ cid: 'x'.repeat(1_100_000) })
    assertFailure(await api.request('POST', PINS, { body }), 413, 'TOO_LARGE', /1 MiB/)
  })
  it('the Pinning Service API returns 429 above the plan’s limit', async () => {
    const free = await workspace('free')
    const replies: Reply[] = []
    // Eight at a time: each takes one of the ten database connections.
    await forEachConcurrently(Array(61).keys(), 8, async () => replies.push(await free.api.get(PINS)))
    const last = replies.find(({ status }) => status !== 200)
    assert.ok(last)
    assertFailure(last, 429, 'RATE_LIMITED', 'Too many requests: 60 a minute on plan free')
  })
})
