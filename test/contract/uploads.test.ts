/** Uploads by multipart form and the files that they create. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { type Client, soon } from '../support/client.ts'
import { openContext } from './context.ts'
import { file, type Part, send, upload } from './upload-form.ts'

const { isPinned, provider, workspace } = await openContext()
const { api } = await workspace()
const node = await provider()
const MIB = 2 ** 20

const listed = async (client: Client, network: string): Promise<Record<string, unknown>[]> =>
  (await client.get(`/v3/files/${network}`, { limit: '1000' })).body.data.files
const pinned = async (cid: string) => ({
  public: await isPinned(CID.parse(cid)),
  private: await isPinned(CID.parse(cid), 'private'),
})
/** A text that no other test uses. */
const unique = () => `${randomUUID()}\n`

describe('an upload', () => {
  it('an upload returns the file, which then appears in the list', async () => {
    const text = unique()
    const before = Date.now()
    const { id, created_at, user_id, ...rest } = await upload(api, file(text, 'note.txt'), [
      'network',
      'public',
    ])
    assert.deepEqual(rest, {
      name: 'note.txt',
      cid: `${await node.file(Buffer.from(text))}`,
      size: text.length,
      number_of_files: 1,
      mime_type: 'text/plain',
      keyvalues: {},
      group_id: null,
      expires_at: null,
      vectorized: false,
      network: 'public',
      is_duplicate: false,
    })
    assert.match(user_id, /^[0-9a-f-]{36}$/)
    assert.ok(Math.abs(Date.parse(created_at) - before) < 60_000)
    const { vectorized: _, network: __, is_duplicate: ___, ...record } = rest
    assert.deepEqual(await listed(api, 'public'), [{ ...record, id, created_at }])
  })

  it('an upload is private by default, and only on that network', async () => {
    const data = await upload(api, file(unique(), 'secret.txt'))
    assert.equal(data.network, 'private')
    assert.deepEqual(await pinned(data.cid), { public: false, private: true })
    assert.ok((await listed(api, 'private')).some(({ id }) => id === data.id))
    assert.ok(!(await listed(api, 'public')).some(({ id }) => id === data.id))
  })

  for (const network of ['public', 'private']) {
    it(`an upload goes only to the ${network} network, whether that field comes before or after the file`, async () => {
      for (const order of ['before', 'after']) {
        const parts: Part[] = [['network', network], file(unique(), 'a.txt')]
        const { cid } = await upload(api, ...(order === 'before' ? parts : parts.reverse()))
        const expected = { public: network === 'public', private: network === 'private' }
        assert.deepEqual(await pinned(cid), expected, order)
      }
    })
  }

  for (const order of ['before', 'after']) {
    it(`an upload accepts all fields ${order} the file`, async () => {
      const group = (await api.post('/v3/groups/public', { name: `uploads ${order}` })).body.data.id
      const expiry = Math.floor(Date.now() / 1000) + 3600
      const fields: Part[] = [
        ['network', 'public'],
        ['name', 'A name ✓'],
        ['group_id', group],
        ['keyvalues', '{"a":"1","ключ":"ü"}'],
        ['cid_version', 'v0'],
        ['expires_at', `${expiry}`],
        ['streamable', 'true'],
        ['something_else', 'is ignored'],
      ]
      const content = file(unique(), 'a.txt')
      const data = await upload(api, ...(order === 'before' ? [...fields, content] : [content, ...fields]))
      assert.equal(data.name, 'A name ✓')
      assert.equal(data.group_id, group)
      assert.deepEqual(data.keyvalues, { a: '1', ключ: 'ü' })
      assert.match(data.cid, /^Qm/)
      assert.equal(data.expires_at, expiry)
      assert.deepEqual(await pinned(data.cid), { public: true, private: false })
    })
  }

  it('an upload accepts wrapped metadata, and a group in the field `group`', async () => {
    const group = (await api.post('/v3/groups/private', { name: 'uploads' })).body.data.id
    const wrapped: Part = ['keyvalues', '{"keyvalues":{"a":"1"}}']
    const data = await upload(api, file(unique()), wrapped, ['group', group])
    assert.deepEqual([data.keyvalues, data.group_id], [{ a: '1' }, group])
    assert.deepEqual((await upload(api, file(unique()), ['keyvalues', '{"keyvalues":"x"}'])).keyvalues, {
      keyvalues: 'x',
    })
  })

  for (const name of [
    'naïve – 日本語 🎉.txt',
    'a "quoted" name'.replaceAll('"', "'"),
    '%2e%2e',
    ' spaces ',
    '…',
  ]) {
    it(`an upload keeps the name ${name}`, async () => {
      assert.equal((await upload(api, file(unique(), name))).name, name)
    })
  }
  it('an upload has no name if the part has none', async () => {
    assert.equal((await upload(api, file(unique()))).name, null)
    assert.equal((await upload(api, file(unique(), ''))).name, null)
  })

  for (const size of [0, 1, MIB - 1, MIB, MIB + 1, 5 * MIB + 3]) {
    it(`an upload of ${size} bytes has the same CID as in any other node, in either order`, async () => {
      const bytes = randomBytes(size)
      const cid = `${await node.file(bytes)}`
      const own = await workspace()
      for (const parts of [
        [file(bytes, 'f'), ['network', 'public']],
        [['network', 'private'], file(bytes, 'f')],
      ] as Part[][]) {
        const data = await upload(own.api, ...parts)
        assert.deepEqual([data.cid, data.size, data.number_of_files], [cid, size, 1])
      }
    })
  }

  it('an upload can be a form as browsers send it', async () => {
    const form = new FormData()
    form.append('file', new Blob(['<svg xmlns="http://www.w3.org/2000/svg"/>']), 'é "x".svg')
    form.append('network', 'public')
    const response = await fetch(`${api.url}/v3/files`, {
      method: 'POST',
      headers: { authorization: `Bearer ${api.key}` },
      body: form,
    })
    assert.equal(response.status, 200)
    const { data } = (await response.json()) as { data: Record<string, unknown> }
    // The standard for forms encodes a quotation mark like this.
    assert.equal(data.name, 'é %22x%22.svg')
  })
})

