/**
 * Events: how much they slow down accepting pins, on the same web process with and without the trigger; and 1,000
 * events a second to 100 readers, compared with a server that forwards what NOTIFY brings.
 */
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { Worker } from 'node:worker_threads'
import { CID } from 'multiformats/cid'
import * as Digest from 'multiformats/hashes/digest'
import { createPool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { freePort, type Running, run, until } from '../support/processes.ts'
import { startPostgres, startRedis } from '../support/servers.ts'
import { startWeb, type Web } from './support/berth.ts'
import type { EventReaders } from './support/event-readers.program.ts'
import { load } from './support/load.ts'
import { median, quantile } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { compare } from './support/time.ts'

export const title = 'Events'

const ACCEPT_ROUNDS = 9
const REQUESTS = 3000
const CONCURRENCY = 32
const STREAM_ROUNDS = 3
const PER_SECOND = 1000
const SECONDS = 5
const READERS = 100
const GOAL_MS = 100
const program = (name: string) => fileURLToPath(new URL(`support/${name}.program.ts`, import.meta.url))

export async function bench(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
  stack.defer(() => postgres.stop())
  stack.defer(() => redis.stop())
  const web = await startWeb(postgres.url, stack, {
    REDIS_URL: redis.url,
    BERTH_DATABASE_POOL: '10',
  })
  const accepted = await accept(web)
  const streamed = await stream(web, postgres.url, stack)
  return [accepted, ...streamed]
}

let made = 0

/** Rounds of pins with the trigger and without, in turns. */
async function accept({ url, headers, pool }: Web): Promise<Result> {
  const target = {
    url,
    method: 'POST',
    path: () => '/v3/files/public/pin_by_cid',
    headers: { ...headers, 'content-type': 'application/json' },
    body: (n: number) => {
      const digest = createHash('sha256').update(String(made++)).digest()
      const cid = CID.createV1(0x55, Digest.create(0x12, digest)).toString()
      return { cid, name: `file ${n}`, keyvalues: { env: 'bench' } }
    },
  } as const
  const round = async (trigger: 'ENABLE' | 'DISABLE') => {
    for (const table of ['operation', 'file', 'event_pending', 'event']) await pool.query(`TRUNCATE ${table}`)
    await pool.query(`ALTER TABLE file ${trigger} TRIGGER file_event_created`)
    return (await load(target, REQUESTS, CONCURRENCY)).perSecond
  }
  const rounds: { berth: number; bare: number }[] = []
  for (let i = -1; i < ACCEPT_ROUNDS; i++) {
    // The order alternates, because each side leaves work to the server.
    const order = i % 2 === 0 ? (['ENABLE', 'DISABLE'] as const) : (['DISABLE', 'ENABLE'] as const)
    const rates = { ENABLE: 0, DISABLE: 0 }
    for (const trigger of order) rates[trigger] = await round(trigger)
    if (i >= 0) rounds.push({ berth: rates.ENABLE, bare: rates.DISABLE })
  }
  await pool.query('ALTER TABLE file ENABLE TRIGGER file_event_created')
  return {
    what: 'pins accepted, with and without events',
    berth: `${median(rounds.map(({ berth }) => berth)).toFixed(0)} /s`,
    bare: `${median(rounds.map(({ bare }) => bare)).toFixed(0)} /s`,
    ratio: median(rounds.map(({ berth, bare }) => berth / bare)),
    goal: { atLeast: 0.95 },
  }
}

async function stream(web: Web, databaseUrl: string, stack: AsyncDisposableStack): Promise<Result[]> {
  const writer = createPool(databaseUrl, 8, createLogger('bench', 'silent'))
  stack.defer(() => writer.end())
  const { rows } = await web.pool.query<{ id: string }>('SELECT id FROM workspace')
  const workspaceId = rows[0]?.id ?? ''
  const bare = await startBare(databaseUrl, stack)
  const data = { network: 'public', cid: 'b'.repeat(59), name: 'report.pdf', status: 'pinned', size: 48_213 }

  const ofBerth = {
    url: `${web.url}/v0/events?type=file.*`,
    headers: await newKeys(web, 4),
    write: (n: number, at: number) =>
      writer.query({
        name: 'note',
        text: `SELECT note_event('file.created', $1, 'file', $2, $3)`,
        values: [workspaceId, String(n), JSON.stringify({ ...data, at })],
      }),
    other: bare.running,
  }
  const ofBare = {
    url: bare.url,
    headers: [{}],
    write: (n: number, at: number) =>
      writer.query({
        name: 'notify',
        text: `SELECT pg_notify('bare_event', $1)`,
        values: [JSON.stringify({ id: n, type: 'file.created', data: { ...data, at } })],
      }),
    other: web.running,
  }
  const rounds: { berth: number[]; bare: number[] }[] = []
  for (let i = 0; i < STREAM_ROUNDS; i++)
    rounds.push({ berth: await follow(ofBerth), bare: await follow(ofBare) })
  const at = (q: number) =>
    rounds.map(({ berth, bare: other }) => ({ berth: quantile(berth, q), bare: quantile(other, q) }))
  const p95 = median(at(0.95).map(({ berth }) => berth))
  return [
    compare('from a change to each of 100 readers, median', at(0.5)),
    compare('from a change to each of 100 readers, 95th percentile', at(0.95)),
    {
      what: 'the same, against 100 ms',
      berth: `${p95.toFixed(1)} ms`,
      bare: `${GOAL_MS} ms`,
      ratio: p95 / GOAL_MS,
      goal: { atMost: 1 },
    },
  ]
}

/** The headers of several keys, because each key may have 32 streams. */
function newKeys({ url, headers }: Web, count: number): Promise<Record<string, string>[]> {
  const json = { ...headers, 'content-type': 'application/json' }
  const body = JSON.stringify({ keyName: 'reader', permissions: { resources: ['org:files:read'] } })
  return Promise.all(
    Array.from({ length: count }, async () => {
      const response = await fetch(`${url}/v3/pinata/keys`, { method: 'POST', headers: json, body })
      const { JWT } = (await response.json()) as { JWT: string }
      return { authorization: `Bearer ${JWT}` }
    }),
  )
}

interface Followed {
  url: string
  headers: Record<string, string>[]
  write(n: number, at: number): Promise<unknown>
  other: Running
}

/** The times of all events to all readers of one round, while the other server is paused. */
async function follow({ url, headers, write, other }: Followed): Promise<number[]> {
  other.process.kill('SIGSTOP')
  const workerData: EventReaders = { url, headers, count: READERS }
  const readers = new Worker(program('event-readers'), { workerData })
  try {
    await once(readers, 'message')
    await writeAll(write, 1) // the warm-up
    await taken(readers, PER_SECOND)
    await writeAll(write, SECONDS)
    return await taken(readers, PER_SECOND * SECONDS)
  } finally {
    await readers.terminate()
    other.process.kill('SIGCONT')
  }
}

/** Writes this many seconds of events, each at its time. */
async function writeAll(write: Followed['write'], seconds: number): Promise<void> {
  const began = performance.now()
  const writes: Promise<unknown>[] = []
  for (let n = 0; n < seconds * PER_SECOND; ) {
    const due = Math.min(((performance.now() - began) * PER_SECOND) / 1000, seconds * PER_SECOND)
    for (; n < due; n++) writes.push(write(n, performance.timeOrigin + performance.now()))
    await delay(1)
  }
  await Promise.all(writes)
}

/** The latencies of the readers, once all of them have received this many events. */
async function taken(readers: Worker, events: number): Promise<number[]> {
  const all: number[] = []
  await until(`all readers have had ${events} events`, async () => {
    readers.postMessage('take')
    const [latencies] = (await once(readers, 'message')) as [number[]]
    for (const latency of latencies) all.push(latency)
    return all.length >= events * READERS
  })
  return all
}

async function startBare(databaseUrl: string, stack: AsyncDisposableStack) {
  const port = await freePort()
  const running = run(process.execPath, [program('bare-events')], {
    env: { ...process.env, DATABASE_URL: databaseUrl, PORT: String(port) },
  })
  stack.defer(() => running.end())
  const url = `http://127.0.0.1:${port}`
  await until(`the bare server answers: ${running.output()}`, async () => {
    const response = await fetch(url)
    await response.body?.cancel()
    return response.ok
  })
  return { url, running }
}

if (import.meta.main) print(title, await bench())
