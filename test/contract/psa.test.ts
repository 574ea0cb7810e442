/** The IPFS Pinning Service API at `/psa`: making, replacing and removing pins, and its errors. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { eachOf } from '../../src/lib/each-of.ts'
import type { Client, Reply } from '../support/client.ts'
import { freePort, until } from '../support/processes.ts'
import { inlineCid, missingCid, openContext } from './context.ts'

const PINS = '/psa/pins'
const NOBODY = '0191f0f0-0000-7000-8000-000000000000'

const { anonymous, isPinned, provider, workspace } = await openContext()
const { api, keyed } = await workspace()
const other = await workspace()
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
/** An address where nobody listens. */
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
  it('a pin needs nothing but the CID', async () => {
    const { pin } = await add({ cid: `${v1}` })
    assert.deepEqual(pin, { cid: `${v1}`, origins: [], meta: {} })
  })
  it('a pin may be asked for twice: each request is one of its own', async () => {
    const [a, b] = [await add({ cid: `${v1}` }), await add({ cid: `${v1}` })]
    assert.notEqual(a.requestid, b.requestid)
  })
  it('a pin is the same as a pin by CID, and as a file', async () => {
    const { record } = await api.pin({ cid: `${inlineCid('psa')}`, keyvalues: { a: 'b' } }, { wait: 120 })
    const { status, pin } = await get(record.id)
    assert.deepEqual([status, pin], ['pinned', { cid: record.cid, origins: [], meta: { a: 'b' } }])
  })
  it('a pin is pinning while it is searched for', async () => {
    const { requestid } = await add({ cid: `${v1}` })
    const { info } = await reaches(requestid, 'pinning')
    assert.match(info.status_details, /^searching/)
  })
  it('a pin has failed, and says why, when it cannot be kept', async () => {
    const cid = `${await node.block(Buffer.from('psa failure'))}`
    const { requestid } = await add({ cid, origins: [node.multiaddr] })
    const { info } = await reaches(requestid, 'failed')
    assert.match(info.status_details, /^invalid_object: A block/)
  })
  it('a pin says until when it is pinned', async () => {
    const { record } = await api.pin({ cid: `${inlineCid('psa expiry')}` }, { wait: 120 })
    const expires_at = Math.floor(Date.now() / 1000) + 3600
    assert.equal((await api.put(`/v3/files/public/${record.id}`, { expires_at })).status, 200)
    const { info } = await get(record.id)
    assert.equal(Date.parse(info.pinned_until), expires_at * 1000)
  })
})

describe('origins', () => {
  it('origins that nobody can use are passed over', async () => {
    const origins = ['nonsense', '/ip4/127.0.0.1/tcp/1', '/dns4/a\0b/tcp/1/p2p/x', 'x'.repeat(5000)]
    const cid = `${await node.file(randomBytes(10))}`
    const { requestid, pin } = await add({ cid, origins: [...origins, node.multiaddr] })
    assert.deepEqual(pin.origins, [node.multiaddr])
    await reaches(requestid, 'pinned')
  })
  it('origins that cannot be dialled do not fail the pin', async () => {
    const cid = `${await missingCid()}`
    const origins = [await deadEnd()]
    const { requestid } = await add({ cid, origins })
    const asHostNode = await api.pin({ cid, host_nodes: origins }, { wait: 120 })
    assert.equal(asHostNode.record.status, 'bad_host_node', 'a host node does')
    await reaches(requestid, 'pinning')
  })
  it('origins are at most 100, of which the first 20 that can be dialled are kept', async () => {
    const local = Array.from({ length: 79 }, (_, i) => `/ip4/127.0.0.1/tcp/${i}`)
    const dialable = Array.from({ length: 21 }, (_, i) => node.multiaddr.replace(/tcp\/\d+/, `tcp/${i + 1}`))
    const { pin } = await add({ cid: `${v1}`, origins: [...local, ...dialable] })
    assert.deepEqual(pin.origins, dialable.slice(0, 20))
    const tooMany = [...local, ...dialable, node.multiaddr]
    await refused({ cid: `${v1}`, origins: tooMany }, /^origins: must have at most 100 entries$/)
  })
})

