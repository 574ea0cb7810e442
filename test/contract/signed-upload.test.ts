/** URLs for uploads without a key. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { describe, it } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { UnixFS } from 'ipfs-unixfs'
import { block, carOf } from '../integration/storage/cases/blocks.ts'
import { assertError, type Client, type Reply } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { openContext, type Workspace } from './context.ts'
import { begin, bytesOf, create, patch } from './tus-client.ts'

const SIGN = '/v3/files/sign'
const PNG = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg==',
  'base64',
)
const { workspace, anonymous, url, sql } = await openContext()
const { api } = await workspace()

const sign = async (fields: object = {}, client: Client = api): Promise<string> => {
  const { status, body } = await client.post(SIGN, { expires: 60, network: 'public', ...fields })
  assert.equal(status, 200, JSON.stringify(body))
  return body.data
}

/** Sends a form to a signed URL, like a page without a key. */
async function send(
  signed: string,
  fields: Record<string, string | Blob | [Blob, string][]>,
): Promise<Reply> {
  const form = new FormData()
  for (const [name, value] of Object.entries(fields)) {
    if (Array.isArray(value)) for (const [blob, path] of value) form.append(name, blob, path)
    else if (typeof value === 'string') form.append(name, value)
    else form.append(name, value, 'file')
  }
  const response = await fetch(signed, { method: 'POST', body: form })
  return { status: response.status, headers: response.headers, body: await response.json() }
}

const text = (content: string) => new Blob([content], { type: 'text/plain' })
const changed = (signed: string, change: (url: URL) => void) => {
  const copy = new URL(signed)
  change(copy)
  return copy.href
}

describe('a signed URL', () => {
  it('a signed URL has the format that clients know', async () => {
    const before = Math.floor(Date.now() / 1000)
    const signed = new URL(await sign({ date: undefined }))
    assert.equal(signed.origin, url)
    assert.match(signed.pathname, /^\/v3\/files\/[0-9a-f]{8}-[0-9a-f-]{27}$/)
    const params = Object.fromEntries(signed.searchParams)
    const date = Number(params['X-Date'])
    assert.ok(before <= date && date <= Date.now() / 1000)
    assert.equal(params['X-Algorithm'], 'PINATA2')
    assert.equal(params['X-Expires'], '60')
    assert.equal(params['X-Method'], '["HEAD","PATCH","POST"]')
    assert.match(params['X-User-ID'] ?? '', /^[0-9a-f-]{36}$/)
    assert.match(params['X-Signature'] ?? '', /^[0-9a-f]{64}$/)
  })

  it('a signed URL accepts a file, and overrides form fields with its own', async () => {
    const group_id = (await api.post('/v3/groups/public', { name: 'signed' })).body.data.id
    const signed = await sign({ filename: 'fixed', keyvalues: { from: 'url' }, group_id })
    const { status, body } = await send(signed, {
      file: text('signed upload'),
      network: 'public',
      name: 'chosen',
      keyvalues: '{"from":"form"}',
    })
    assert.equal(status, 200, JSON.stringify(body))
    const { data } = await api.get(`/v3/files/public/${body.data.id}`).then((reply) => reply.body)
    assert.deepEqual([data.name, data.keyvalues, data.group_id], ['fixed', { from: 'url' }, group_id])
    assert.equal(body.data.network, 'public')
  })

  it('a signed URL leaves unset fields to the upload', async () => {
    const { body } = await send(await sign(), {
      file: text('signed, and free'),
      name: 'chosen',
      keyvalues: '{"from":"form"}',
    })
    assert.deepEqual([body.data.name, body.data.keyvalues], ['chosen', { from: 'form' }])
  })

  it('a signed URL may be used repeatedly, needs no key, and ignores a wrong one', async () => {
    const signed = await sign()
    for (const content of ['one', 'two']) {
      const form = new FormData()
      form.set('file', text(`used ${content}`), 'file')
      const response = await fetch(signed, {
        method: 'POST',
        headers: { authorization: 'Bearer undefined', origin: 'https://page.example' },
        body: form,
      })
      assert.equal(response.status, 200)
      assert.equal(response.headers.get('access-control-allow-origin'), '*')
    }
  })

  it('a signed URL accepts a resumable upload', async () => {
    const bytes = bytesOf('signed tus', 3000)
    const { location, id } = await begin(
      anonymous,
      bytes.length,
      { filename: 'chosen' },
      {
        target: await sign({ keyvalues: { by: 'url' }, max_file_size: 3000 }),
      },
    )
    const last = await patch(location, 0, bytes)
    assert.equal(last.status, 204, await last.text())
    const { data } = (await api.get(`/v3/files/public/${id}`)).body
    assert.deepEqual(
      [data.cid, data.name, data.keyvalues],
      [last.headers.get('upload-cid'), 'chosen', { by: 'url' }],
    )
  })

  it('a signed URL accepts the option that the npm SDK adds to it', async () => {
    const bytes = bytesOf('signed v0', 3000)
    const target = new URL(await sign())
    target.searchParams.set('X-Upload-Option-Cid-Version', 'v0')
    const { location } = await begin(anonymous, bytes.length, {}, { target: target.href })
    assert.match((await patch(location, 0, bytes)).headers.get('upload-cid') ?? '', /^Qm/)
  })

  it('a signed URL accepts a folder if it allows directories', async () => {
    const folder: [Blob, string][] = [
      [text('a'), 'folder/a.txt'],
      [text('b'), 'folder/b.txt'],
    ]
    const { status, body } = await send(await sign({ allow_mime_types: ['directory'] }), { file: folder })
    assert.deepEqual([status, body.data.mime_type], [200, 'directory'])
    assertError(
      await send(await sign({ allow_mime_types: ['text/*'] }), { file: folder }),
      400,
      'Presigned URL does not grant permissions to upload detected MIME type: directory',
    )
  })
})

