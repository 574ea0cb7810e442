/** Routes from before v3 that scripts still call. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { inlineCid, openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { file, type Part, send } from './upload-form.ts'

const context = await openContext()
const { isPinned, provider, workspace } = context
const own = await workspace()
const { api } = own
const FORM = '/pinning/pinFileToIPFS'
const JSON_PATH = '/pinning/pinJSONToIPFS'
const options = (value: unknown): Part => ['pinataOptions', JSON.stringify(value)]
const unique = () => ({ mark: randomUUID() })

async function pinJson(body: unknown, path = JSON_PATH): Promise<any> {
  const reply = await api.post(path, body)
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  return reply.body
}

describe('pinJSONToIPFS', () => {
  it('JSON becomes a file on the public network [report: old clients]', async () => {
    const content = { ...unique(), list: [1, null, 'ä'] }
    const body = await pinJson({
      pinataContent: content,
      pinataMetadata: { name: 'token 1', keyvalues: { count: 3 } },
      pinataOptions: { cidVersion: 0 },
    })
    assert.match(body.IpfsHash, /^Qm/)
    assert.deepEqual(
      [body.Name, body.Keyvalues, body.MimeType, body.isDuplicate],
      ['token 1', { count: '3' }, 'application/json', false],
    )
    assert.ok(await isPinned(CID.parse(body.IpfsHash)))
    const served = await (await openGateway(context, own)).get(`/ipfs/${body.IpfsHash}`)
    assert.deepEqual([JSON.parse(served.text), served.headers['content-type']], [content, 'application/json'])
    assert.equal(body.PinSize, served.bytes.length)
  })
  it('a body without API fields is the content itself [report: old clients]', async () => {
    const content = unique()
    const first = await pinJson(content, `/v3${JSON_PATH}`)
    const again = await pinJson({ pinataContent: content })
    assert.deepEqual(again, { ...first, isDuplicate: true })
    const list = await pinJson({ pinataContent: [content] })
    assert.notEqual(list.IpfsHash, first.IpfsHash)
  })
  it('invalid JSON requests return the reason, and nothing is kept [report: old clients]', async () => {
    const refused: [unknown, string | RegExp][] = [
      [{ pinataMetadata: { name: 'x' } }, 'pinataContent: is required'],
      [{ pinataContent: {}, pinataOptions: { cidVersion: 2 } }, /^pinataOptions\.cidVersion: /],
      [{ pinataContent: {}, pinataOptions: { wrap: true } }, /^pinataOptions: /],
      [{ pinataContent: {}, pinataMetadata: { name: 1 } }, /^pinataMetadata\.name: /],
      [[], /^body: /],
    ]
    for (const [body, message] of refused) assertError(await api.post(JSON_PATH, body), 400, message)
    const nowhere = { pinataContent: unique(), pinataOptions: { groupId: randomUUID() } }
    assertError(await api.post(JSON_PATH, nowhere), 404, 'group_id: there is no such group')
  })
})

describe('wrapWithDirectory', () => {
  it('a wrapped file becomes the entry of a directory [report: old clients]', async () => {
    const node = await provider()
    const text = randomUUID()
    const wrap = options({ wrapWithDirectory: true })
    const expected = `${await node.folder({ 'a.txt': Buffer.from(text) })}`
    for (const parts of [
      [file(text, 'a.txt'), wrap],
      [['network', 'public'], wrap, file(text, 'a.txt')],
    ] as Part[][]) {
      const { status, body } = await send(api, parts, FORM)
      assert.equal(status, 200, JSON.stringify(body))
      assert.deepEqual([body.IpfsHash, body.MimeType, body.Name], [expected, 'directory', 'a.txt'])
    }
    const folder = await send(api, [file(text, 'f/a.txt'), file(text, 'f/b.txt'), wrap], FORM)
    const around = await node.folder({ 'f/a.txt': Buffer.from(text), 'f/b.txt': Buffer.from(text) })
    assert.equal(folder.body.IpfsHash, `${around}`)
    const json = await pinJson({
      pinataContent: { text },
      pinataMetadata: { name: 'a.json' },
      pinataOptions: { wrapWithDirectory: true },
    })
    assert.equal(json.IpfsHash, `${await node.folder({ 'a.json': Buffer.from(JSON.stringify({ text })) })}`)
    for (const name of ['..', '../x', '/', 'a//b', 'ä'.repeat(200)]) {
      const body = {
        pinataContent: {},
        pinataMetadata: { name },
        pinataOptions: { wrapWithDirectory: true },
      }
      assertError(await api.post(JSON_PATH, body), 400, /^pinataMetadata\.name: /)
    }
  })
  it('wrapWithDirectory may be false, and unknown options return 400 [report: old clients]', async () => {
    const plain = await send(api, [file(randomUUID(), 'a.txt'), options({ wrapWithDirectory: false })], FORM)
    assert.equal(plain.body.MimeType, 'text/plain')
    const policy = { customPinPolicy: { regions: [{ id: 'FRA1', desiredReplicationCount: 1 }] } }
    assert.equal((await send(api, [file(randomUUID(), 'a.txt'), options(policy)], FORM)).status, 200)
    const reply = await send(api, [file('x', 'a.txt'), options({ wrapInDirectory: true })], FORM)
    assertError(reply, 400, /^pinataOptions: has no wrapInDirectory/)
    const wrong = await send(api, [file('x', 'a.txt'), options({ wrapWithDirectory: 'yes' })], FORM)
    assertError(wrong, 400, /^pinataOptions\.wrapWithDirectory: /)
    const late: Part[] = [['network', 'public'], file('x', 'a.txt'), options({ wrapWithDirectory: true })]
    assertError(await send(api, late, FORM), 400, /^pinataOptions: must come before the file/)
  })
})

describe('pinByHash', () => {
  it('the older route pins a CID with name and metadata [report: old clients]', async () => {
    const cid = `${inlineCid(`older ${randomUUID()}`)}`
    const asked = { hashToPin: cid, pinataMetadata: { name: 'older', keyvalues: { a: 1 } } }
    const { status, body } = await api.post('/pinning/pinByHash', asked)
    assert.deepEqual([status, body.ipfsHash, body.status, body.name], [200, cid, 'prechecking', 'older'])
    const { requestid, pin } = (await api.get(`/psa/pins/${body.id}`)).body
    assert.deepEqual([requestid, pin.name, pin.meta], [body.id, 'older', { a: '1' }])
    assertError(await api.post('/pinning/pinByHash', { hashToPin: 'x' }), 400, 'hashToPin: not a CID')
    assertError(await api.post('/pinning/pinByHash', {}), 400, 'hashToPin: is required')
    const long = { hashToPin: `${inlineCid('x'.repeat(200))}` }
    assertError(
      await api.post('/pinning/pinByHash', long),
      400,
      /^hashToPin: an identity CID of 200 bytes is/,
    )
    const other = { hashToPin: cid, pinataOptions: { other: 1 } }
    assertError(await api.post('/pinning/pinByHash', other), 400, /^pinataOptions: has no other/)
    const free = await workspace('free')
    assert.equal((await free.api.post('/pinning/pinByHash', { hashToPin: cid })).status, 403)
  })
})

describe('pinList', async () => {
  const listed = await workspace()
  const add = async (name: string, keyvalues: Record<string, string>) => {
    const pinned = { pinataContent: unique(), pinataMetadata: { name, keyvalues } }
    return (await listed.api.post(JSON_PATH, pinned)).body
  }
  const first = await add('Spring 1', { season: 'spring' })
  const second = await add('Summer 2', { season: 'summer' })
  const hashes = async (query: Record<string, string> = {}) => {
    const { status, body } = await listed.api.get('/data/pinList', query)
    assert.equal(status, 200, JSON.stringify(body))
    return [body.count, ...body.rows.map((row: { ipfs_pin_hash: string }) => row.ipfs_pin_hash)]
  }

  it('files are listed in the format of the older API [report: old clients]', async () => {
    const { body } = await listed.api.get('/data/pinList', { status: 'pinned', pageLimit: '1' })
    const [{ date_pinned, user_id, ...row }] = body.rows
    assert.ok(Date.parse(date_pinned) && user_id)
    assert.deepEqual(
      [body.count, row],
      [
        2,
        {
          id: second.ID,
          ipfs_pin_hash: second.IpfsHash,
          size: second.PinSize,
          date_unpinned: null,
          metadata: { name: 'Summer 2', keyvalues: { season: 'summer' } },
          regions: [],
          mime_type: 'application/json',
          number_of_files: 1,
        },
      ],
    )
    assert.deepEqual(await hashes({ pageLimit: '1', pageOffset: '1' }), [2, first.IpfsHash])
    assert.deepEqual(await hashes({ includeCount: 'false' }), [undefined, second.IpfsHash, first.IpfsHash])
  })
  it('the filters of the older API find files [report: old clients]', async () => {
    const spring = JSON.stringify({ season: { value: 'spring', op: 'eq' } })
    const now = new Date().toISOString()
    const { rows } = (await listed.api.get('/data/pinList')).body
    const [secondPinned, firstPinned] = rows.map(({ date_pinned }: { date_pinned: string }) => date_pinned)
    const filters: [Record<string, string>, ...string[]][] = [
      [{ hashContains: first.IpfsHash.slice(5, 40) }, first.IpfsHash],
      [{ 'metadata[name]': 'spring' }, first.IpfsHash],
      [{ 'metadata[keyvalues]': spring }, first.IpfsHash],
      [{ 'metadata[name]': 'summer', 'metadata[keyvalues]': spring }],
      [{ status: 'unpinned' }],
      [{ pinStart: now }],
      [{ pinStart: '0000-01-01T00:00:00+19:30', pinEnd: firstPinned }, first.IpfsHash],
      [{ pinStart: secondPinned }, second.IpfsHash],
      [{ pinEnd: now, pinSizeMin: '1', pinSizeMax: '1000' }, second.IpfsHash, first.IpfsHash],
      [{ pinSizeMin: '1000' }],
      [{ network: 'private' }],
    ]
    for (const [query, ...found] of filters)
      assert.deepEqual(await hashes(query), [found.length, ...found], JSON.stringify(query))
    const refused: [Record<string, string>, string | RegExp][] = [
      [{ pageLimit: '1001' }, 'pageLimit: must be at most 1000'],
      [{ status: 'x' }, 'status: must be all, pinned or unpinned'],
      [{ 'metadata[keyvalues]': '{' }, 'metadata.keyvalues: not valid JSON'],
      [{ 'metadata[keyvalues]': '{"a":{"value":"1","op":"gt"}}' }, /^metadata\.keyvalues\.a\.op: must be eq/],
      [{ pinStart: 'yesterday' }, /^pinStart: /],
    ]
    for (const [query, message] of refused)
      assertError(await listed.api.get('/data/pinList', query), 400, message)
  })
})

describe('unpin', () => {
  it('unpinning removes all files of a CID from its workspace only [report: old clients]', async () => {
    const other = await workspace()
    const content = unique()
    const { IpfsHash } = await pinJson(content)
    await api.post('/psa/pins', { cid: IpfsHash })
    await other.api.post(JSON_PATH, content)
    const { status, body } = await api.delete(`/pinning/unpin/${IpfsHash}`)
    assert.deepEqual([status, body], [200, 'OK'])
    const missing = 'hash: the workspace has no file with this CID'
    assertError(await api.delete(`/pinning/unpin/${IpfsHash}`), 404, missing)
    assertError(await api.delete('/pinning/unpin/x'), 400, 'hash: not a CID')
    assert.equal((await api.get('/v3/files/public', { cid: IpfsHash })).body.data.files.length, 0)
    assert.equal((await other.api.get('/v3/files/public', { cid: IpfsHash })).body.data.files.length, 1)
  })
})
