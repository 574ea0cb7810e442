/** The entries of a stored folder: `GET /v0/files/{network}/{id}/entries`. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { block, carOf } from '../integration/storage/cases/blocks.ts'
import { assertError } from '../support/client.ts'
import { hollowDirectory } from '../support/hollow.ts'
import { openContext } from './context.ts'
import { NETWORKS } from './stored.ts'
import { file, type Part, send, upload } from './upload-form.ts'

const { workspace } = await openContext()
const own = await workspace()
const { api } = own
const MIB = 1_048_576
const HOSTILE = '<img src=x onerror=alert(1)>'

/** Uploads a folder with a large file, a small one and nested folders; returns its record. */
async function folder(network: string) {
  const large = randomBytes(2 * MIB)
  const parts = [
    file(large, 'root/large.bin'),
    file('small', 'root/small.txt'),
    file('deep', `root/inner/deeper/${HOSTILE}`),
  ]
  return upload(api, ['network', network] as Part, ...parts)
}
const entriesOf = (network: string, id: string, query: Record<string, string> = {}, client = api) =>
  client.get(`/v0/files/${network}/${id}/entries`, query)

describe('folder entries', () => {
  for (const network of NETWORKS) {
    it(`the entries of a ${network} folder and its subfolders have names, CIDs, types and sizes`, async () => {
      const { id } = await folder(network)
      const { status, body } = await entriesOf(network, id)
      assert.equal(status, 200, JSON.stringify(body))
      const { entries, next_page_token } = body.data
      assert.equal(next_page_token, '')
      assert.deepEqual(
        entries.map(({ name, type }: { name: string; type: string }) => [name, type]),
        [
          ['inner', 'directory'],
          ['large.bin', 'file'],
          ['small.txt', 'file'],
        ],
      )
      assert.equal(entries[1].size, 2 * MIB)
      assert.equal(entries[2].size, 5)
      const inner = (await entriesOf(network, id, { path: 'inner/deeper' })).body.data.entries
      assert.deepEqual([inner[0].name, inner[0].type, inner[0].size], [HOSTILE, 'file', 4])
      const [deeper] = (await entriesOf(network, id, { path: 'inner' })).body.data.entries
      assert.deepEqual([deeper.name, deeper.type], ['deeper', 'directory'])
    })
  }
  it('the pages of a sharded folder list each entry once', async () => {
    const names = Array.from({ length: 450 }, (_, i) => `${i}-${'n'.repeat(200)}`)
    const { id } = await upload(api, ...names.map((name) => file(name, `many/${name}`)))
    const found: string[] = []
    for (let pageToken = '', pages = 0; pages === 0 || pageToken; pages++) {
      const { body } = await entriesOf('private', id, { limit: '200', ...(pageToken && { pageToken }) })
      found.push(...body.data.entries.map(({ name }: { name: string }) => name))
      pageToken = body.data.next_page_token
      assert.ok(pages < 3)
    }
    assert.deepEqual(found.toSorted(), names.toSorted())
  })
  it('entries with names as large as blocks get their own pages', async () => {
    const leaf = await block(Buffer.from('leaf'))
    const names = ['a', 'b', 'c'].map((name) => name.repeat(600_000))
    const Links = names.map((Name) => ({ Name, Hash: leaf.cid, Tsize: 4 }))
    const Data = new UnixFS({ type: 'directory' }).marshal()
    const made = await block(dagPb.encode(dagPb.prepare({ Data, Links })), dagPb.code)
    const car = file(carOf(made.cid, [made, leaf]), 'made.car')
    const { id } = await upload(api, ['network', 'public'], ['car', 'true'], car)
    const first = (await entriesOf('public', id)).body.data
    const second = (await entriesOf('public', id, { pageToken: first.next_page_token })).body.data
    const found = [first, second].map(({ entries }) => entries.map(({ name }: { name: string }) => name))
    assert.deepEqual([found, second.next_page_token], [[names.slice(0, 2), names.slice(2)], ''])
  })
  it('entries of files, missing paths and invalid page tokens are refused', async () => {
    const { id } = await folder('private')
    assertError(await entriesOf('private', id, { path: 'small.txt' }), 400, 'path: not a folder')
    for (const path of ['missing', 'small.txt/x', 'inner/missing'])
      assertError(await entriesOf('private', id, { path }), 404, 'path: does not exist')
    const single = await upload(api, file('alone', 'alone.txt'))
    assertError(await entriesOf('private', single.id), 400, 'path: not a folder')
    for (const pageToken of ['x', '-1', 'MDE5'])
      assertError(await entriesOf('private', id, { pageToken }), 400, 'pageToken: not a token of this API')
    assertError(await entriesOf('private', id, { limit: '201' }), 400, /^limit: /)
    assertError(await entriesOf('private', id, { path: 'a\0' }), 400, /^path: /)
    assertError(await entriesOf('public', id), 404, 'There is no such file')
    assertError(await entriesOf('private', 'x'), 404, 'There is no such file')
  })
  it('a folder of 20,000 names for one and the same folder is listed up to its last page', async () => {
    const { root, blocks } = await hollowDirectory(20_000, 3)
    const made: Part[] = [['network', 'public'], ['car', 'true'], file(carOf(root, blocks), 'made.car')]
    const { id } = (await send(api, made)).body.data
    for (const pageToken of ['', '19999']) {
      const { body } = await entriesOf('public', id, { limit: '200', ...(pageToken && { pageToken }) })
      assert.equal(body.data.entries.length, pageToken ? 1 : 200, JSON.stringify(body))
      assert.equal(body.data.entries[0].type, 'directory')
      assert.equal(body.data.next_page_token, pageToken ? '' : '200')
    }
  })
})
