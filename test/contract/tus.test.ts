/** Resumable uploads: by the npm SDK, by the Go CLI, and by any tus 1.0.0 client. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import type { Block } from '../../src/storage/port.ts'
import { block, carOf } from '../integration/storage/cases/blocks.ts'
import { until } from '../support/processes.ts'
import { openContext } from './context.ts'
import { begin, bytesOf, create, head, patch, sendAll, sendPart, TUS, upload } from './tus-client.ts'

const MIB = 1_048_576
const { workspace, url, sql } = await openContext()
const { api } = await workspace()

const fileOf = async (network: string, id: string, client = api) =>
  (await client.get(`/v3/files/${network}/${id}`)).body.data
const offsetOf = (answer: Response): number => Number(answer.headers.get('upload-offset'))
/** A CAR whose root is its first block. */
const packed = (...blocks: [Block, ...Block[]]) => Uint8Array.from(carOf(blocks[0].cid, blocks))
const errorOf = async (answer: Response) => ((await answer.json()) as { error: string }).error

describe('uploads by the npm SDK', () => {
  it('an upload by the npm SDK is a file once its last piece is acknowledged', async () => {
    const bytes = bytesOf('sdk', 6 * MIB)
    const group = (await api.post('/v3/groups/public', { name: 'tus' })).body.data.id
    const { location, id } = await begin(api, bytes.length, {
      filename: 'naïve ✓.bin',
      filetype: '',
      network: 'public',
      group_id: group,
      keyvalues: JSON.stringify({ kind: 'large' }),
      streamable: 'true',
    })
    assert.ok(location.startsWith(`${url}/v3/files/`), location)
    const last = await sendAll(location, bytes, 2 * MIB, { authorization: `Bearer ${api.key}` })
    const cid = last.headers.get('upload-cid')
    const { body } = await api.get('/v3/files/public', { cid: `${cid}` })
    assert.equal(body.data.files.length, 1)
    const [file] = body.data.files
    assert.deepEqual(
      [file.id, file.cid, file.name, file.size, file.keyvalues, file.group_id, file.mime_type],
      [id, cid, 'naïve ✓.bin', bytes.length, { kind: 'large' }, group, 'application/octet-stream'],
    )
  })

  it('an upload by the npm SDK may select the CID version in the query', async () => {
    const bytes = bytesOf('cid version', 10)
    const answer = await create(
      api,
      bytes.length,
      { network: 'public', cid_version: 'v0' },
      { target: `${url}/v3/files?X-Upload-Option-Cid-Version=v0` },
    )
    const last = await patch(answer.headers.get('location') ?? '', 0, bytes)
    assert.match(last.headers.get('upload-cid') ?? '', /^Qm/)
  })

  it('an upload by the npm SDK can be a CAR, whose content becomes the file', async () => {
    const bytes = bytesOf('in a car', 300_000)
    const content = await block(bytes)
    const { cid } = content
    const car = packed(content)
    const { id, cid: uploaded } = await upload(api, car, { network: 'public', car: 'true', name: 'car' })
    assert.equal(uploaded, `${cid}`)
    const file = await fileOf('public', id)
    assert.deepEqual([file.size, file.name], [bytes.length, 'car'])
  })

  it('an upload can be a CAR of a folder, even on the private network and on a plan without CARs', async () => {
    const free = (await workspace('free')).api
    const content = bytesOf('in a folder', 3000)
    const leaf = await block(content)
    const links = [{ Name: 'a.bin', Hash: leaf.cid, Tsize: leaf.bytes.length }]
    const root = await block(
      dagPb.encode(dagPb.prepare({ Data: Uint8Array.of(8, 1), Links: links })),
      dagPb.code,
    )
    const car = packed(root, leaf)
    const { id, cid: uploaded } = await upload(free, car, { folder: 'true', name: 'folder' })
    const file = await fileOf('private', id, free)
    assert.deepEqual(
      [uploaded, file.cid, file.name, file.mime_type, file.number_of_files],
      [`${root.cid}`, `${root.cid}`, 'folder', 'directory', 1],
    )
    const noFolder = packed(leaf)
    const { location } = await begin(free, noFolder.length, { folder: 'true' })
    const answer = await patch(location, 0, noFolder)
    assert.deepEqual(
      [answer.status, await errorOf(answer)],
      [400, 'folder: the root of the CAR is no folder'],
    )
  })

  it('an upload by the npm SDK can repeat a piece that had partly arrived', async () => {
    const bytes = bytesOf('cut', 3 * MIB)
    const { location } = await begin(api, bytes.length)
    assert.equal((await patch(location, 0, bytes.subarray(0, MIB))).status, 204)
    const cut = sendPart(location, MIB, bytes.subarray(MIB, MIB + 300_000), 2 * MIB, {})
    await until('a part has arrived', async () => offsetOf(await head(location)) > MIB)
    cut.hangUp()
    const last = await patch(location, MIB, bytes.subarray(MIB))
    assert.equal(last.status, 204, await last.text())
    const file = await fileOf('private', location.split('/').at(-2) ?? '')
    assert.equal(file.cid, last.headers.get('upload-cid'))
    assert.equal((await upload(api, bytes)).cid, file.cid, 'the bytes are those that were sent')
  })

  it('an upload by the npm SDK can repeat its last piece, and finds the file', async () => {
    const bytes = bytesOf('repeat', 2 * MIB)
    const { location } = await begin(api, bytes.length)
    const last = await sendAll(location, bytes, MIB)
    const again = await patch(location, MIB, bytes.subarray(MIB))
    assert.equal(again.status, 204)
    assert.equal(again.headers.get('upload-cid'), last.headers.get('upload-cid'))
    assert.equal(again.headers.get('upload-offset'), `${bytes.length}`)
  })

  it('an upload by the npm SDK may have a name in Latin-1', async () => {
    const { id } = await upload(api, bytesOf('latin', 20))
    const latin = `filename ${Buffer.from('Müller.txt', 'latin1').toString('base64')}`
    const { location } = await begin(api, 21, latin)
    await sendAll(location, bytesOf('latin1', 21), 21)
    assert.equal((await fileOf('private', location.split('/').at(-2) ?? '')).name, 'Müller.txt')
    assert.equal((await fileOf('private', id)).name, null)
  })
})

