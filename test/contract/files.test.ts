/** Listing files with every filter, reading and deleting them. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { base58btc } from 'multiformats/bases/base58'
import { assertError } from '../support/client.ts'
import { inlineCid, openContext } from './context.ts'
import { collectPages } from './pages.ts'

const FILES = '/v3/files/public'

const { provider, workspace } = await openContext()
const { api } = await workspace()
const many = await workspace()
const other = await workspace()
const node = await provider()
const group = (await api.post('/v3/groups/public', { name: 'files' })).body.data.id

const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=='
const content = {
  text: { name: 'Notes 100%.txt', keyvalues: { kind: 'text', lang: 'en' }, bytes: Buffer.from('hello\n') },
  image: {
    name: 'image.png',
    keyvalues: { kind: 'image' },
    group_id: group,
    bytes: Buffer.from(PNG, 'base64'),
  },
  odd: { keyvalues: { 'a b&c=[d]': 'é %', '7': 'seven', '': undefined }, bytes: Buffer.from([0, 255, 254]) },
}
const files: Record<string, { id: string; cid: string }> = {}
for (const [key, { bytes, ...rest }] of Object.entries(content)) {
  const cid = await node.file(bytes)
  const pin = await api.pin({ cid: `${cid}`, host_nodes: [node.multiaddr], ...rest }, { wait: 120 })
  assert.equal(pin.record.status, 'pinned')
  files[key] = { id: pin.record.id, cid: `${cid}` }
}
const folder = await node.folder({ 'a.txt': Buffer.from('a'), 'b/c.txt': Buffer.from('bc') })
files.folder = {
  id: (await api.pin({ cid: `${folder}`, host_nodes: [node.multiaddr] }, { wait: 120 })).record.id,
  cid: `${folder}`,
}
await other.api.pin({ cid: files.text?.cid, host_nodes: [node.multiaddr] }, { wait: 120 })

const NAMES = new Map(Object.entries(files).map(([name, { id }]) => [id, name]))
/** The files that a query finds, newest first. */
const found = async (query: string | Record<string, string>) => {
  const { status, body } = await api.get(FILES, query)
  assert.equal(status, 200, JSON.stringify(body))
  return body.data.files.map(({ id }: { id: string }) => NAMES.get(id))
}

describe('a file', () => {
  it('a file has exactly the documented fields', async () => {
    const expected: [string, number, number, RegExp][] = [
      ['text', 6, 1, /^text\/plain$/],
      ['image', 70, 1, /^image\/png$/],
      ['odd', 3, 1, /^application\/octet-stream$/],
      ['folder', 3, 2, /^directory$/],
    ]
    for (const [name, size, count, type] of expected) {
      const { data } = (await api.get(`${FILES}/${files[name]?.id}`)).body
      assert.deepEqual(
        [name, data.cid, data.size, data.number_of_files],
        [name, files[name]?.cid, size, count],
      )
      assert.match(data.mime_type, type)
      assert.match(data.created_at, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/)
    }
  })
  it('a file is the same when read and when listed', async () => {
    const { body } = await api.get(FILES)
    for (const file of body.data.files)
      assert.deepEqual((await api.get(`${FILES}/${file.id.toUpperCase()}`)).body, { data: file })
  })
})