describe('uploads beyond what the URL allows', () => {
  const REFUSED = 'Presigned URL does not grant permissions to upload detected MIME type: text/plain'

  it('an upload of a type that its URL does not allow is refused', async () => {
    const signed = await sign({ allow_mime_types: ['image/*', 'application/pdf'] })
    assertError(await send(signed, { file: new Blob(['not an image'], { type: 'image/png' }) }), 400, REFUSED)
    const { status } = await send(signed, { file: new Blob([PNG]) })
    assert.equal(status, 200)
  })
  it('a resumable upload of a type that its URL does not allow is refused', async () => {
    const target = await sign({ allow_mime_types: ['image/*'] })
    const { location, id } = await begin(anonymous, 8, { filetype: 'image/png' }, { target })
    const answer = await patch(location, 0, new Uint8Array(Buffer.from('no image')))
    assert.deepEqual([answer.status, await answer.json()], [400, { error: REFUSED }])
    assert.equal((await api.get(`/v3/files/public/${id}`)).status, 404)
  })
  it('an upload larger than its URL allows is refused', async () => {
    const signed = await sign({ max_file_size: 10 })
    const message = 'file: larger than the 10 bytes that this URL allows'
    assertError(await send(signed, { file: text('eleven bytes') }), 413, message)
    const answer = await create(anonymous, 11, {}, { target: signed })
    assert.deepEqual([answer.status, await answer.json()], [413, { error: message }])
  })
  it('an upload of a CAR with a file larger than its URL allows is refused', async () => {
    const leaf = await block(new Uint8Array(1000))
    const node = dagPb.encode({
      Data: new UnixFS({ type: 'file', blockSizes: new Array(20).fill(1000n) }).marshal(),
      Links: new Array(20).fill({ Hash: leaf.cid, Name: '', Tsize: 1000 }),
    })
    const root = await block(node, dagPb.code)
    const car = carOf(root.cid, [root, leaf])
    const signed = await sign({ max_file_size: 5000 })
    const message = 'file: larger than the 5000 bytes that this URL allows'
    const form = { network: 'public', car: 'true', file: new Blob([Uint8Array.from(car)]) }
    assertError(await send(signed, form), 413, message)
    const { location } = await begin(anonymous, car.length, { car: 'true' }, { target: signed })
    const answer = await patch(location, 0, Uint8Array.from(car))
    assert.deepEqual([answer.status, await answer.json()], [413, { error: message }])
  })
  it('an upload to a network that its URL does not allow is refused', async () => {
    const signed = await sign()
    const message = 'network: this key or URL is for the public network'
    assertError(await send(signed, { file: text('private'), network: 'private' }), 400, message)
    const answer = await create(anonymous, 11, { network: 'private' }, { target: signed })
    assert.deepEqual([answer.status, await answer.json()], [400, { error: message }])
  })
})

