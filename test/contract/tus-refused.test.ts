/** Resumable uploads that Berth refuses, at the start or at the end. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { carHeader } from '../../src/storage/dag/car.ts'
import { inlineCid, missingCid, openContext } from './context.ts'
import { begin, bytesOf, create, encodeMetadata, head, patch, sendAll, TUS } from './tus-client.ts'

const GIB = 1_073_741_824
const { workspace, sql } = await openContext()
const { api, id: workspaceId } = await workspace()

async function assertRefused(answer: Response, status: number, message: string | RegExp): Promise<void> {
  const body = await answer.text()
  assert.equal(answer.status, status, body)
  assert.match(answer.headers.get('content-type') ?? '', /^application\/json/)
  const { error } = JSON.parse(body)
  if (typeof message === 'string') assert.equal(error, message)
  else assert.match(error, message)
}

const uploads = async () =>
  (await sql('SELECT count(*)::int AS count FROM upload WHERE workspace_id = $1', [workspaceId]))[0]?.count

describe('uploads refused at the start', () => {
  const refused: Record<string, [Record<string, string> | string, number, string | RegExp]> = {
    'a value that is not base64': ['filename ab!', 400, /^Upload-Metadata: must be pairs/],
    'a repeated key': ['name YQ==,name Yg==', 400, /^Upload-Metadata: must be pairs/],
    'another network': [{ network: 'secret' }, 400, 'network: must be public or private'],
    'a file name with NUL': [{ filename: 'a\0b' }, 400, /^name: must not contain NUL/],
    'a file type with NUL': [{ filetype: 'a\0b' }, 400, /^filetype: must not contain NUL/],
    'keyvalues that are not JSON': [{ keyvalues: '{' }, 400, 'keyvalues: not valid JSON'],
    'a missing group': [{ group_id: randomUUID() }, 404, 'group_id: there is no such group'],
    'a folder that is neither true nor false': [{ folder: 'yes' }, 400, 'folder: must be true or false'],
    'a CAR for the private network': [{ car: 'true' }, 400, 'car: only on the public network'],
  }
  for (const [what, [metadata, status, message]] of Object.entries(refused)) {
    it(`an upload is refused at the start for ${what}`, async () => {
      const before = await uploads()
      await assertRefused(await create(api, 10, metadata), status, message)
      assert.equal(await uploads(), before)
    })
  }
  for (const length of ['-1', '1.5', 'x', '9'.repeat(16)]) {
    it(`an upload is refused at the start for a length of ${length}`, async () => {
      await assertRefused(await create(api, length), 400, 'Upload-Length: must be a number of bytes')
    })
  }
  it('an upload is refused at the start for a group of another network or workspace', async () => {
    const other = await workspace()
    const theirs = (await other.api.post('/v3/groups/private', { name: 'theirs' })).body.data.id
    const ours = (await api.post('/v3/groups/public', { name: 'ours' })).body.data.id
    for (const group_id of [theirs, ours]) {
      await assertRefused(
        await create(api, 10, { network: 'private', group_id }),
        404,
        'group_id: there is no such group',
      )
    }
  })
  it('an upload is refused at the start if it exceeds the plan', async () => {
    const free = (await workspace('free')).api
    await assertRefused(
      await create(free, GIB + 1),
      413,
      `file: larger than the ${GIB} bytes that the plan allows for one file`,
    )
    await assertRefused(
      await create(free, 10, { network: 'public', car: 'true' }),
      403,
      'CAR upload is not part of the free plan',
    )
    const { location } = await begin(free, 10)
    await sendAll(location, bytesOf('free', 10), 10)
    await assertRefused(
      await create(free, GIB),
      403,
      `file: would exceed the ${GIB} bytes that the plan stores`,
    )
  })
})

describe('refused pieces', () => {
  it('a piece that extends beyond the length is refused', async () => {
    const { location } = await begin(api, 100)
    await assertRefused(await patch(location, 0, bytesOf('long', 101), TUS), 413, /size exceeded/)
    const { headers } = await head(location)
    assert.equal(headers.get('upload-offset'), '0')
  })
  it('a piece with a malformed offset is refused', async () => {
    const { location } = await begin(api, 100)
    await assertRefused(
      await patch(location, 'x', bytesOf('offset', 10)),
      400,
      'Upload-Offset: must be a number of bytes',
    )
  })
  it('a piece with another Content-Type is refused [report: old clients]', async () => {
    const { location } = await begin(api, 100)
    for (const type of ['text/plain', 'application/octet-stream']) {
      const answer = await patch(location, 0, bytesOf('type', 10), { 'content-type': type })
      await assertRefused(answer, 415, 'Content-Type: must be application/offset+octet-stream')
    }
    const { headers } = await head(location)
    assert.equal(headers.get('upload-offset'), '0')
  })
})

describe('uploads refused at the end', () => {
  it('an upload that is refused at the end is refused again if it is repeated', async () => {
    const bytes = bytesOf('no car', 1000)
    const { location, id } = await begin(api, bytes.length, { network: 'public', car: 'true' })
    const first = await patch(location, 0, bytes)
    await assertRefused(first, 400, /^file: /)
    await assertRefused(await patch(location, 0, bytes), 400, /^file: /)
    assert.equal((await head(location)).status, 400)
    assert.equal((await api.get(`/v3/files/public/${id}`)).status, 404)
    assert.equal((await fetch(location, { method: 'DELETE', headers: TUS })).status, 204)
    assert.equal((await head(location)).status, 404)
  })
  it('an upload whose CAR cannot be kept is refused at its end [report: impossible content]', async () => {
    const cid = inlineCid('x'.repeat(200))
    const cars: [car: Buffer<ArrayBuffer>, message: RegExp][] = [
      [Buffer.from(carHeader(cid)), /^file: .*: an identity CID of 200 bytes is not supported/],
      [
        Buffer.from(carHeader(await missingCid())),
        /^file: Not a valid CAR: a block that it links to is missing$/,
      ],
    ]
    for (const [car, message] of cars) {
      const { location } = await begin(api, car.length, { network: 'public', car: 'true' })
      await assertRefused(await patch(location, 0, car), 400, message)
    }
  })
  it('an upload is refused at the end if its group was deleted in the meantime', async () => {
    const group_id = (await api.post('/v3/groups/private', { name: 'short-lived' })).body.data.id
    const { location } = await begin(api, 100, encodeMetadata({ group_id }))
    await api.delete(`/v3/groups/private/${group_id}`)
    await assertRefused(
      await patch(location, 0, bytesOf('groupless', 100)),
      404,
      'group_id: there is no such group',
    )
  })
  it('an upload is refused at the start if too many announced bytes are unfinished', async () => {
    await sql(
      `INSERT INTO plan (name, channels, custom_domains, pin_by_cid, storage_bytes)
       VALUES ('tus-unfinished', false, false, false, 1000)`,
    )
    const small = (await workspace('tus-unfinished')).api
    const begun = []
    for (let i = 0; i < 4; i++) begun.push(await begin(small, 900))
    await assertRefused(
      await create(small, 900),
      403,
      'Upload-Length: unfinished uploads may have 4000 bytes in all; end one, or wait until it expires',
    )
    assert.equal((await create(small, 400)).status, 201)
    await fetch(begun[0]?.location ?? '', { method: 'DELETE', headers: TUS })
    assert.equal((await create(small, 900)).status, 201)
  })
})
