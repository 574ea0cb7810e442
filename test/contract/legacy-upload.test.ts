/** `POST /pinning/pinFileToIPFS`, which the SDK uses to upload folders. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../support/client.ts'
import { openContext } from './context.ts'
import { file, type Part, send } from './upload-form.ts'

const { isPinned, provider, workspace } = await openContext()
const { api } = await workspace()
const node = await provider()
const PATH = '/pinning/pinFileToIPFS'

const metadata = (value: unknown): Part => ['pinataMetadata', JSON.stringify(value)]
const options = (value: unknown): Part => ['pinataOptions', JSON.stringify(value)]
const unique = () => `${randomUUID()}\n`
const assertPrivate = async (cid: string) => {
  assert.ok(await isPinned(CID.parse(cid), 'private'))
  assert.ok(!(await isPinned(CID.parse(cid))))
}
const accepted = async (parts: Part[], path = PATH): Promise<any> => {
  const { status, body } = await send(api, parts, path)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

describe('the older upload', () => {
  it('the older upload accepts a folder as the SDK sends it', async () => {
    const files = { 'a.txt': Buffer.from(unique()), 'b.txt': Buffer.from(unique()) }
    const group = (await api.post('/v3/groups/public', { name: 'legacy' })).body.data.id
    const { ID, Timestamp, ...rest } = await accepted([
      ...Object.entries(files).map(([path, content]) => file(content, `folder_from_sdk/${path}`)),
      metadata({ name: 'folder_from_sdk', keyvalues: { a: '1' } }),
      options({ groupId: group, cidVersion: 1 }),
    ])
    const cid = await node.folder(files)
    assert.deepEqual(rest, {
      Name: 'folder_from_sdk',
      IpfsHash: `${cid}`,
      PinSize: 74,
      NumberOfFiles: 2,
      MimeType: 'directory',
      GroupId: group,
      Keyvalues: { a: '1' },
      isDuplicate: false,
    })
    const { data } = (await api.get(`/v3/files/public/${ID}`)).body
    assert.deepEqual([data.cid, data.created_at, data.group_id], [`${cid}`, Timestamp, group])
    assert.ok(await isPinned(cid))
    assert.ok(!(await isPinned(cid, 'private')))
  })
  it('the older upload needs only a file, and works at its other path too', async () => {
    const text = unique()
    const first = await accepted([file(text, 'a.txt')])
    assert.deepEqual([first.Name, first.MimeType, first.GroupId], ['a.txt', 'text/plain', null])
    const again = await accepted([file(text, 'b.txt')], `/v3${PATH}`)
    assert.deepEqual(again, { ...first, isDuplicate: true })
  })
  it('the older upload accepts CID version 0, numbers as metadata, and null for unset fields', async () => {
    const body = await accepted([
      file(unique(), 'a.txt'),
      metadata({ name: null, keyvalues: { count: 3, other: 'x' } }),
      options({ groupId: null, cidVersion: 0 }),
    ])
    assert.match(body.IpfsHash, /^Qm/)
    assert.deepEqual([body.Name, body.Keyvalues], ['a.txt', { count: '3', other: 'x' }])
  })
  it('the older upload ignores fields of the newer form, except the network', async () => {
    const { ID } = await accepted([['car', 'x'], file(unique(), 'a.txt'), ['name', 'x']])
    assert.equal((await api.get(`/v3/files/public/${ID}`)).body.data.name, 'a.txt')
  })
  it('the older upload is private if its form, in any order, or its URL says so', async () => {
    const network: Part = ['network', 'private']
    for (const [form, path] of [
      [[network, file(unique(), 'f/a.txt')], PATH],
      [[file(unique(), 'f/a.txt'), network], PATH],
      [[file(unique(), 'f/a.txt')], `${PATH}?network=private`],
    ] as [Part[], string][]) {
      const { IpfsHash } = await accepted(form, path)
      await assertPrivate(IpfsHash)
    }
    const parts: Part[] = [file(unique(), 'a.txt'), ['network', 'public']]
    const other = await send(api, parts, `${PATH}?network=private`)
    assertError(other, 400, 'network: this key or URL is for the private network')
    assertError(
      await send(api, [file('x')], `${PATH}?network=both`),
      400,
      'network: must be public or private',
    )
  })
  it('a key for private uploads uploads privately by default, and cannot upload publicly', async () => {
    const { api: admin, keyed } = await workspace()
    const key = await keyed('org:private_files:write')
    const { status, body } = await send(key, [file(unique(), 'f/a.txt'), file(unique(), 'f/b.txt')], PATH)
    assert.equal(status, 200, JSON.stringify(body))
    await assertPrivate(body.IpfsHash)
    assert.equal((await admin.get(`/v3/files/private/${body.ID}`)).body.data.mime_type, 'directory')
    const modern = await send(key, [file(unique(), 'a.txt')])
    assert.deepEqual([modern.status, modern.body.data.network], [200, 'private'])
    const refused = 'network: this key or URL is for the private network'
    for (const path of [PATH, '/v3/files'])
      for (const parts of [
        [['network', 'public'], file('x')],
        [file('x'), ['network', 'public']],
      ] as Part[][])
        assertError(await send(key, parts, path), 400, refused)
    assertError(await send(key, [file('x')], `${PATH}?network=public`), 400, refused)
    const tus = await fetch(`${key.url}/v3/files`, {
      method: 'POST',
      headers: {
        authorization: `Bearer ${key.key}`,
        'upload-length': '1',
        'upload-metadata': `network ${btoa('public')}`,
      },
    })
    assert.deepEqual([tus.status, await tus.json()], [400, { error: refused }])
    const sign = { date: Math.floor(Date.now() / 1000), expires: 60 }
    assertError(await key.post('/v3/files/sign', { ...sign, network: 'public' }), 400, refused)
    assert.equal((await key.post('/v3/files/sign', sign)).status, 200)
    const link = { ...sign, url: 'https://x.example/files/x', method: 'GET' }
    for (const reply of [
      await key.post('/v3/files/sign', link),
      await key.post('/v3/files/public/pin_by_cid', { cid: body.IpfsHash }),
      await key.post('/psa/pins', { cid: body.IpfsHash }),
    ])
      assert.equal(reply.status, 403)
  })

  const table: [Part, string | RegExp][] = [
    [['pinataMetadata', '{'], 'pinataMetadata: not valid JSON'],
    [metadata('x'), /^pinataMetadata: /],
    [metadata({ name: 'x'.repeat(256) }), 'pinataMetadata.name: must have at most 255 characters'],
    [metadata({ keyvalues: { a: true } }), /^pinataMetadata\.keyvalues\.a: /],
    [
      ['pinataMetadata', '{"keyvalues":{"__proto__":"x"}}'],
      'pinataMetadata.keyvalues: a key must not be __proto__',
    ],
    [['pinataOptions', 'x'], 'pinataOptions: not valid JSON'],
    [options({ cidVersion: 2 }), /^pinataOptions\.cidVersion: /],
    [options({ groupId: 'x' }), 'pinataOptions.groupId: must be a UUID'],
  ]
  for (const [field, message] of table) {
    it(`is 400 for ${field}`.slice(0, 80), async () => {
      assertError(await send(api, [file(unique(), 'a'), field], PATH), 400, message)
    })
  }
  it('the older upload needs a key, and returns 400 without a file and 404 for a missing group', async () => {
    assertError(await send(api, [metadata({ name: 'x' })], PATH), 400, 'file: a file is required')
    const nowhere = options({ groupId: randomUUID() })
    assertError(
      await send(api, [file(unique(), 'a'), nowhere], PATH),
      404,
      'group_id: there is no such group',
    )
    assertError(await send(api.as(undefined), [file('x')], PATH), 401, /^Missing Authorization/)
  })
})
