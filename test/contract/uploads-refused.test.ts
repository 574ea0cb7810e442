/** Refused uploads: their responses, and that nothing of them remains. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { request } from 'node:http'
import { after, describe, it } from 'node:test'
import type { CID } from 'multiformats/cid'
import { assertError, type Client } from '../support/client.ts'
import { openContext } from './context.ts'
import { CONTENT_TYPE, encodeForm, file, type Part, send, upload } from './upload-form.ts'

const { isPinned, provider, workspace, sql } = await openContext()
const { api } = await workspace()
const other = await workspace()
const node = await provider()
const MIB = 2 ** 20
const PUBLIC: Part = ['network', 'public']

const isAnywhere = async (cid: CID) => (await isPinned(cid)) || (await isPinned(cid, 'private'))
const countFiles = async (client: Client) => {
  const pages = await Promise.all(['public', 'private'].map((network) => client.get(`/v3/files/${network}`)))
  return pages.reduce((sum, { body }) => sum + body.data.files.length, 0)
}
/** The form in both orders: fields first, which sends the file straight into the store, and file first. */
const orders = (content: Part, ...fields: Part[]) => [
  [...fields, content],
  [content, ...fields],
]

describe('a form', () => {
  const post = (body: string | Uint8Array<ArrayBuffer> | undefined, type: string) =>
    api.request('POST', '/v3/files', { body, headers: { 'content-type': type } })

  for (const type of [
    'application/json',
    'application/x-www-form-urlencoded',
    'multipart/mixed; boundary=x',
    'x',
  ]) {
    it(`a form sent as ${type} returns 415`, async () => {
      assertError(await post('{}', type), 415, 'Content-Type: must be multipart/form-data')
    })
  }
  it('a form without a boundary returns 400', async () => {
    assertError(await post('x', 'multipart/form-data'), 400, 'Content-Type: has no boundary')
  })
  const whole = Buffer.from(encodeForm([PUBLIC, file('some text', 'a.txt')]))
  const broken: Record<string, Buffer> = {
    empty: Buffer.alloc(0),
    'not a form': Buffer.from('{"file":"x"}'),
    'truncated in a field': whole.subarray(0, 80),
    'truncated in the file': whole.subarray(0, -30),
    'without its end': Buffer.from(encodeForm([PUBLIC, file('x', 'a')], { open: true })),
    'with another boundary': Buffer.from(`${whole}`.replaceAll('form-made-by-hand', 'another')),
  }
  for (const [what, bytes] of Object.entries(broken)) {
    it(`a form returns 400 if it is ${what}`, async () => {
      assertError(await post(new Uint8Array(bytes), CONTENT_TYPE), 400, 'body: not a whole multipart form')
    })
  }
  it('a form without a file returns 400', async () => {
    assertError(await send(api, [PUBLIC]), 400, 'file: a file is required')
    assertError(await send(api, []), 400, 'file: a file is required')
    assertError(await send(api, [['File', 'x']]), 400, 'file: a file is required')
  })
  it('a form with too many, too large or repeated fields returns 400', async () => {
    const many = Array.from({ length: 33 }, (_, i): Part => [`field-${i}`, 'x'])
    assertError(await send(api, [...many, file('x')]), 400, 'body: at most 32 fields are read')
    assertError(
      await send(api, [file('x'), ['name', 'x'.repeat(MIB)]]),
      400,
      'name: larger than 131072 bytes',
    )
    assertError(await send(api, [['name', 'a'], file('x'), ['name', 'b']]), 400, 'name: comes twice')
  })
  it('a form with more files than a folder may have returns 400', async () => {
    const files = Array.from({ length: 10_001 }, (_, i) => file('', `f/${i}`))
    assertError(await send(api, files), 400, 'file: at most 10000 files make a folder')
  })
})

describe('a field', () => {
  const past = `${Math.floor(Date.now() / 1000) - 1}`
  const pairs = JSON.stringify(Object.fromEntries(Array.from({ length: 11 }, (_, i) => [i, 'x'])))
  const table: [name: string, value: string, message: string | RegExp][] = [
    ['network', 'both', 'network: must be public or private'],
    ['name', 'x'.repeat(256), 'name: must have at most 255 characters'],
    ['name', 'a\0b', 'name: must not contain NUL or broken Unicode'],
    ['group_id', 'none', 'group_id: must be a UUID'],
    ['group', '', 'group: must be a UUID'],
    ['keyvalues', '{', 'keyvalues: not valid JSON'],
    ['keyvalues', '[]', /^keyvalues: /],
    ['keyvalues', 'null', /^keyvalues: /],
    ['keyvalues', '{"a":1}', /^keyvalues\.a: /],
    ['keyvalues', '{"__proto__":"x"}', 'keyvalues: a key must not be __proto__'],
    ['keyvalues', '{"":"x"}', 'keyvalues: a key must not be empty'],
    ['keyvalues', pairs, 'keyvalues: must have at most 10 pairs'],
    ['keyvalues', `{"keyvalues":${pairs}}`, 'keyvalues: must have at most 10 pairs'],
    ['car', 'yes', 'car: must be true or false'],
    ['streamable', '1', 'streamable: must be true or false'],
    ['cid_version', 'v2', 'cid_version: must be v0 or v1'],
    ['expires_at', past, 'expires_at: must be in the future'],
    ['expires_at', 'tomorrow', 'expires_at: must be a Unix time in seconds'],
    ['expires_at', '-1', 'expires_at: must be a Unix time in seconds'],
  ]
  for (const [name, value, message] of table) {
    it(`a field returns 400 for ${name} ${JSON.stringify(value).slice(0, 40)}, before and after the file`, async () => {
      const bytes = randomBytes(100)
      for (const parts of orders(file(bytes), [name, value]))
        assertError(await send(api, parts), 400, message)
      assertError(await send(api, [['cid_version', 'v1'], PUBLIC, file(bytes), [name, value]]), 400, /./)
      assert.ok(!(await isAnywhere(await node.file(bytes))))
    })
  }
  for (const [name, value] of [
    ['network', 'private'],
    ['car', 'true'],
    ['cid_version', 'v0'],
  ] as const) {
    it(`the field ${name} returns 400 after a file that went straight into the store`, async () => {
      const bytes = randomBytes(100)
      const reply = await send(api, [PUBLIC, file(bytes), [name, value]])
      const message =
        name === 'network' ? 'network: comes twice' : `${name}: must come before the file, as network does`
      assertError(reply, 400, message)
      assert.ok(!(await isAnywhere(await node.file(bytes))))
    })
  }
  it('a group field returns 404 for a missing group, or one of another network or workspace', async () => {
    const foreign = (await other.api.post('/v3/groups/public', { name: 'theirs' })).body.data.id
    const secret = (await api.post('/v3/groups/private', { name: 'ours, but private' })).body.data.id
    for (const group of [foreign, secret, randomUUID()]) {
      const bytes = randomBytes(100)
      for (const parts of orders(file(bytes), PUBLIC, ['group_id', group]))
        assertError(await send(api, parts), 404, 'group_id: there is no such group')
      assert.ok(!(await isAnywhere(await node.file(bytes))))
    }
  })
})