describe('tus 1.0.0 clients', () => {
  it('a tus 1.0.0 client may send the bytes in the creation request', async () => {
    const bytes = bytesOf('with creation', 1000)
    const answer = await fetch(`${url}/v3/files`, {
      method: 'POST',
      headers: {
        ...TUS,
        authorization: `Bearer ${api.key}`,
        'upload-length': '1000',
        'content-type': 'application/offset+octet-stream',
      },
      body: bytes,
    })
    assert.equal(answer.status, 201)
    assert.equal(answer.headers.get('upload-offset'), '1000')
    const { cid } = await fileOf('private', answer.headers.get('location')?.split('/').at(-2) ?? '')
    assert.equal(answer.headers.get('upload-cid'), cid)
  })

  it('a tus 1.0.0 client may upload an empty file', async () => {
    const answer = await create(api, 0, { network: 'public' }, { headers: TUS })
    assert.equal(answer.status, 201)
    const { size, cid } = await fileOf('public', answer.headers.get('location')?.split('/').at(-2) ?? '')
    assert.deepEqual([size, cid], [0, answer.headers.get('upload-cid')])
  })

  it('a tus 1.0.0 client can read the progress of its upload', async () => {
    const { location } = await begin(api, 100, { filename: 'half' }, { headers: TUS })
    await patch(location, 0, bytesOf('half', 50), TUS)
    const { status, headers } = await head(location)
    assert.equal(status, 200)
    assert.equal(headers.get('upload-offset'), '50')
    assert.equal(headers.get('upload-length'), '100')
    assert.equal(headers.get('upload-metadata'), 'filename aGFsZg==')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.equal(headers.get('tus-resumable'), '1.0.0')
    assert.ok(Date.parse(headers.get('upload-expires') ?? '') > Date.now())
    assert.equal(headers.get('upload-cid'), null)
  })

  it('a tus 1.0.0 client can read that its upload has ended, and its CID', async () => {
    const { location, cid } = await upload(api, bytesOf('ended', 70))
    const { status, headers } = await head(location)
    assert.deepEqual(
      [status, headers.get('upload-offset'), headers.get('upload-length'), headers.get('upload-cid')],
      [200, '70', '70', cid],
    )
  })

  it('a tus 1.0.0 client gets 409 for a wrong offset, and nothing changes', async () => {
    const { location } = await begin(api, 100)
    await patch(location, 0, bytesOf('offset', 50), TUS)
    for (const offset of [0, 20, 51, 100]) {
      const answer = await patch(location, offset, bytesOf('offset', 10), TUS)
      assert.equal(answer.status, 409, `${offset}`)
      assert.ok(await errorOf(answer))
    }
  })

  it('a tus 1.0.0 client gets 409 even for a large piece that Berth does not read', async () => {
    const { location } = await begin(api, 20 * MIB)
    // If the server closes the connection of a client that is still sending, it is reset, sometimes before the client
    // has read the response.
    for (let i = 0; i < 12; i++) {
      const answer = await patch(location, 1, new Uint8Array(16 * MIB), TUS)
      assert.equal(answer.status, 409)
    }
    assert.equal((await patch(location, 0, new Uint8Array(MIB), TUS)).status, 204)
  })

  it('a tus 1.0.0 client can take over an upload from a hanging request', async () => {
    const bytes = bytesOf('hanging', 2 * MIB)
    const { location } = await begin(api, bytes.length)
    const hanging = sendPart(location, 0, bytes.subarray(0, MIB), bytes.length)
    const offset = await until(
      'some bytes have arrived',
      async () => offsetOf(await head(location)) || undefined,
    )
    assert.ok(offset <= MIB)
    const last = await patch(location, offset, bytes.subarray(offset), TUS)
    assert.equal(last.status, 204, await last.text())
    assert.ok(last.headers.get('upload-cid'))
    hanging.hangUp()
    await hanging.answered
  })

  it('a tus 1.0.0 client can terminate an upload', async () => {
    const { location } = await begin(api, 100)
    await patch(location, 0, bytesOf('given up', 50), TUS)
    assert.equal((await fetch(location, { method: 'DELETE', headers: TUS })).status, 204)
    assert.equal((await head(location)).status, 404)
    assert.equal((await patch(location, 50, bytesOf('given up', 50), TUS)).status, 404)
  })

  it('a tus 1.0.0 client cannot terminate an upload that is a file', async () => {
    const { location, id } = await upload(api, bytesOf('done', 40))
    const answer = await fetch(location, { method: 'DELETE', headers: TUS })
    assert.deepEqual([answer.status, await errorOf(answer)], [409, 'The upload is a file already'])
    assert.ok(await fileOf('private', id))
  })

  it('OPTIONS lists the tus features to pages of any origin', async () => {
    const paths: [path: string, method: RegExp][] = [
      ['/v3/files', /\bPOST\b/],
      [`/v3/files/${randomUUID()}`, /\bPOST\b/],
      [`/v3/files/tus/${randomUUID()}/token`, /\bDELETE\b.*\bHEAD\b.*\bPATCH\b/],
    ]
    for (const [path, method] of paths) {
      const { status, headers } = await fetch(`${url}${path}`, { method: 'OPTIONS' })
      assert.equal(status, 204)
      assert.equal(headers.get('tus-version'), '1.0.0')
      assert.equal(headers.get('tus-extension'), 'creation,creation-with-upload,termination,expiration')
      assert.equal(headers.get('access-control-allow-origin'), '*')
      assert.match(headers.get('access-control-allow-methods') ?? '', method)
      assert.match(headers.get('access-control-allow-headers') ?? '', /\bSource\b/)
    }
    const { location } = await begin(api, 10)
    const answer = await head(location)
    assert.equal(answer.headers.get('access-control-allow-origin'), '*')
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /\bUpload-Cid\b/)
  })
})

