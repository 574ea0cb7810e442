/** Resumable uploads whose process is killed, and two web processes that serve the same upload. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { readdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { begin, bytesOf, head, patch, sendPart, TUS } from '../contract/tus-client.ts'
import { startWebProcess, type WebProcess } from '../contract/web-process.ts'
import { until } from '../support/processes.ts'
import { type Stack, startStack } from '../support/stack.ts'

const MIB = 1_048_576
const POINTS: CrashPoint[] = ['after-add', 'after-keep']

describe('a resumable upload', () => {
  let stack: Stack
  let key: string
  let caller: { url: string; key: string }
  before(async () => {
    stack = await startStack()
    key = await stack.createKey()
    caller = { url: stack.url, key }
  })
  after(() => stack?.stop())

  /** Starts another web process, which is killed when it reaches this point. */
  const startDoomed = async (point: CrashPoint) => {
    const mark = join(stack.dataDir, `${randomUUID()}.mark`)
    const { url, running } = await startWebProcess(stack.env, { BERTH_CRASH_AT: `${point}@${mark}` })
    return { caller: { url, key }, ended: () => running.end(), isKilled: () => existsSync(mark) }
  }
  /** The URL of the same upload at another process. */
  const at = (url: string, location: string) => `${url}${new URL(location).pathname}`
  const get = async (path: string) => {
    const response = await fetch(`${stack.url}${path}`, { headers: { authorization: `Bearer ${key}` } })
    return (await response.json()) as { data: { id: string; cid: string; files: { id: string }[] } }
  }
  /** The CID that the same bytes get as a form: the combined file must be what was sent. */
  const cidOf = async (bytes: Uint8Array<ArrayBuffer>) => {
    const form = new FormData()
    form.set('file', new Blob([bytes]), 'file')
    const headers = { authorization: `Bearer ${key}` }
    const response = await fetch(`${stack.url}/v3/files`, { method: 'POST', headers, body: form })
    return ((await response.json()) as { data: { cid: string } }).data.cid
  }
  const offsetOf = async (location: string) => {
    const { status, headers } = await head(location)
    return status === 200 && Number(headers.get('upload-offset'))
  }
  const assertWhole = async (id: string, bytes: Uint8Array<ArrayBuffer>, cid: string | null) => {
    const { data } = await get(`/v3/files/private/${id}`)
    assert.deepEqual([data.id, data.cid], [id, cid])
    assert.equal((await get(`/v3/files/private?cid=${cid}`)).data.files.length, 1)
    assert.equal(await cidOf(bytes), cid)
    assert.deepEqual(await readdir(join(stack.dataDir, 'uploads')), [], 'its bytes are kept once')
  }

  for (const point of POINTS) {
    it(`a resumable upload whose process is killed ${point} completes when its last piece is repeated`, async () => {
      const doomed = await startDoomed(point)
      const bytes = bytesOf(point, 2 * MIB)
      const { location, id } = await begin(doomed.caller, bytes.length)
      assert.equal((await patch(location, 0, bytes.subarray(0, MIB))).status, 204)
      await assert.rejects(patch(location, MIB, bytes.subarray(MIB)))
      await doomed.ended()
      assert.ok(doomed.isKilled())
      const answer = await until('the repeated piece is answered', async () => {
        const repeated = await patch(at(stack.url, location), MIB, bytes.subarray(MIB))
        return repeated.status === 204 && repeated
      })
      await assertWhole(id, bytes, answer.headers.get('upload-cid'))
    })
  }

  it('a resumable upload killed during its import completes when a client asks for its offset', async () => {
    const doomed = await startDoomed('after-add')
    const bytes = bytesOf('asked', MIB)
    const { location, id } = await begin(doomed.caller, bytes.length)
    await assert.rejects(patch(location, 0, bytes, TUS))
    await doomed.ended()
    const cid = await until('the upload has ended', async () => {
      const { status, headers } = await head(at(stack.url, location))
      return status === 200 && headers.get('upload-cid')
    })
    await assertWhole(id, bytes, cid)
  })

  it('a resumable upload resumes from what had arrived when all of Berth was killed', async () => {
    const bytes = bytesOf('killed', 4 * MIB)
    const { location, id } = await begin(caller, bytes.length)
    assert.equal((await patch(location, 0, bytes.subarray(0, MIB), TUS)).status, 204)
    const sending = sendPart(location, MIB, bytes.subarray(MIB, 3 * MIB), 3 * MIB)
    const spooled = join(stack.dataDir, 'uploads', id)
    await until('some of the next piece has arrived', async () => (await stat(spooled)).size > MIB)
    await stack.kill()
    await sending.answered
    await stack.restart()
    const offset = await until('it reports its offset', () => offsetOf(location))
    assert.ok(offset > MIB && offset <= 3 * MIB, `${offset}`)
    const last = await patch(location, offset, bytes.subarray(offset), TUS)
    await assertWhole(id, bytes, last.headers.get('upload-cid'))
  })

  describe('a resumable upload on two web processes', () => {
    let second: WebProcess
    before(async () => {
      second = await startWebProcess(stack.env)
    })
    after(() => second?.running.end())
    const there = (location: string) => at(second.url, location)

    it('a resumable upload on two web processes is taken over from a request that hangs', async () => {
      const bytes = bytesOf('two processes', 3 * MIB)
      const { location, id } = await begin(caller, bytes.length)
      const hanging = sendPart(location, 0, bytes.subarray(0, MIB), bytes.length)
      const offset = await until(
        'some of it has arrived',
        async () => (await offsetOf(there(location))) || undefined,
      )
      await hanging.answered
      const last = await patch(there(location), offset, bytes.subarray(offset), TUS)
      assert.equal(last.status, 204, await last.text())
      await assertWhole(id, bytes, last.headers.get('upload-cid'))
    })

    it('a resumable upload on two web processes becomes one file if both finish it', async () => {
      const bytes = bytesOf('both', 2 * MIB)
      const { location, id } = await begin(caller, bytes.length)
      const ends = await Promise.all([
        patch(location, 0, bytes),
        ...[location, there(location), location, there(location)].map((each) =>
          until('it has ended', async () => {
            const { status, headers } = await head(each)
            return status === 200 && headers.has('upload-cid') && { headers }
          }),
        ),
      ])
      const cids = new Set(ends.slice(1).map(({ headers }) => headers.get('upload-cid')))
      assert.equal(cids.size, 1)
      await assertWhole(id, bytes, [...cids][0] ?? null)
    })
  })
})
