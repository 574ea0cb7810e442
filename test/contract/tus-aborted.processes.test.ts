/** Resumable uploads that break off, collide or ask for too much, with their bytes in a folder. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { openContext } from './context.ts'
import { begin, bytesOf, create, head, patch, TUS } from './tus-client.ts'
import { interruptedUploads } from './tus-interrupted.ts'

const context = await openContext()
const dir = await mkdtemp(join(tmpdir(), 'berth-tus-'))
const { caller, rows } = await interruptedUploads(context, {
  settings: { BERTH_UPLOAD_DIR: dir },
  ids: () => readdir(dir),
  read: (id) => readFile(join(dir, id)),
  pieceBytes: 2 ** 20,
})
after(() => rm(dir, { recursive: true, force: true }))

describe('unsupported parts of the protocol', () => {
  const refused: Record<string, [Record<string, string>, number, RegExp]> = {
    'a part of an upload': [{ 'upload-concat': 'partial' }, 400, /^Upload-Concat: /],
    'an upload of parts': [{ 'upload-concat': 'final;/a /b' }, 400, /^Upload-Concat: /],
    'a deferred length': [{ 'upload-defer-length': '1' }, 400, /^Upload-Defer-Length: /],
    'a checksum': [{ 'upload-checksum': 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=' }, 400, /^Upload-Checksum: /],
    'another protocol version': [{ 'tus-resumable': '0.2.2' }, 412, /^Tus-Resumable: /],
  }
  for (const [what, [headers, status, message]] of Object.entries(refused)) {
    it(`${what} returns ${status}, and leaves nothing`, async () => {
      const answer = await create(caller, 10, {}, { headers: { ...TUS, ...headers } })
      assert.equal(answer.status, status, await answer.clone().text())
      assert.match(((await answer.json()) as { error: string }).error, message)
      if (status === 412) assert.equal(answer.headers.get('tus-version'), '1.0.0')
      assert.deepEqual([await rows(), await readdir(dir)], [[], []])
    })
  }

  it('a creation with more bytes than announced returns 413, and leaves nothing', async () => {
    const headers = { ...TUS, authorization: `Bearer ${caller.key}`, 'upload-length': '10' }
    const answer = await fetch(`${caller.url}/v3/files`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/offset+octet-stream' },
      body: bytesOf('more', 20),
    })
    assert.equal(answer.status, 413)
    assert.deepEqual([await rows(), await readdir(dir)], [[], []])
  })

  it('a piece with a checksum returns 400, and is not stored', async () => {
    const { location } = await begin(caller, 10)
    const checksum = { ...TUS, 'upload-checksum': 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=' }
    assert.equal((await patch(location, 0, bytesOf('sum', 10), checksum)).status, 400)
    assert.equal((await head(location)).headers.get('upload-offset'), '0')
    await fetch(location, { method: 'DELETE', headers: TUS })
  })
})
