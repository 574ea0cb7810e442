/**
 * A disk below its reserve: new content returns 507, everything else continues, and waiting work resumes once there is
 * room.
 */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { stat } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, before, describe, it } from 'node:test'
import { promisify } from 'node:util'
import { assertError } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { mountSmallDisk, NO_MOUNT, type SmallDisk } from '../support/small-disk.ts'
import { readMetrics, stackKind, startStack } from '../support/stack.ts'
import { inlineCid, openContext } from './context.ts'
import { begin, create, head, patch, TUS } from './tus-client.ts'
import { file, type Part, send, upload } from './upload-form.ts'

const MIB = 2 ** 20
const DISK_MIB = 500
const RESERVE_MIB = 64
const FULL =
  /^No space left: the disk of [a-zA-Z ]+ \(BERTH_[A-Z_]+\) is down to its reserve \(BERTH_DISK_RESERVE_MB\)$/
/** The bytes that a folder occupies. */
const sizeOf = async (dir: string) =>
  Number.parseInt((await promisify(execFile)('du', ['--summarize', '--block-size=1', dir])).stdout, 10)

const isReal = stackKind === 'real'
const disk = isReal ? undefined : await mountSmallDisk(DISK_MIB)
const skip = isReal ? 'Kubo has its own disk' : disk ? false : NO_MOUNT

