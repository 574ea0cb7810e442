/**
 * Counts of gateway requests, in memory and in rows: bounded, from several processes, and during an outage of the
 * database.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { createPool } from '../../../src/db/pool.ts'
import { type Answered, forgetOldCounts, RequestCounts } from '../../../src/files/analytics/request-counts.ts'
import { useDatabase } from '../../support/database.ts'
import { freePort, until } from '../../support/processes.ts'

const database = await useDatabase()
const workspaceId = await database.createWorkspace()

const newCounts = (maxCounts?: number) => new RequestCounts(database.pool, database.log, maxCounts)

async function newGateway(): Promise<string> {
  const id = uuidv7()
  await database.pool.query('INSERT INTO gateway (id, workspace_id, domain) VALUES ($1, $2, $3)', [
    id,
    workspaceId,
    `g-${id}`,
  ])
  return id
}

const answer = (gatewayId: string, more: Partial<Answered> = {}): Answered => ({
  gatewayId,
  cid: 'bafyone',
  fileName: 'a.txt',
  userAgent: 'curl/8',
  referrer: undefined,
  status: 200,
  bytes: 100,
  ...more,
})

interface Row {
  cid: string
  file_name: string
  user_agent: string
  referrer: string
  status: number
  requests: number
  bytes: number
}

const rowsOf = async (gatewayId: string) =>
  (
    await database.pool.query<Row>(
      `SELECT cid, file_name, user_agent, referrer, status, requests::int, bytes::int FROM gateway_request_count
       WHERE gateway_id = $1 ORDER BY requests DESC, user_agent`,
      [gatewayId],
    )
  ).rows
const totalOf = async (gatewayId: string) =>
  (await rowsOf(gatewayId)).reduce((sum, { requests }) => sum + requests, 0)

describe('gateway requests', () => {
  it('gateway requests that are alike share one row, which grows with each write', async () => {
    const id = await newGateway()
    const counts = newCounts()
    for (let i = 0; i < 3; i++) counts.add(answer(id))
    counts.add(answer(id, { status: 304, bytes: 1 }))
    assert.equal(counts.size, 2)
    await counts.flush()
    assert.equal(counts.size, 0)
    counts.add(answer(id))
    await counts.flush()
    await counts.flush()
    const row = { cid: 'bafyone', file_name: 'a.txt', user_agent: 'curl/8', referrer: '' }
    assert.deepEqual(await rowsOf(id), [
      { ...row, status: 200, requests: 4, bytes: 400 },
      { ...row, status: 304, requests: 1, bytes: 1 },
    ])
  })

  it('gateway requests keep names, programs and pages cut to the size of their columns', async () => {
    const id = await newGateway()
    const counts = newCounts()
    counts.add(
      answer(id, {
        fileName: `${'x'.repeat(127)}🚢`,
        userAgent: 'ü'.repeat(5000),
        referrer: 'https://user:password@example.com:8443/path?query#hash',
      }),
    )
    for (const referrer of ['javascript:alert(1)', 'android-app://com.example', 'nonsense', 'https://'])
      counts.add(answer(id, { referrer }))
    await counts.flush()
    const [plain, cut] = await rowsOf(id)
    assert.deepEqual([plain?.referrer, plain?.requests], ['', 4])
    assert.equal(cut?.file_name, `${'x'.repeat(127)}\ufffd`)
    assert.equal(cut?.user_agent, 'ü'.repeat(160))
    assert.equal(cut?.referrer, 'https://example.com:8443')
  })

  it('gateway requests stay within their memory limit, and all are counted', async () => {
    const id = await newGateway()
    const counts = newCounts(10)
    for (let i = 0; i < 1000; i++) counts.add(answer(id, { userAgent: `robot ${i}` }))
    assert.equal(counts.size, 11)
    await counts.flush()
    const [other] = await rowsOf(id)
    assert.partialDeepStrictEqual(other, { cid: '(other)', user_agent: '(other)', requests: 990 })
    assert.equal(await totalOf(id), 1000)
  })

  it('gateway requests use at most 2,000 rows a day, and known ones stay separate beyond that', async () => {
    const id = await newGateway()
    const counts = newCounts()
    for (let round = 0; round < 3; round++) {
      for (let i = 0; i < 1500; i++) counts.add(answer(id, { userAgent: `robot ${round} ${i}` }))
      counts.add(answer(id, { userAgent: 'robot 0 0' }))
      await counts.flush()
    }
    const rows = await rowsOf(id)
    assert.equal(rows.length, 2001)
    assert.partialDeepStrictEqual(rows.slice(0, 2), [
      { user_agent: '(other)', requests: 2500 },
      { user_agent: 'robot 0 0', requests: 4 },
    ])
    assert.equal(await totalOf(id), 4503)
  })

  it('gateway requests of all processes are summed, even if they write at once', async () => {
    const id = await newGateway()
    const processes = Array.from({ length: 4 }, () => newCounts())
    for (let round = 0; round < 5; round++) {
      for (const counts of processes)
        for (let i = 0; i < 200; i++) counts.add(answer(id, { cid: `bafy${(i * 7) % 50}` }))
      await Promise.all(processes.map((counts) => counts.flush()))
    }
    const rows = await rowsOf(id)
    assert.deepEqual(new Set(rows.map(({ requests }) => requests)), new Set([80]))
    assert.equal(rows.length, 50)
  })

  it('requests of a deleted gateway are dropped, and those of other gateways are kept', async () => {
    const [gone, id] = [await newGateway(), await newGateway()]
    const counts = newCounts()
    for (const one of [gone, id]) counts.add(answer(one))
    await database.pool.query('DELETE FROM gateway WHERE id = $1', [gone])
    await counts.flush()
    assert.deepEqual([counts.size, await totalOf(gone), await totalOf(id)], [0, 0, 1])
  })

  it('gateway requests that no row can hold are dropped and do not block others', async () => {
    const id = await newGateway()
    const counts = newCounts()
    // NaN becomes null in JSON, which no row accepts.
    counts.add(answer(id, { bytes: Number.NaN }))
    await counts.flush()
    assert.equal(counts.size, 0)
    counts.add(answer(id))
    await counts.flush()
    assert.equal(await totalOf(id), 1)
  })

  it('gateway requests are still counted while a statement waits', async () => {
    const id = await newGateway()
    const counts = newCounts()
    const holder = await database.pool.connect()
    await holder.query('BEGIN')
    await holder.query('LOCK TABLE gateway_request_count IN ACCESS EXCLUSIVE MODE')
    counts.add(answer(id))
    const flushing = counts.flush()
    counts.add(answer(id))
    assert.equal(counts.size, 1)
    await holder.query('COMMIT')
    holder.release()
    await flushing
    assert.equal(await totalOf(id), 1)
    await counts.flush()
    assert.equal(await totalOf(id), 2)
  })

  it('gateway requests stay in memory during a database outage, within the same limit', async () => {
    const id = await newGateway()
    const wire = await startWire(new URL(database.url))
    const pool = createPool(wire.url, 1, database.log)
    try {
      const counts = new RequestCounts(pool, database.log, 10)
      counts.add(answer(id))
      await counts.flush()
      await wire.cut()
      for (let i = 0; i < 100; i++) counts.add(answer(id, { userAgent: `robot ${i % 50}` }))
      for (let i = 0; i < 3; i++) await counts.flush()
      assert.ok(counts.size <= 11, `${counts.size}`)
      assert.equal(await totalOf(id), 1)
      await wire.mend()
      await until('all is written', async () => {
        await counts.flush()
        return counts.size === 0
      })
      assert.equal(await totalOf(id), 101)
    } finally {
      await pool.end()
      await wire.cut()
    }
  })

  it('gateway requests are forgotten after their retention', async () => {
    const id = await newGateway()
    await database.pool.query(
      `INSERT INTO gateway_request_count
       SELECT $1, current_date - (n % 10), n::text, '', '', '', 200, 1, 1 FROM generate_series(0, 2999) n`,
      [id],
    )
    await forgetOldCounts(database.pool, 2, AbortSignal.timeout(60_000))
    assert.equal(await totalOf(id), 900)
  })
})

/** A connection to the database that can be cut. */
async function startWire({ hostname, port }: URL) {
  const sockets = new Set<Socket>()
  let server: Server | undefined
  const at = await freePort()
  async function mend() {
    server = createServer((socket) => {
      const other = connect(Number(port), hostname)
      for (const [one, its] of [
        [socket, other],
        [other, socket],
      ] as const) {
        sockets.add(one)
        one.on('error', () => {})
        one.once('close', () => its.destroy())
        one.pipe(its)
      }
    }).listen(at, '127.0.0.1')
    await once(server, 'listening')
  }
  await mend()
  const url = new URL(database.url)
  url.hostname = '127.0.0.1'
  url.port = `${at}`
  return {
    url: url.href,
    mend,
    async cut() {
      server?.close()
      for (const socket of sockets) socket.destroy()
    },
  }
}