describe('repeated content', () => {
  it('the same content is one file in a workspace, and a second upload changes nothing', async () => {
    const text = unique()
    const first = await upload(api, file(text, 'first'), ['network', 'public'], ['keyvalues', '{"a":"1"}'])
    const again = await upload(api, file(text, 'again'), ['network', 'public'], ['keyvalues', '{"b":"2"}'])
    assert.deepEqual(again, { ...first, is_duplicate: true })
  })

  it('the same content is not a duplicate of a file that expires sooner', async () => {
    const text = unique()
    const keepFor = (seconds: number) =>
      upload(api, file(text), ['expires_at', `${Math.floor(Date.now() / 1000) + seconds}`])
    const short = await keepFor(1000)
    assert.deepEqual(await keepFor(500), { ...short, is_duplicate: true })
    const endless = await upload(api, file(text))
    assert.deepEqual([endless.cid, endless.is_duplicate], [short.cid, false])
    assert.deepEqual(await keepFor(2000), { ...endless, is_duplicate: true })
  })
  it('the same content is a separate file on the other network, and in another workspace', async () => {
    const text = unique()
    const other = await workspace()
    const files = [
      await upload(api, file(text), ['network', 'public']),
      await upload(api, file(text), ['network', 'private']),
      await upload(other.api, file(text), ['network', 'public']),
    ]
    assert.equal(new Set(files.map(({ id }) => id)).size, 3)
    assert.equal(new Set(files.map(({ cid }) => cid)).size, 1)
    assert.ok(files.every(({ is_duplicate }) => !is_duplicate))
  })
  it('the same content uploaded many times at once is one file', async () => {
    const own = await workspace()
    const bytes = randomBytes(3 * MIB)
    const forms: Part[][] = [
      [['network', 'public'], file(bytes)],
      [file(bytes), ['network', 'public']],
    ]
    const replies = await Promise.all(
      Array.from({ length: 8 }, (_, i) =>
        // Repeated if the other uploads delayed it for seconds.
        soon(
          () => send(own.api, forms[i % 2] as Part[]),
          ({ status }) => status !== 503,
        ),
      ),
    )
    assert.deepEqual(
      replies.map(({ status }) => status),
      Array(8).fill(200),
    )
    const files = replies.map(({ body }) => body.data)
    assert.equal(new Set(files.map(({ id }) => id)).size, 1)
    assert.equal(files.filter(({ is_duplicate }) => !is_duplicate).length, 1)
    assert.equal((await listed(own.api, 'public')).length, 1)
    assert.deepEqual(await pinned(files[0].cid), { public: true, private: false })
  })
})
