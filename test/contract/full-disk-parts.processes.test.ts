/**
 * Full disks of the external services: the error names the disk, nothing accepted is lost, and everything resumes once
 * there is room.
 */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import pg from 'pg'
import { assertError } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { mountSmallDisk, NO_MOUNT, type SmallDisk } from '../support/small-disk.ts'
import { stackKind, startStack } from '../support/stack.ts'
import { inlineCid, openContext } from './context.ts'
import { begin, patch, TUS } from './tus-client.ts'
import { file, type Part, send, upload } from './upload-form.ts'

const MIB = 2 ** 20
const isReal = stackKind === 'real'
const disks = isReal ? await Promise.all([320, 32, 64, 64].map(mountSmallDisk)) : []
const [ofPostgres, ofRedis, ofKubo, ofPrivateKubo] = disks as SmallDisk[]
const skip = !isReal ? 'needs BERTH_TEST_STACK=real' : disks.every(Boolean) ? false : NO_MOUNT
const READY_MS = 120_000

describe('a full disk', { skip }, async () => {
  if (!ofPostgres || !ofRedis || !ofKubo || !ofPrivateKubo) return
  const berth = await startStack({
    partDirs: {
      postgres: ofPostgres.dir,
      redis: ofRedis.dir,
      kubo: ofKubo.dir,
      privateKubo: ofPrivateKubo.dir,
    },
  })
  const { anonymous, isPinned, provider, workspace } = await openContext(berth)
  // After the hook of `openContext`, which stops this Berth.
  after(() => Promise.all(disks.map((disk) => disk?.unmount())))
  const { parts } = berth
  assert.ok(parts)
  const { api } = await workspace()
  const node = await provider()
  const someFile = (mebibytes: number) => file(randomBytes(mebibytes * MIB), 'a.bin')
  const readyz = async () => {
    const { status, body } = await anonymous.get('/readyz')
    return { status, ...body }
  }
  const isWell = () => until('everything is healthy', async () => (await readyz()).status === 'ok', READY_MS)
  const pin = () => api.pin({ cid: `${inlineCid(`full ${randomBytes(6).toString('hex')}`)}` })

  const NODES = [
    ['public', 'ipfs', 'IPFS_API_URL', ofKubo],
    ['private', 'ipfs_private', 'IPFS_PRIVATE_API_URL', ofPrivateKubo],
  ] as const
  for (const [network, part, setting, disk] of NODES)
    it(`a full disk of the ${network} Kubo returns 503 for new content, and stored content stays`, async () => {
      const full = `No space left: the disk of Kubo (${setting}) is full`
      await isWell()
      const kept = await upload(api, ['network', network], file('kept', 'kept.txt'))
      await disk.fillTo(MIB)
      const forms: Part[][] = [
        [['network', network], someFile(4)],
        // Kubo ends the call while most of the content is still being sent.
        [['network', network], someFile(40)],
        // Spooled until the field with the network arrives.
        [someFile(4), ['network', network]],
      ]
      for (const parts of forms) {
        const reply = await send(api, parts)
        assertError(reply, 503, full)
        assert.equal(reply.headers.get('error-code'), 'no_space')
        assert.ok(reply.headers.get('retry-after'))
      }
      const health = await until('the full disk is detected', async () => {
        const health = await readyz()
        return health.parts[part].detail === 'kubo: no space left on its disk' && health
      })
      assert.deepEqual([health.status, health.parts[part].status], ['degraded', 'down'])
      assert.ok(berth.output().includes(full))
      assert.ok(await isPinned(CID.parse(kept.cid), network))

      await disk.empty()
      await upload(api, ['network', network], someFile(4))
      await isWell()
    })

  it("pins by CID and resumable uploads wait while Kubo's disk is full, and resume later", async () => {
    const bytes = randomBytes(4 * MIB)
    const { location, id } = await begin(api, bytes.length, { network: 'public' })
    const cid = `${await node.file(randomBytes(4 * MIB))}`
    await ofKubo.fillTo(MIB)
    const reply = await patch(location, 0, bytes, TUS)
    assert.equal(reply.status, 503)
    assert.match(
      ((await reply.json()) as { error: string }).error,
      /the disk of Kubo \(IPFS_API_URL\) is full/,
    )
    const { record, operation } = await api.pin({ cid, host_nodes: [node.multiaddr] })
    await until('an attempt has hit the full disk', async () => {
      const { attempts, error_code } = (await api.get(`/v0/operations/${operation}`)).body.data
      return attempts > 0 && error_code === 'no_space'
    })

    await ofKubo.empty()
    assert.equal((await api.finished(operation)).state, 'succeeded')
    assert.equal((await api.get(`/v3/files/public/${record.id}`)).status, 200)
    assert.equal((await patch(location, bytes.length, Buffer.alloc(0), TUS)).status, 204)
    assert.equal((await api.get(`/v3/files/public/${id}`)).body.data.size, bytes.length)
    await isWell()
  })

  it('/readyz reports a full disk of Redis, and pins accepted then run once there is room', async () => {
    await ofRedis.fillTo(0)
    const accepted: string[] = []
    const health = await until('the full disk is detected', async () => {
      accepted.push((await pin()).operation)
      const health = await readyz()
      return health.parts.queue.detail === 'Redis: no space left on its disk' && health
    })
    assert.deepEqual([health.status, health.parts.queue.status], ['down', 'down'])
    accepted.push((await pin()).operation)
    assert.equal((await api.get('/v3/files/public')).status, 200)
    await until('the log reports it', () => /MISCONF[^\n]*No space left on device/.test(berth.output()))

    await ofRedis.empty()
    for (const operation of accepted) assert.equal((await api.finished(operation)).state, 'succeeded')
    await isWell()
  })

  const createGroup = () => api.post('/v3/groups/public', { name: 'g'.repeat(60) })

  it("while PostgreSQL's disk is full, writes return 503 and reads continue", async () => {
    await ofPostgres.fillTo(64 * 1024)
    const accepted: string[] = []
    let refused = await createGroup()
    for (; refused.status === 200; refused = await createGroup()) accepted.push(refused.body.data.id)
    assertError(refused, 503, 'No space left: the disk of PostgreSQL is full')
    assert.equal(refused.headers.get('error-code'), 'no_space')
    const { parts: seen } = await until('the full disk is detected', async () => {
      const health = await readyz()
      // An essential part that responds late would count as down.
      return health.status === 'degraded' && health.parts.database.detail && health
    })
    assert.deepEqual(seen.database, { status: 'degraded', detail: 'no space left on its disk' })
    assert.equal((await api.get('/v3/files/public')).status, 200)
    assert.match(berth.output(), /No space left: the disk of PostgreSQL is full/)

    await ofPostgres.empty()
    for (const id of accepted) assert.equal((await api.get(`/v3/groups/public/${id}`)).status, 200)
    assert.equal((await createGroup()).status, 200)
    assert.equal((await api.finished((await pin()).operation)).state, 'succeeded')
    await isWell()
  })

  it('a full disk that crashes PostgreSQL loses nothing that was accepted', async () => {
    const { operation } = await pin()
    const { id } = (await createGroup()).body.data
    await ofPostgres.fillTo(0)
    const session = new pg.Client({ connectionString: parts.postgres.url })
    session.on('error', () => {})
    await session.connect()
    const fillLog = async () => {
      for (;;) await session.query("SELECT pg_logical_emit_message(false, 'full', repeat('x', 4000000))")
    }
    // The session learns the reason only if it is the first that has to write.
    await assert.rejects(fillLog)
    await session.end().catch(() => {})
    await until('PostgreSQL has stopped', async () => (await readyz()).parts.database.status === 'down')
    assert.match(parts.postgres.output(), /PANIC: .*pg_wal.*No space left on device/)
    const refused = await createGroup()
    assertError(refused, 503, 'Database unreachable')

    await ofPostgres.empty()
    // The supervisor restarts it in the same way.
    await parts.postgres.kill()
    await parts.postgres.restart()
    await isWell()
    assert.equal((await api.get(`/v3/groups/public/${id}`)).status, 200)
    assert.equal((await api.finished(operation)).state, 'succeeded')
  })
})