describe('X-HTTP-Method-Override', () => {
  it('a client that can only POST sends the method in a header [report: old clients]', async () => {
    const bytes = bytesOf('overridden', 300)
    const { location } = await begin(api, bytes.length)
    const post = (method: string, headers: Record<string, string> = {}, body?: Uint8Array<ArrayBuffer>) =>
      fetch(location, {
        method: 'POST',
        headers: { ...TUS, 'x-http-method-override': method, ...headers },
        ...(body && { body }),
      })
    const sent = { 'upload-offset': '0', 'content-type': 'application/offset+octet-stream' }
    const first = await post('PATCH', sent, bytes.subarray(0, 100))
    assert.deepEqual([first.status, offsetOf(first)], [204, 100], await first.text())
    const asked = await post('head')
    assert.deepEqual([asked.status, offsetOf(asked)], [200, 100])
    const last = await post('PATCH', { ...sent, 'upload-offset': '100' }, bytes.subarray(100))
    assert.equal(last.status, 204, await last.text())
    assert.ok(last.headers.get('upload-cid'))
    const other = (await begin(api, 10)).location
    const given = await fetch(other, {
      method: 'POST',
      headers: { ...TUS, 'x-http-method-override': 'DELETE' },
    })
    assert.equal(given.status, 204)
    assert.equal((await head(other)).status, 404)
    const gone = await fetch(other, { method: 'POST', headers: { ...TUS, 'x-http-method-override': 'HEAD' } })
    assert.deepEqual([gone.status, await errorOf(gone)], [404, 'There is no such upload'])
    for (const method of ['', 'PUT', 'TRACE']) assert.equal((await post(method)).status, 405, method)
    assert.equal((await fetch(other, { method: 'POST', headers: TUS })).status, 405)
  })
})

