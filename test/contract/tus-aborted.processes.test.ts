/** Resumable uploads that break off or collide, over real sockets and two web processes: nothing of them remains. */
import assert from 'node:assert/strict'
import { mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { until } from '../support/processes.ts'
import { openContext } from './context.ts'
import { begin, bytesOf, create, head, patch, sendPart, TUS } from './tus-client.ts'
import { startWebProcess } from './web-process.ts'

const MIB = 2 ** 20
const context = await openContext()
const dir = await mkdtemp(join(tmpdir(), 'berth-tus-'))
const settings = { BERTH_UPLOAD_DIR: dir }
const webs = await Promise.all([
  startWebProcess(context.env, settings),
  startWebProcess(context.env, settings),
])
after(async () => {
  await Promise.all(webs.map(({ running }) => running.end()))
  await rm(dir, { recursive: true, force: true })
})
const [first, second] = webs.map(({ url }) => url) as [string, string]
const { api, id: workspaceId } = await context.workspace()
const caller = { url: first, key: api.key }

const rows = async () =>
  await context.sql('SELECT id, lease_until FROM upload WHERE workspace_id = $1 AND cid IS NULL', [
    workspaceId,
  ])
const files = () => readdir(dir)
const nothingIsLeft = () =>
  until('no row and no file is left', async () => !(await rows()).length && !(await files()).length)
/** The URL of the same upload at the other process. */
const at = (url: string, location: string) => `${url}${new URL(location).pathname}`

/** Creates an upload with its bytes, but sends only part of them. The returned function disconnects. */
function createPart(length: number, part: Uint8Array, url = first): () => void {
  const sending = request(`${url}/v3/files`, {
    method: 'POST',
    headers: {
      ...TUS,
      authorization: `Bearer ${api.key}`,
      'content-type': 'application/offset+octet-stream',
      'content-length': length,
      'upload-length': length,
    },
  })
  sending.on('error', () => {})
  sending.write(part)
  return () => sending.destroy()
}

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
      assert.deepEqual([await rows(), await files()], [[], []])
    })
  }

  it('a creation with more bytes than announced returns 413, and leaves nothing', async () => {
    const headers = { ...TUS, authorization: `Bearer ${api.key}`, 'upload-length': '10' }
    const answer = await fetch(`${first}/v3/files`, {
      method: 'POST',
      headers: { ...headers, 'content-type': 'application/offset+octet-stream' },
      body: bytesOf('more', 20),
    })
    assert.equal(answer.status, 413)
    assert.deepEqual([await rows(), await files()], [[], []])
  })

  it('a piece with a checksum returns 400, and is not stored', async () => {
    const { location } = await begin(caller, 10)
    const checksum = { ...TUS, 'upload-checksum': 'sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=' }
    assert.equal((await patch(location, 0, bytesOf('sum', 10), checksum)).status, 400)
    assert.equal((await head(location)).headers.get('upload-offset'), '0')
    await fetch(location, { method: 'DELETE', headers: TUS })
  })
})

describe('interrupted uploads', () => {
  it('an upload interrupted during its creation is removed at once, without delaying the next', async () => {
    const hangUp = createPart(2 * MIB, bytesOf('creation', MIB))
    await until('it is being received', async () => (await files()).length > 0)
    hangUp()
    const next = bytesOf('next', 1000)
    const { location } = await begin(caller, next.length)
    assert.equal((await patch(location, 0, next, TUS)).status, 204)
    await nothingIsLeft()
  })

  it('an upload interrupted during a piece releases its lock, and resumes at the other process', async () => {
    const bytes = bytesOf('piece', 2 * MIB)
    const { location } = await begin(caller, bytes.length)
    const sending = sendPart(location, 0, bytes.subarray(0, MIB), bytes.length)
    const kept = join(dir, location.split('/').at(-2) ?? '')
    await until('some bytes have arrived', async () => (await stat(kept)).size > 0)
    sending.hangUp()
    const locked = async () => (await rows()).some(({ lease_until }) => lease_until !== null)
    await until('its lock is released', async () => !(await locked()))
    const offset = Number((await head(at(second, location))).headers.get('upload-offset'))
    assert.equal((await patch(at(second, location), offset, bytes.subarray(offset), TUS)).status, 204)
    await nothingIsLeft()
  })
})

