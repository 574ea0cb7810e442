/**
 * Content in the memory of gateways is served only while it is kept, at each web process, and only to those who may
 * read it.
 */
import assert from 'node:assert/strict'
import { rm } from 'node:fs/promises'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { BlockFolder } from '../../src/storage/embedded/blocks.ts'
import { assertRefused, gatewayReader } from '../support/gateway.ts'
import { stackKind } from '../support/stack.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { store } from './stored.ts'
import { file, send } from './upload-form.ts'
import { startWebProcess } from './web-process.ts'

const NOT_KEPT = 'cid: not kept here'
const LINK = '/v3/files/private/download_link'

const context = await openContext()
const workspace = await context.workspace()
const { api } = workspace
const first = await openGateway(context, workspace)
const web = await startWebProcess(context.env)
after(() => web.running.end('SIGTERM'))
/** The same gateway at two web processes. */
const both = [first, gatewayReader(web.url, first.host)]

let made = 0
const newText = () => `in memory ${++made} of ${process.pid}`

/** Reads a path twice at both processes, so that each keeps it in memory. */
async function warm(path: string, text: string) {
  for (const gateway of [...both, ...both]) {
    const served = await gateway.get(path)
    assert.deepEqual([served.status, served.text], [200, text])
  }
}

async function assertGone(path: string, headers: Record<string, string> = {}) {
  for (const gateway of both) assertRefused(await gateway.get(path, headers), 404, NOT_KEPT)
}

describe('content in the memory of web processes', () => {
  it('content in memory is no longer served by any web process once its file is deleted', async () => {
    const text = newText()
    const { id, cid } = await store(api, 'public', text)
    await warm(`/ipfs/${cid}`, text)
    await api.delete(`/v3/files/public/${id}`)
    await assertGone(`/ipfs/${cid}`)
    await assertGone(`/ipfs/${cid}`, { 'if-none-match': `"${cid}"` })
    await store(api, 'public', text)
    await warm(`/ipfs/${cid}`, text)
  })

  it('content in memory is no longer served by any web process once it has expired', async () => {
    const text = newText()
    const { id, cid } = await store(api, 'public', text)
    await warm(`/ipfs/${cid}`, text)
    await context.sql('UPDATE file SET expires_at = now() WHERE id = $1', [id])
    await assertGone(`/ipfs/${cid}`)
  })

  it('a file in memory is no longer served by any web process once its folder is deleted', async () => {
    const text = newText()
    const form: Parameters<typeof send>[1] = [
      ['network', 'public'],
      file(text, 'folder/a.txt'),
      file('b', 'folder/b.txt'),
    ]
    const { id, cid } = (await send(api, form)).body.data
    await warm(`/ipfs/${cid}/a.txt`, text)
    await api.delete(`/v3/files/public/${id}`)
    await assertGone(`/ipfs/${cid}/a.txt`)
  })

  it('content in memory is served only at gateways of workspaces that keep it', async () => {
    const text = newText()
    const { cid } = await store(api, 'public', text)
    await warm(`/ipfs/${cid}`, text)
    const other = await context.workspace()
    const theirs = await openGateway(context, other)
    const path = `/ipfs/${cid}`
    for (const url of [context.url, web.url])
      assertRefused(await gatewayReader(url, theirs.host).get(path), 404, NOT_KEPT)
    await store(other.api, 'public', text)
    assert.equal((await theirs.get(path)).text, text)
  })

  it('private content in memory is served only by a signed link, and not after it is deleted', async () => {
    const text = newText()
    const { id, cid } = await store(api, 'private', text)
    const body = { url: `https://${first.host}/files/${cid}`, expires: 60, method: 'GET' }
    const { pathname, search } = new URL((await api.post(LINK, body)).body.data)
    await warm(`${pathname}${search}`, text)
    for (const gateway of both) {
      assert.equal((await gateway.get(pathname)).status, 401)
      assertRefused(await gateway.get(`/ipfs/${cid}`), 404, NOT_KEPT)
    }
    await api.delete(`/v3/files/private/${id}`)
    await assertGone(`${pathname}${search}`)
  })

  it('a swap applies to content in memory at every web process at once', async () => {
    const [from, to] = [newText(), newText()]
    const swapping = await openGateway(context, workspace)
    assert.equal((await api.post(`/v3/gateways/plugins/${swapping.id}`, { plugin_id: 2 })).status, 200)
    const [{ cid }, { cid: mapped }] = [await store(api, 'public', from), await store(api, 'public', to)]
    const readers = [context.url, web.url].map((url) => gatewayReader(url, swapping.host))
    const assertServed = async (text: string) => {
      for (const reader of readers) assert.equal((await reader.get(`/ipfs/${cid}`)).text, text)
    }
    await assertServed(from)
    assert.equal((await api.put(`/v3/files/public/swap/${cid}`, { swap_cid: mapped })).status, 200)
    await assertServed(to)
    assert.equal((await api.delete(`/v3/files/public/swap/${cid}`)).status, 200)
    await assertServed(from)
  })

  it('concurrent requests each get the content of their own CID', async () => {
    const files = await Promise.all([1, 2, 3].map(() => store(api, 'public', newText())))
    const [gone, ...kept] = files
    await api.delete(`/v3/files/public/${gone.id}`)
    const paths = [...kept, gone, ...kept].map(({ cid }) => `/ipfs/${cid}`)
    const served = await Promise.all(paths.map((path) => first.get(path)))
    assert.deepEqual(
      served.map(({ status, headers }) => [status, headers['x-ipfs-path']]),
      paths.map((path) => (path.includes(gone.cid) ? [404, undefined] : [200, path])),
    )
  })
})

describe('a client with a cached file', () => {
  it('a client with a cached single-block file gets 304 without reading the block', {
    skip: stackKind === 'real' && 'a pinned block cannot be removed from Kubo',
  }, async () => {
    const { cid } = await store(api, 'public', newText())
    const blocks = new BlockFolder(join(context.env.BERTH_DATA_DIR ?? '', 'ipfs/public'), { touchAfterMs: 0 })
    await rm(blocks.path(CID.parse(cid)))
    const headers = { 'if-none-match': `"${cid}"` }
    const known = await first.get(`/ipfs/${cid}`, headers)
    assert.equal(known.status, 304)
    assert.equal(known.headers.etag, `"${cid}"`)
    assert.equal(known.headers['x-ipfs-roots'], cid)
    assert.equal((await first.get(`/ipfs/${cid}`)).status, 503)
    assert.equal((await first.get(`/ipfs/${cid}/`, headers)).status, 503)
  })
})
