/** `POST /v3/files/public/pin_by_cid` (contract 4.1): what it accepts and what it rejects. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { bases } from 'multiformats/basics'
import { CID } from 'multiformats/cid'
import * as raw from 'multiformats/codecs/raw'
import { create as createDigest } from 'multiformats/hashes/digest'
import { identity } from 'multiformats/hashes/identity'
import { assertError } from '../support/client.ts'
import { inlineCid, missingCid, openContext } from './context.ts'

const PIN = '/v3/files/public/pin_by_cid'
const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/
const PEER = '12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV'
/** A dag-pb CID, because only those have a v0 form; no node has the content. */
const v1 = await missingCid(0x70)
const v0 = v1.toV0().toString()
const cid = `${inlineCid('pin by cid')}`

const { provider, workspace } = await openContext()
const { api } = await workspace()
const other = await workspace()
const node = await provider()

/** Requests a pin and withdraws it at once; returns its record. */
async function accepted(body: object) {
  const { record } = await api.pin({ cid, ...body })
  const pending = await api.delete(`${PIN}/${record.id}`)
  if (pending.status === 404) assert.equal((await api.delete(`/v3/files/public/${record.id}`)).status, 200)
  return record
}
const refused = async (body: object, message: string | RegExp, status = 400) =>
  assertError(await api.post(PIN, { cid, ...body }), status, message)