describe('invalid signed URLs', () => {
  const upload = (signed: string) => send(signed, { file: text('refused') })
  const unsigned = 'X-Signature: missing; POST /v3/files/sign makes signed URLs'
  const forged = 'X-Signature: the URL is not as it was signed'

  it('a signed URL without a signature is refused', async () => {
    const signed = await sign()
    const params = changed(signed, (copy) => copy.searchParams.delete('X-Signature'))
    assertError(await upload(params), 401, unsigned)
    assertError(await upload(signed.replace(/\?.*/, '')), 401, unsigned)
  })
  it('a modified signed URL is refused', async () => {
    const signed = await sign()
    const other = new URL(await sign()).pathname
    for (const change of [
      (copy: URL) => copy.searchParams.set('X-Expires', '3600'),
      (copy: URL) => copy.searchParams.set('X-Signature', 'f'.repeat(64)),
      (copy: URL) => copy.searchParams.append('X-Other', '1'),
      (copy: URL) => {
        copy.pathname = other
      },
    ]) {
      assertError(await upload(changed(signed, change)), 403, forged)
    }
    assert.equal((await upload(signed)).status, 200)
  })
  it('an expired or not yet valid signed URL is refused', async () => {
    const now = Math.floor(Date.now() / 1000)
    // Valid for two seconds: signed again if they had passed before the request arrived.
    const short = await until('a URL is signed before it expires', async () => {
      const date = Math.floor(Date.now() / 1000) - 3600
      const { status, body } = await api.post(SIGN, { date, expires: 3602, network: 'public' })
      return status === 200 && body.data
    })
    const reply = await until('it expires', async () => {
      const last = await upload(short)
      return last.status !== 200 && last
    })
    assertError(reply, 403, 'X-Expires: the signed URL has expired')
    const early = await sign({ date: now + 3600 })
    assertError(await upload(early), 403, 'X-Date: the signed URL is not good yet')
  })

  const gone = 'The key of this upload is revoked, or may not upload'
  const ends: Record<string, (own: Workspace) => Promise<unknown>> = {
    'its key is revoked': (own) =>
      sql('UPDATE api_key SET revoked_at = now() WHERE workspace_id = $1', [own.id]),
    'its key expires': (own) =>
      sql(`UPDATE api_key SET expires_at = now() - interval '1 s' WHERE workspace_id = $1`, [own.id]),
    'its user leaves': (own) => sql('DELETE FROM membership WHERE workspace_id = $1', [own.id]),
    'its user may only read': (own) =>
      sql(`UPDATE membership SET role = 'viewer' WHERE workspace_id = $1`, [own.id]),
  }
  for (const [what, end] of Object.entries(ends)) {
    it(`a signed URL stops working when ${what}`, async () => {
      const own = await workspace()
      const signed = await sign({}, own.api)
      await end(own)
      assertError(await upload(signed), 403, gone)
    })
  }
  it("a file that is being sent while its signed URL's key is revoked is not kept", async () => {
    const own = await workspace()
    const signed = await sign({}, own.api)
    const headers = { 'content-type': 'multipart/form-data; boundary=x' }
    const sending = request(signed, { method: 'POST', headers })
    const answered = once(sending, 'response') as Promise<[IncomingMessage]>
    sending.write('--x\r\ncontent-disposition: form-data; name="file"; filename="a.bin"\r\n\r\n')
    // More than the system buffers for a server that does not read yet: Berth has accepted the request.
    await new Promise((resolve) => sending.write(Buffer.alloc(32_000_000), resolve))
    await ends['its key is revoked']?.(own)
    sending.end('\r\n--x--\r\n')
    const [{ statusCode }] = await answered
    assert.equal(statusCode, 403)
    assert.deepEqual(await sql('SELECT FROM file WHERE workspace_id = $1', [own.id]), [])
  })
  it('a signed URL is limited by the plan', async () => {
    const own = await workspace()
    const signed = await sign({}, own.api)
    await sql(`UPDATE workspace SET plan = 'free' WHERE id = $1`, [own.id])
    const answer = await create(anonymous, 2_000_000_000, {}, { target: signed })
    assert.equal(answer.status, 413)
  })
})

describe('signing a URL', () => {
  it('signing a URL for a time in the past returns 400', async () => {
    const message = 'expires: is over already: date and expires are in the past'
    assertError(await api.post(SIGN, { date: 1000, expires: 60 }), 400, message)
  })
  it('signing a URL for a group of another workspace returns 404', async () => {
    const theirs = (await (await workspace()).api.post('/v3/groups/public', { name: 'x' })).body.data.id
    const body = { expires: 60, network: 'public', group_id: theirs }
    assertError(await api.post(SIGN, body), 404, 'group_id: there is no such group')
  })
})