describe('two requests for the same piece', () => {
  for (const [who, headers] of Object.entries({ 'tus clients': TUS, 'clients without a tus header': {} })) {
    it(`concurrent pieces by ${who} at two processes: the accepted one determines the bytes`, async () => {
      for (let round = 0; round < 10; round++) {
        const rivals = ['a', 'b'].map((name) => bytesOf(`${who} ${round} ${name}`, 64 * 1024))
        const { location, id } = await begin(caller, 128 * 1024)
        const answers = await Promise.all(
          rivals.map((bytes, i) => patch(at(i ? second : first, location), 0, bytes, headers)),
        )
        const statuses = answers.map(({ status }) => status)
        assert.ok(
          statuses.includes(204) && statuses.every((status) => [204, 409, 423].includes(status)),
          `${statuses}`,
        )
        // A client without the header may repeat an accepted piece: then the bytes of the later request are stored.
        if (headers === TUS)
          assert.equal(statuses.filter((status) => status === 204).length, 1, `${statuses}`)
        const there = await readFile(join(dir, id))
        assert.ok(
          rivals.some((bytes, i) => statuses[i] === 204 && there.equals(bytes)),
          'the bytes of one of them',
        )
        await fetch(location, { method: 'DELETE', headers: TUS })
      }
      await nothingIsLeft()
    })
  }
})

describe('killed web processes', () => {
  it('after a web process is killed during a piece, the upload resumes at another one', async () => {
    const third = await startWebProcess(context.env, settings)
    const bytes = bytesOf('killed', 2 * MIB)
    const { location, id } = await begin({ url: third.url, key: api.key }, bytes.length)
    const sending = sendPart(location, 0, bytes.subarray(0, MIB), bytes.length)
    await until('some bytes have arrived', async () => (await stat(join(dir, id))).size > 0)
    await third.running.end('SIGKILL')
    await sending.answered
    const asked = await head(at(first, location))
    const offset = Number(asked.headers.get('upload-offset'))
    assert.equal(asked.status, 200)
    assert.ok(offset > 0 && offset <= MIB, `${offset}`)
    const last = await patch(at(first, location), offset, bytes.subarray(offset), TUS)
    assert.equal(last.status, 204)
    await nothingIsLeft()
  })

  it('a killed web process leaves nothing once its interrupted uploads have expired', async () => {
    const own = { ...settings, BERTH_INTERVALS: 'reconcile=1' }
    const [survivor, killed] = await Promise.all([
      startWebProcess(context.env, own),
      startWebProcess(context.env, own),
    ])
    try {
      const hangUps = Array.from({ length: 20 }, (_, i) =>
        createPart(2 * MIB, bytesOf(`c ${i}`, MIB), killed.url),
      )
      const pieces = await Promise.all(
        Array.from({ length: 20 }, async (_, i) => {
          const { location } = await begin({ url: (i % 2 ? survivor : killed).url, key: api.key }, 2 * MIB)
          return sendPart(location, 0, bytesOf(`p ${i}`, MIB), 2 * MIB)
        }),
      )
      await until('all have sent some bytes', async () => (await files()).length === 40)
      for (const hangUp of hangUps.slice(10)) hangUp()
      for (const { hangUp } of pieces.slice(10)) hangUp()
      await killed.running.end('SIGKILL')
      for (const hangUp of hangUps) hangUp()
      for (const { hangUp } of pieces) hangUp()
      await context.sql('UPDATE upload SET expires_at = now() WHERE workspace_id = $1', [workspaceId])
      const left = async () => {
        const sizes = await Promise.all(
          (await files()).map(async (file) => (await stat(join(dir, file))).size),
        )
        const all = await context.sql('SELECT id FROM upload WHERE workspace_id = $1 AND cid IS NULL', [
          workspaceId,
        ])
        return { files: sizes.length, bytes: sizes.reduce((sum, size) => sum + size, 0), rows: all.length }
      }
      // Leases of the killed process expire first.
      await until('all of it is removed', async () => {
        const { files, bytes, rows } = await left().catch(() => ({ files: 1, bytes: 1, rows: 1 }))
        return files + bytes + rows === 0
      })
    } finally {
      await Promise.all([survivor, killed].map(({ running }) => running.end()))
    }
  })
})