describe('a pin that is replaced', () => {
  it('a pin that is replaced gives its place to another, with an id of its own', async () => {
    const old = await add({ cid: `${inlineCid('psa old')}`, name: 'old' })
    await reaches(old.requestid, 'pinned')
    const reply = await api.post(`${PINS}/${old.requestid}`, { cid: `${inlineCid('psa new')}`, name: 'new' })
    assert.equal(reply.status, 202)
    assert.notEqual(reply.body.requestid, old.requestid)
    assert.equal(reply.body.pin.name, 'new')
    assertFailure(await api.get(`${PINS}/${old.requestid}`), 404, 'NOT_FOUND', 'There is no such pin request')
    await reaches(reply.body.requestid, 'pinned')
  })
  it('a pin that is replaced keeps what it has until the other one is there', async () => {
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
    // Removals go in turn: what is accepted later and released shows that this one waits.
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
  it('a pin that is replaced may be replaced by the same CID', async () => {
    const cid = inlineCid('psa same')
    const old = await add({ cid: `${cid}`, name: 'a' })
    await reaches(old.requestid, 'pinned')
    const { body } = await api.post(`${PINS}/${old.requestid}`, { cid: `${cid}`, name: 'b' })
    await reaches(body.requestid, 'pinned')
    const left = async () => {
      const operations = await api.get('/v0/operations', { target: old.requestid, kind: 'pin.remove' })
      return operations.body.data.operations[0]?.state === 'succeeded'
    }
    await until('the old one is removed', left)
    assert.equal(await isPinned(cid), true)
  })
  it('a pin that is replaced stays where the other one is refused', async () => {
    const { requestid } = await add({ cid: `${v1}` })
    assertFailure(await api.post(`${PINS}/${requestid}`, { cid: 'x' }), 400, 'BAD_REQUEST', /^cid: /)
    assert.equal((await get(requestid)).requestid, requestid)
  })
})

describe('a pin that is removed', () => {
  for (const [what, cid] of Object.entries({ pinned: inlineCid('psa removed'), pinning: v1 })) {
    it(`a pin that is removed is gone at once when it was ${what}`, async () => {
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

describe('a failure', () => {
  it('a failure of the Pinning Service API is 400 for a body that is not a pin [report: impossible content]', async () => {
    await refused({}, /^cid: /)
    await refused({ cid: 'x' }, /^cid: not a CID/)
    await refused(
      { cid: `${inlineCid('x'.repeat(200))}` },
      /^cid: an identity CID of 200 bytes is not supported/,
    )
    await refused([], /^body: /)
    await refused({ cid: `${v1}`, name: 'x'.repeat(256) }, /^name: must have at most 255 characters$/)
    await refused({ cid: `${v1}`, meta: { a: 1 } }, /^meta.a: /)
    const pairs = Object.fromEntries(Array.from({ length: 11 }, (_, i) => [`k${i}`, '']))
    await refused({ cid: `${v1}`, meta: pairs }, /^meta: must have at most 10 pairs$/)
    const broken = await api.request('POST', PINS, { body: '{' })
    assertFailure(broken, 400, 'BAD_REQUEST', 'body: not valid JSON')
  })
  it('a failure of the Pinning Service API is 401 without a key, and with one that there is not', async () => {
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
  it('a failure of the Pinning Service API is 403 without the scope', async () => {
    const groups = await keyed('org:groups:write')
    assertFailure(await groups.get(PINS), 403, 'MISSING_SCOPE', 'Missing scope: org:files:read')
    const reader = await keyed('org:files:read')
    assert.equal((await reader.get(PINS)).status, 200)
    for (const path of [PINS, `${PINS}/${NOBODY}`])
      assertFailure(await reader.post(path, { cid: `${v1}` }), 403, 'MISSING_SCOPE', /files:write$/)
    assertFailure(await reader.delete(`${PINS}/${NOBODY}`), 403, 'MISSING_SCOPE', /files:write$/)
  })
  it('a failure of the Pinning Service API is 404 for an unknown id, or one of another workspace', async () => {
    const { requestid } = await add({ cid: `${v1}` }, other.api)
    for (const id of [requestid, NOBODY, 'nonsense']) {
      assertFailure(await api.get(`${PINS}/${id}`), 404, 'NOT_FOUND', /no such pin request/)
      assertFailure(await api.delete(`${PINS}/${id}`), 404, 'NOT_FOUND', /no such pin request/)
      const replaced = await api.post(`${PINS}/${id}`, { cid: `${inlineCid('never')}`, name: 'never' })
      assertFailure(replaced, 404, 'NOT_FOUND', /no such pin request/)
    }
    assert.equal((await get(requestid, other.api)).requestid, requestid)
    const { body } = await api.get(PINS, { name: 'never', status: 'queued,pinning,pinned,failed' })
    assert.equal(body.count, 0, 'nothing was written')
  })
  it('a failure of the Pinning Service API is 404 for an unknown route', async () => {
    for (const path of ['/psa', '/psa/', '/psa/nowhere'])
      assertFailure(await api.get(path), 404, 'NOT_FOUND', `No such route: GET ${path}`)
    const { error } = (await api.get('/psalm')).body
    assert.equal(typeof error, 'string', 'which is none of this API')
  })
  it('a failure of the Pinning Service API is 409 on a plan without pins by CID', async () => {
    const free = await workspace('free')
    for (const path of [PINS, `${PINS}/${NOBODY}`]) {
      const reply = await free.api.post(path, { cid: `${v1}` })
      assertFailure(reply, 409, 'INSUFFICIENT_FUNDS', 'Pin by CID is not part of the free plan')
    }
    assert.equal((await free.api.get(PINS)).status, 200)
  })
  it('a failure of the Pinning Service API is 413 for a body that is too large', async () => {
    const body = JSON.stringify({ cid: 'x'.repeat(1_100_000) })
    assertFailure(await api.request('POST', PINS, { body }), 413, 'TOO_LARGE', /1 MiB/)
  })
  it('a failure of the Pinning Service API is 429 above the plan’s limit', async () => {
    const free = await workspace('free')
    const replies: Reply[] = []
    // Eight at a time: each takes one of the ten connections to the database.
    await eachOf(Array(61).keys(), 8, async () => replies.push(await free.api.get(PINS)))
    const last = replies.find(({ status }) => status !== 200)
    assert.ok(last)
    assertFailure(last, 429, 'RATE_LIMITED', 'Too many requests: 60 a minute on plan free')
  })
})