describe('Upload-Metadata', () => {
  it('blanks around metadata pairs of an upload are ignored [report: old clients]', async () => {
    const bytes = bytesOf('blanks', 50)
    const header = `filename  ${btoa('blank.txt')} , network ${btoa('public')},, keyvalues ${btoa('{"a":"b"}')} ,`
    const { location, id } = await begin(api, bytes.length, header)
    assert.equal(
      (await patch(location, 0, bytes, { 'content-type': 'Application/Offset+Octet-Stream; x=y' })).status,
      204,
    )
    const { name, keyvalues } = await fileOf('public', id)
    assert.deepEqual([name, keyvalues], ['blank.txt', { a: 'b' }])
  })
})

describe('the id of an upload', () => {
  it('the id of an upload finds a file that the workspace already had', async () => {
    const bytes = bytesOf('twice', 5000)
    const first = await upload(api, bytes, { name: 'first' })
    const second = await upload(api, bytes, { name: 'second' })
    assert.equal(second.cid, first.cid)
    assert.notEqual(second.id, first.id)
    const file = await fileOf('private', second.id)
    assert.deepEqual([file.id, file.name], [first.id, 'first'])
    const other = await workspace()
    assert.equal((await other.api.get(`/v3/files/private/${second.id}`)).status, 404)
  })
})

describe('the URL of an upload', () => {
  it('an upload URL with a wrong token or id returns 404', async () => {
    const { location, id } = await begin(api, 10)
    for (const wrong of [
      location.replace(/[^/]+$/, 'x'),
      `${location.slice(0, -1)}${location.endsWith('A') ? 'B' : 'A'}`,
      location.replace(id, randomUUID()),
      location.replace(id, 'x'),
    ]) {
      assert.equal((await head(wrong)).status, 404, wrong)
      const answer = await patch(wrong, 0, bytesOf('wrong', 10))
      assert.deepEqual([answer.status, await errorOf(answer)], [404, 'There is no such upload'])
      assert.equal((await fetch(wrong, { method: 'DELETE' })).status, 404)
    }
    assert.equal(offsetOf(await head(location)), 0)
  })

  it('an upload URL stops working when the key that created it is revoked', async () => {
    const own = await workspace()
    const keyed = await own.keyed('org:files:write')
    const { location } = await begin(keyed, 20)
    await sql(`UPDATE api_key SET revoked_at = now() WHERE workspace_id = $1 AND scopes <> '{admin}'`, [
      own.id,
    ])
    const answer = await patch(location, 0, bytesOf('revoked', 20))
    assert.deepEqual(
      [answer.status, await errorOf(answer)],
      [403, 'The key of this upload is revoked, or may not upload'],
    )
  })

  it('an upload URL expires', async () => {
    const { location, id } = await begin(api, 20)
    await sql(`UPDATE upload SET expires_at = now() - interval '1 s' WHERE id = $1`, [id])
    // The cleanup loop may have been faster.
    assert.ok([404, 410].includes((await head(location)).status))
    assert.ok([404, 410].includes((await patch(location, 0, bytesOf('late', 20))).status))
  })
})