describe('a disk below its reserve', { skip }, async () => {
  if (!disk) return
  const berth = await startStack({
    dir: disk.dir,
    env: { BERTH_DISK_RESERVE_MB: `${RESERVE_MIB}`, BERTH_INTERVALS: 'gc=1,gcGrace=1' },
  })
  const { anonymous, env, provider, workspace } = await openContext(berth)
  // After the hook of `openContext`, which stops this Berth.
  after(() => disk.unmount())
  const { api } = await workspace()
  const node = await provider()
  const readyz = async () => (await anonymous.get('/readyz')).body
  const figure = async (role: 'web' | 'worker', name: string) => {
    const text = await (await readMetrics(env, role)).text()
    return Number(text.match(new RegExp(`^${name} (\\S+)$`, 'm'))?.[1])
  }
  const someFile = (mebibytes = 1) => file(randomBytes(mebibytes * MIB), 'a.bin')
  const isFull = async (status: string) => {
    const { parts } = await readyz()
    return parts.disk.status === status && parts
  }
  const fill = async ({ fillTo }: SmallDisk) => {
    await fillTo((RESERVE_MIB * MIB) / 2)
    await until('web and worker detect it', async () => {
      const parts = await isFull('down')
      return parts && /disk/.test(parts.workers.detail ?? '') && parts
    })
  }

  let kept: { id: string; cid: string }
  let deleted: { id: string }
  let begun: string
  let signed: URL
  before(async () => {
    kept = await upload(api, ['network', 'public'], file('kept', 'kept.txt'))
    deleted = await upload(api, ['network', 'public'], someFile(20))
    begun = (await create(api, 2 * MIB, { filename: 'tus.bin' })).headers.get('location') ?? ''
    const { body } = await api.post('/v3/files/sign', { date: Math.floor(Date.now() / 1000), expires: 3600 })
    signed = new URL(body.data)
    await fill(disk)
  })

  const forms: [string, string, Part[]][] = [
    ['that is spooled', '/v3/files', [someFile()]],
    ['that goes straight to the node', '/v3/files', [['network', 'public'], someFile()]],
    ['of the older API', '/pinning/pinFileToIPFS', [someFile()]],
  ]
  for (const [what, path, parts] of forms)
    it(`a disk below its reserve refuses an upload ${what}`, async () => {
      const reply = await send(api, parts, path)
      assertError(reply, 507, FULL)
      assert.equal(reply.headers.get('error-code'), 'no_space')
      assert.ok(reply.headers.get('retry-after'))
    })
  it('a disk below its reserve refuses an upload by a signed URL', async () => {
    assertError(await send(anonymous, [someFile()], `${signed.pathname}${signed.search}`), 507, FULL)
  })
  it('a disk below its reserve refuses new resumable uploads, and more bytes for existing ones', async () => {
    assert.equal((await create(api, MIB)).status, 507)
    const reply = await patch(begun, 0, Buffer.from(randomBytes(MIB)), TUS)
    assert.equal(reply.status, 507)
    assert.match(((await reply.json()) as { error: string }).error, FULL)
  })
  it('a disk that falls below its reserve stops a resumable upload with 507 until there is room', async () => {
    await disk.fillTo((RESERVE_MIB + 30) * MIB)
    await until('there is a little room', async () => !(await isFull('down')))
    const bytes = randomBytes(8 * MIB)
    // Uploads check the disk themselves, at most a second later.
    const { location } = await until('an upload is created', () => begin(api, bytes.length))
    const target = new URL(location)
    const sending = request(target, {
      method: 'PATCH',
      headers: { ...TUS, 'content-type': 'application/offset+octet-stream', 'upload-offset': '0' },
    })
    const answered = once(sending, 'response') as Promise<[IncomingMessage]>
    sending.write(bytes.subarray(0, MIB))
    // HEAD would interrupt the upload.
    await until('bytes have arrived', async () => {
      const [id = ''] = location.split('/').slice(-2)
      return (await stat(join(berth.dataDir, 'uploads', id)).catch(() => undefined))?.size === MIB
    })
    await fill(disk)
    sending.write(bytes.subarray(MIB, 2 * MIB))
    const [answer] = await answered
    assert.equal(answer.statusCode, 507)
    assert.match(await text(answer), /No space left/)
    sending.destroy()
    assert.equal((await head(location)).headers.get('upload-offset'), `${MIB}`)
    await disk.fillTo((RESERVE_MIB + 30) * MIB)
    await until('there is a little room', async () => !(await isFull('down')))
    await until(
      'the upload resumes',
      async () => (await patch(location, MIB, bytes.subarray(MIB), TUS)).status === 204,
    )
    await fill(disk)
  })
  it('a disk below its reserve refuses pins by CID', async () => {
    const cid = `${inlineCid('a pin on a full disk')}`
    assertError(await api.post('/v3/files/public/pin_by_cid', { cid }), 507, FULL)
    const psa = await api.post('/psa/pins', { cid })
    assertError(psa, 507, FULL)
    assert.equal(psa.body.error.reason, 'NO_SPACE')
  })
  it('/readyz, which stays 200, and metrics report a disk below its reserve', async () => {
    const says = /^data: [\d.]+ MiB free of 500 MiB, below the reserve of 64.0 MiB: nothing new is taken$/
    // If a check takes two seconds on a busy machine, the detail differs.
    await until('/readyz reports it', async () => {
      const { status, body } = await anonymous.get('/readyz')
      return status === 200 && says.test(body.parts.disk.detail)
    })
    for (const role of ['web', 'worker'] as const)
      for (const folder of ['data', 'blocks', 'database']) {
        assert.equal(await figure(role, `berth_disk_refusing{folder="${folder}"}`), 1, `${role} ${folder}`)
        assert.equal(await figure(role, `berth_disk_reserve_bytes{folder="${folder}"}`), RESERVE_MIB * MIB)
        assert.ok((await figure(role, `berth_disk_free_bytes{folder="${folder}"}`)) < RESERVE_MIB * MIB)
      }
  })
  it('a disk below its reserve still allows serving, deleting and collecting garbage', async () => {
    assert.equal((await api.get(`/v3/files/public/${kept.id}`)).status, 200)
    // PostgreSQL's files are on the same disk, and may grow at the same time.
    const blocks = join(berth.dataDir, 'ipfs', 'public')
    const before = await sizeOf(blocks)
    assert.equal((await api.delete(`/v3/files/public/${deleted.id}`)).status, 200)
    await until(
      'the bytes of the deleted file are free',
      async () => (await sizeOf(blocks)) < before - 15 * MIB,
    )
  })
  it('a retrieval that has hit the reserve waits, with the reason, until there is room', async () => {
    await disk.fillTo((RESERVE_MIB + 20) * MIB)
    await until('there is a little room', async () => !(await isFull('down')))
    const cid = `${await node.file(randomBytes(60 * MIB))}`
    const { record, operation } = await api.pin({ cid, host_nodes: [node.multiaddr] })
    await until('an attempt has hit the full disk', async () => {
      const { attempts, error_code } = (await api.get(`/v0/operations/${operation}`)).body.data
      return attempts > 0 && error_code === 'no_space'
    })
    assert.ok((await disk.free()) > (RESERVE_MIB / 2) * MIB)
    await disk.empty()
    assert.equal((await api.finished(operation)).state, 'succeeded')
    assert.equal((await api.get(`/v3/files/public/${record.id}`)).body.data.size, 60 * MIB)
  })
  it('everything is accepted again once the disk has room', async () => {
    await until('there is room', async () => !(await isFull('down')))
    for (const [, path, parts] of forms) assert.equal((await send(api, parts, path)).status, 200)
    const reply = await patch(begun, 0, Buffer.from(randomBytes(2 * MIB)), TUS)
    assert.equal(reply.status, 204)
  })
})