it('a refused upload leaves no file behind', async () => assert.equal(await countFiles(api), 0))

describe('a plan', async () => {
  const plan = `small-${randomUUID()}`
  await sql(
    `INSERT INTO plan (name, channels, custom_domains, pin_by_cid, max_file_bytes, storage_bytes)
     VALUES ($1, true, true, true, $2, $3)`,
    [plan, 2 * MIB, 5 * MIB],
  )
  after(() => sql(`UPDATE workspace SET plan = 'free' WHERE plan = $1`, [plan]))
  const TOO_LARGE = `file: larger than the ${2 * MIB} bytes that the plan allows for one file`
  const TOO_MUCH = `file: would exceed the ${5 * MIB} bytes that the plan stores`

  it('a plan limits the size of a file', async () => {
    const small = await workspace(plan)
    for (const parts of orders(file(randomBytes(2 * MIB)), PUBLIC))
      assert.equal((await send(small.api, parts)).status, 200)
    const bytes = randomBytes(2 * MIB + 1)
    for (const parts of orders(file(bytes), PUBLIC)) {
      const reply = await send(small.api, parts)
      assertError(reply, 413, TOO_LARGE)
      assert.equal(reply.headers.get('error-code'), 'over_max_size')
    }
    const halves = [file(bytes.subarray(0, MIB), 'f/a'), file(bytes.subarray(MIB), 'f/b')]
    assertError(await send(small.api, halves), 413, TOO_LARGE)
    assert.ok(!(await isAnywhere(await node.file(bytes))))
  })
  it('a plan limits the storage of a workspace', async () => {
    const small = await workspace(plan)
    await upload(small.api, file(randomBytes(2 * MIB)), PUBLIC)
    await upload(small.api, file(randomBytes(2 * MIB)))
    const bytes = randomBytes(MIB + 1)
    for (const parts of orders(file(bytes), PUBLIC)) {
      const reply = await send(small.api, parts)
      assertError(reply, 403, TOO_MUCH)
      assert.equal(reply.headers.get('error-code'), 'over_free_limit')
    }
    assert.ok(!(await isAnywhere(await node.file(bytes))))
    await upload(small.api, file(randomBytes(MIB)), PUBLIC)
  })
  it('an upload that exceeds the plan by its Content-Length is refused before it is read', async () => {
    const { key } = (await workspace(plan)).api
    assert.deepEqual(await answerWhileSending(key, { 'content-length': `${100 * MIB}` }, 0), {
      status: 413,
      error: TOO_LARGE,
    })
  })
  it('an upload without a length is refused once it exceeds the plan', async () => {
    const { key } = (await workspace(plan)).api
    assert.deepEqual(await answerWhileSending(key, { 'transfer-encoding': 'chunked' }, 2 * MIB + 1), {
      status: 413,
      error: TOO_LARGE,
    })
  })
  it('a client that keeps sending beyond the plan still gets the response', async () => {
    const { key } = (await workspace(plan)).api
    const form = new FormData()
    form.append('file', new Blob([randomBytes(64 * MIB)]), 'large')
    const response = await fetch(`${api.url}/v3/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}` },
      body: form,
    })
    assert.equal(response.status, 413)
    assert.deepEqual(await response.json(), { error: TOO_LARGE })
  })
})

/** Sends the beginning of a form with this many bytes of a file, never its end, and waits for a response. */
function answerWhileSending(key: string | undefined, headers: Record<string, string>, bytes: number) {
  return new Promise<{ status: number | undefined; error: string }>((resolve, reject) => {
    const sending = request(`${api.url}/v3/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${key}`, 'content-type': CONTENT_TYPE, ...headers },
      signal: AbortSignal.timeout(60_000),
    })
    sending.on('error', reject)
    sending.on('response', async (response) => {
      const text = Buffer.concat(await response.toArray())
      resolve({ status: response.statusCode, ...JSON.parse(`${text}`) })
      sending.destroy()
    })
    // A CR at the end could begin the boundary, so it would be held back until more bytes arrive.
    const content = Buffer.alloc(bytes, 'x')
    sending.write(encodeForm([file(content, 'x')], { open: true }))
  })
}