describe('a pin', () => {
  it('a pin returns exactly the fields of the contract', async () => {
    const group = (await api.post('/v3/groups/public', { name: 'pins' })).body.data.id
    const request = {
      cid: `${await node.file(randomBytes(100))}`,
      name: 'a name',
      group_id: group,
      keyvalues: { a: '1', b: '' },
      host_nodes: [node.multiaddr],
    }
    const { status, headers, body } = await api.post(PIN, request)
    assert.equal(status, 200)
    const { id, date_queued } = body.data
    const { host_nodes, ...echoed } = request
    assert.deepEqual(body, {
      data: { id, ...echoed, status: 'prechecking', date_queued, hose_nodes: host_nodes, host_nodes },
    })
    assert.match(id, UUID_V7)
    assert.match(date_queued, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    assert.ok(Math.abs(Date.parse(date_queued) - Date.now()) < 60_000)

    const operation = await api.finished(headers.get('operation-id') ?? '')
    assert.equal(operation.state, 'succeeded')
    assert.equal(operation.target, id)
    const file = await api.get(`/v3/files/public/${id}`)
    assert.deepEqual(file.body, {
      data: {
        id,
        ...echoed,
        size: 100,
        number_of_files: 1,
        mime_type: file.body.data.mime_type,
        created_at: date_queued,
        expires_at: null,
      },
    })
    assert.equal(await api.queued(id), undefined, 'it has left the queue')
  })

  it('a pin needs only the CID', async () => {
    const { id, date_queued, ...rest } = await accepted({})
    assert.deepEqual(rest, {
      cid,
      name: null,
      group_id: null,
      keyvalues: {},
      status: 'prechecking',
      hose_nodes: [],
      host_nodes: [],
    })
  })
  it('a pin accepts null for optional fields, and ignores unknown fields', async () => {
    const empty = { name: null, group_id: null, keyvalues: null, host_nodes: null }
    const { name, keyvalues } = await accepted({ ...empty, regions: ['x'] })
    assert.deepEqual([name, keyvalues], [null, {}])
  })
  it('each repeated pin of a CID creates its own file', async () => {
    const [a, b] = [await api.pin({ cid }, { wait: 120 }), await api.pin({ cid }, { wait: 120 })]
    assert.notEqual(a.record.id, b.record.id)
    assert.deepEqual([a.record.status, b.record.status], ['pinned', 'pinned'])
  })
  it('a pin is not part of the free plan', async () => {
    const free = await workspace('free')
    const reply = await free.api.post(PIN, { cid })
    assertError(reply, 403, 'Pin by CID is not part of the free plan')
    assert.equal(reply.headers.get('error-code'), 'plan')
  })
})

describe('a CID', () => {
  it('a CID may be v0', async () => assert.equal((await accepted({ cid: v0 })).cid, v0))
  for (const [name, base] of Object.entries(bases)) {
    it(`a CID may be v1 in ${name}`, async () => {
      const text = v1.toString(base.encoder)
      if (name === 'identity') return refused({ cid: text }, /^cid: /)
      assert.equal((await accepted({ cid: text })).cid, text)
    })
  }
  it('a CID may be base32 in mixed case, as in Kubo', async () => {
    await accepted({ cid: `bAF${`${v1}`.slice(3)}` })
  })
  it('a CID may contain its content', async () => {
    assert.equal((await api.pin({ cid: `${inlineCid('inline')}` }, { wait: 120 })).record.status, 'pinned')
  })

  const malformed: Record<string, string> = {
    'a word': 'bafy',
    NUL: `${v1}\0`,
    'half a surrogate pair': `${v1}\ud800`,
    'more than 512 characters': `${CID.createV1(raw.code, identity.digest(randomBytes(400)))}`,
  }
  for (const [what, text] of Object.entries(malformed))
    it(`a CID may not be ${what}`, () => refused({ cid: text }, /^cid: /))
  const impossible: Record<string, [codec: number, hash: number, length: number, message: RegExp]> = {
    'an identity CID of 200 bytes': [raw.code, identity.code, 200, /^cid: an identity CID of 200 bytes is/],
    'a digest that is too short': [raw.code, 0x12, 10, /^cid: its digest of 10 bytes is shorter than 20$/],
    'a digest that is too long': [
      raw.code,
      0x12,
      40,
      /^cid: its digest of 40 bytes is longer than the 32 of/,
    ],
    'the hash function md5': [
      raw.code,
      0xd5,
      16,
      /^cid: hash function 0xd5 is not supported \(supported: sha1,/,
    ],
    'the codec git-raw': [0x78, 0x11, 20, /^cid: codec 0x78 is not supported \(supported: raw, /],
    'an identity CID that does not decode': [0x70, identity.code, 5, /^cid: Block \w+ does not decode: /],
  }
  for (const [what, [codec, hash, length, message]] of Object.entries(impossible)) {
    it(`a CID may not name content that Berth cannot keep: ${what} [report: impossible content]`, () => {
      const multihash = createDigest(hash, new Uint8Array(length).fill(0xff))
      return refused({ cid: `${CID.createV1(codec, multihash)}` }, message)
    })
  }
  for (const value of [undefined, { '/': `${v1}` }]) {
    it(`a CID may not be ${JSON.stringify(value)}`, () => refused({ cid: value }, /^cid: /))
  }
})

describe('the name of a pin', () => {
  for (const name of ['', 'x'.repeat(255), 'schöne 🚢\n<b>', "'; DROP TABLE file; --"]) {
    it(`the name of a pin may be ${JSON.stringify(name.slice(0, 30))}`, async () => {
      assert.equal((await accepted({ name })).name, name)
    })
  }
})

describe('the keyvalues of a pin', () => {
  const pairs = (count: number) =>
    Object.fromEntries(Array.from({ length: count }, (_, i) => [`k${i}`, `${i}`]))

  const good: [string, Record<string, string>][] = [
    ['ten pairs', pairs(10)],
    ['long keys and values', { ['k'.repeat(255)]: 'v'.repeat(1024) }],
    ['names that JavaScript uses', { constructor: 'a', toString: 'b', hasOwnProperty: 'c' }],
    ['any text', { 'ключ 🗝\n"\\': "';--%_" }],
  ]
  for (const [what, keyvalues] of good) {
    it(`the keyvalues of a pin may be ${what}`, async () =>
      assert.deepEqual((await accepted({ keyvalues })).keyvalues, keyvalues))
  }
})

describe('the group of a pin', () => {
  it('the group of a pin may be named in any case', async () => {
    const group = (await api.post('/v3/groups/public', { name: 'case' })).body.data.id
    assert.equal((await accepted({ group_id: group.toUpperCase() })).group_id, group)
  })
  it('the group of a pin must exist', () =>
    refused({ group_id: '0191f0f0-0000-7000-8000-000000000000' }, 'group_id: there is no such group', 404))
  it('the group of a pin must belong to the workspace', async () => {
    const foreign = (await other.api.post('/v3/groups/public', { name: 'foreign' })).body.data.id
    await refused({ group_id: foreign }, 'group_id: there is no such group', 404)
  })
})

describe('the host nodes of a pin', () => {
  const good = [
    PEER,
    'QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N',
    'k51qzi5uqu5dgutdk6i1ynyzgkqngpha5xpgia3a5qqp4jsh0u4csozksxel2r',
    `/ip4/1.2.3.4/tcp/4001/p2p/${PEER}`,
    `/ip6/2001:4860:4860::8888/udp/4001/quic-v1/p2p/${PEER}`,
    `/dns4/node.example/tcp/443/wss/p2p/${PEER}`,
    `/dnsaddr/node.example/p2p/${PEER}`,
    `/ip4/127.0.0.1/tcp/4001/p2p/${PEER}`,
  ]
  it('the host nodes of a pin may be up to a hundred peer ids and multiaddrs', async () => {
    const hosts = Array.from({ length: 100 }, (_, i) => good[i % good.length] ?? '')
    const { hose_nodes, host_nodes } = await accepted({ cid: `${await missingCid()}`, host_nodes: hosts })
    assert.deepEqual([hose_nodes, host_nodes], [hosts, hosts])
  })
})