describe('the list of files', () => {
  it('the list of files returns all of them, newest first', async () => {
    assert.deepEqual(await found({}), ['folder', 'odd', 'image', 'text'])
    assert.deepEqual(await found('order=ASC'), ['text', 'image', 'odd', 'folder'])
  })

  const queries: [string, string[]][] = [
    ['name=notes', ['text']],
    ['name=NOTES 100%25.TXT', ['text']],
    ['name=100%25', ['text']],
    ['name=%25', []],
    ['name=no', ['text']],
    ['name=IM', ['image']],
    ['name=_', []],
    ['name=\\', []],
    ['name=.', []],
    [`group=${group}`, ['image']],
    [`group=${group.toUpperCase()}`, ['image']],
    ['group=null', ['folder', 'odd', 'text']],
    ['group=0191f0f0-0000-7000-8000-000000000000', []],
    ['mimeType=image/png', ['image']],
    ['mimeType=directory', ['folder']],
    ['mimeType=image', []],
    ['cidPending=true', []],
    ['cidPending=false', ['folder', 'odd', 'image', 'text']],
    [`cid=${files.text?.cid}`, ['text']],
    [`cid=${folder.toV0()}`, ['folder']],
    [`cid=${folder.toString(base58btc)}`, ['folder']],
    [`cid=${inlineCid('elsewhere')}`, []],
    ['keyvalues[kind]=text', ['text']],
    ['metadata[kind]=image', ['image']],
    ['keyvalues[kind]=text&keyvalues[lang]=en', ['text']],
    ['keyvalues[kind]=text&metadata[lang]=de', []],
    ['keyvalues[kind]=Text', []],
    ['keyvalues[kind]=', []],
    ['keyvalues[nothing]=x', []],
    [`keyvalues[${encodeURIComponent('a b&c=[d]')}]=${encodeURIComponent('é %')}`, ['odd']],
    ['keyvalues[7]=seven', ['odd']],
    ['name=image&group=null', []],
    [`name=image&group=${group}&mimeType=image/png&keyvalues[kind]=image&order=ASC&limit=1`, ['image']],
    ['unknown=parameter', ['folder', 'odd', 'image', 'text']],
  ]
  for (const [query, expected] of queries)
    it(`the list of files finds ${expected.join(' and ') || 'nothing'} by ?${query}`, async () => {
      const response = await fetch(`${api.url}${FILES}?${query}`, {
        headers: { authorization: `Bearer ${api.key}` },
      })
      const { data } = (await response.json()) as { data: { files: { id: string }[] } }
      assert.equal(response.status, 200, JSON.stringify(data))
      assert.deepEqual(
        data.files.map(({ id }) => NAMES.get(id)),
        expected,
      )
    })

  const bad: [string, string | RegExp][] = [
    ['group=mine', 'group: must be a UUID or null'],
    ['keyvalues=x', /^keyvalues: /],
    ['keyvalues[a]=b&keyvalues[a]=c', /^keyvalues.a: /],
    ['keyvalues[a%00]=b', /^keyvalues: /],
    ['keyvalues[a]=%00', /^keyvalues.a: /],
    ['keyvalues[__proto__]=x', /^keyvalues: a key must not be __proto__$/],
    ['metadata[__proto__]=x', /^metadata: a key must not be __proto__$/],
    [`metadata[a]=${'x'.repeat(1025)}`, /^metadata.a: /],
  ]
  for (const [query, message] of bad)
    it(`the list of files returns 400 for ?${query.slice(0, 40)} [report: error texts]`, async () =>
      assertError(await api.get(FILES, query), 400, message))
})

describe('pages of files', async () => {
  const pins = []
  for (let i = 0; i < 27; i++)
    pins.push(await many.api.pin({ cid: `${inlineCid(`page ${i}`)}`, name: `${i % 3}` }))
  for (const { operation } of pins) assert.equal((await many.api.finished(operation)).state, 'succeeded')
  const made = pins.map(({ record }) => record.id)

  for (const order of ['ASC', 'DESC']) {
    for (const limit of ['1', '10', '26', '27', '1000'])
      it(`pages of ${limit} files, ${order}, skip and repeat nothing`, async () => {
        const pages = await collectPages(many.api, FILES, 'files', { order, limit })
        const ids = pages.map(({ id }) => id)
        assert.deepEqual(ids, order === 'ASC' ? made : made.toReversed())
      })
  }
  it('pages of files keep their filter', async () => {
    const pages = await collectPages(many.api, FILES, 'files', { name: '1', limit: '2' })
    assert.equal(pages.length, 9)
  })
  it('pages of files end with an empty token', async () => {
    const { body } = await many.api.get(FILES, { limit: '27' })
    assert.equal(body.data.next_page_token, '')
    const past = Buffer.from('00000000-0000-7000-8000-000000000000').toString('base64')
    const empty = await many.api.get(FILES, { pageToken: past })
    assert.deepEqual(empty.body, { data: { files: [], next_page_token: '' } })
  })
})
