/**
 * Requirements of a Berth: memory of each role and part at rest and under load, of an agent, and disk for pins, agents
 * and the queue. There is nothing to compare them with; the figures are in docs/operations.md.
 */
import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import pg from 'pg'
import { uuidv7 } from 'uuidv7'
import { queryOne } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { createQueueBackend } from '../../src/operations/queue.ts'
import { startPostgres, startRedis } from '../support/servers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { startWeb } from './support/berth.ts'
import { load } from './support/load.ts'
import { median } from './support/numbers.ts'
import { findProcess, peaksDuring, proportionalBytes, sumOfTree } from './support/process-use.ts'
import { print, type Result } from './support/report.ts'
import { localBytes, measureAgent, megabytes } from './support/sizing-agent.ts'
import { ms } from './support/time.ts'

export const title = 'Sizes'

const UPLOADS = 2000
const UPLOAD_BYTES = 1024
const PIN_REQUESTS = 3000
const CLIENTS = 16
const PINS = 1_000_000
const PAGES = 25
const JOBS = 10_000
const BATCH = 500
/** A stack is at rest if nothing was asked of it for this long. */
const REST_MS = 20_000

/** A measurement that fails is reported, and the others continue. */
export async function bench(): Promise<Result[]> {
  const results: Result[] = []
  for (const measure of [
    () => measureStack('real'),
    () => measureStack('embedded'),
    measureDatabase,
    measureQueue,
    measureAgent,
  ]) {
    try {
      results.push(...(await measure()))
    } catch (error) {
      console.error(error)
      process.exitCode = 1
    }
  }
  return results
}

/** Connections of Berth, without the connection that counts them. */
const CONNECTIONS = `SELECT count(*) FROM pg_stat_activity WHERE datname = 'berth' AND pid <> pg_backend_pid()`

/** Memory at rest and its peak under load, and the disk that the store uses for small files. */
async function measureStack(kind: 'real' | 'embedded'): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind })
  ending.defer(() => stack.stop())
  const key = await stack.createKey()
  const pids = await processesOf(stack)
  const read = async () =>
    Object.fromEntries(
      await Promise.all(Object.entries(pids).map(async ([name, pid]) => [name, await bytesOf(name, pid)])),
    ) as Record<string, number>
  const client = stack.parts && new pg.Client(stack.parts.postgres.url)
  await client?.connect()
  ending.defer(async () => client?.end())
  const countConnections = async () => ({
    count: Number((await client?.query(CONNECTIONS))?.rows[0].count ?? 0),
  })
  await new Promise((resolve) => setTimeout(resolve, REST_MS))
  const rest = await read()

  const store = stack.parts?.kubo.repo ?? join(stack.dataDir, 'ipfs/public')
  const before = await localBytes(store)
  const work = burden(stack, key)
  const [peaks, connections] = await Promise.all([
    peaksDuring(read, work),
    peaksDuring(countConnections, work),
  ])
  const perFile = ((await localBytes(store)) - before) / UPLOADS
  const on = kind === 'real' ? 'Kubo' : 'the embedded node'
  return [
    ...Object.keys(pids).map((name) => ({
      what: `${name}, ${kind} parts: at rest, and its peak under load`,
      berth: `${megabytes(rest[name] ?? 0)}, ${megabytes(peaks[name] ?? 0)}`,
    })),
    {
      what: `store, ${on}: of a file of ${UPLOAD_BYTES} bytes (from ${UPLOADS} uploads)`,
      berth: `${Math.round(perFile)} bytes`,
    },
    ...(client
      ? [{ what: 'PostgreSQL connections of one web and one worker, at most', berth: `${connections.count}` }]
      : []),
  ]
}

async function processesOf(stack: Stack): Promise<Record<string, number>> {
  const pids: Record<string, number> = {}
  for (const role of ['web', 'worker', 'agent-proxy'] as const) pids[role] = await stack.pidOf(role)
  if (!stack.parts) return pids
  const { postgres, redis, kubo, privateKubo } = stack.parts
  pids.PostgreSQL = await findProcess('postgres', `-p\0${new URL(postgres.url).port}\0`)
  pids.Redis = await findProcess('redis-server', `:${new URL(redis.url).port}`)
  pids.Kubo = await findProcess('daemon', `IPFS_PATH=${kubo.repo}`)
  pids['private Kubo'] = await findProcess('daemon', `IPFS_PATH=${privateKubo.repo}`)
  return pids
}

/** A role is measured without the agents that it has started, PostgreSQL with all of its processes. */
const bytesOf = (name: string, pid: number) =>
  name === 'PostgreSQL' ? sumOfTree(pid, proportionalBytes) : proportionalBytes(pid)

/** Small uploads, then pin requests for content that is found at once, as fast as they are accepted. */
async function burden(stack: Stack, key: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` }
  let next = 0
  const client = async () => {
    while (next++ < UPLOADS) {
      const body = new FormData()
      body.set('network', 'public')
      body.set('file', new Blob([randomBytes(UPLOAD_BYTES)]), 'file')
      const response = await fetch(`${stack.url}/v3/files`, { method: 'POST', headers, body })
      const answer = await response.text()
      if (!response.ok) throw new Error(`${response.status} ${answer}`)
    }
  }
  await Promise.all(Array.from({ length: CLIENTS }, client))
  const pin = {
    url: stack.url,
    method: 'POST' as const,
    path: () => '/v3/files/public/pin_by_cid',
    headers: { ...headers, 'content-type': 'application/json' },
    body: (n: number) => ({ cid: 'bafkqaekimvwgy3zamzzg63jaijsxe5dibi', name: `pin ${n}` }),
  }
  await load(pin, PIN_REQUESTS, CLIENTS)
}

/** Rows as pins leave them, with tables and indexes, and how long a page takes then. */
async function measureDatabase(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const postgres = await startPostgres()
  ending.defer(() => postgres.stop())
  const { pool, url, headers } = await startWeb(postgres.url, ending)
  // Not through the pool: inserting so many rows exceeds the time limit of Berth's statements.
  const client = new pg.Client(postgres.url)
  await client.connect()
  for (const statement of FILL) await client.query(statement)
  await client.end()
  const size = await queryOne<{ files: number; operations: number }>(
    pool,
    `SELECT pg_total_relation_size('file')::float8 AS files, pg_total_relation_size('operation')::float8 AS operations`,
  )
  const page = { url, method: 'GET' as const, path: () => '/v3/files/public', headers }
  await load(page, PAGES, 1) // the warm-up
  const { latencies } = await load(page, PAGES, 1)
  const perPin = (bytes: number) => `${Math.round(bytes / PINS)} bytes a pin`
  return [
    {
      what: `PostgreSQL, rows and indexes of ${PINS.toLocaleString('en')} pins`,
      berth: perPin(size.files),
    },
    { what: 'and of the operations that made them', berth: perPin(size.operations) },
    { what: 'a page of their list', berth: ms(median(latencies)) },
  ]
}

const FILL = [
  `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes, size,
     number_of_files, mime_type, pinned_at)
   SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(i), 12, '0'))::uuid, workspace.id, 'public', 'pinned', cid, cid,
     'report ' || i || '.pdf', jsonb_build_object('env', 'prod'), '{}', 1000, 1, 'application/pdf', now()
   FROM workspace, generate_series(1, ${PINS}) i, LATERAL (SELECT 'bafkrei' || left(md5(i::text) || md5(i || 'b'), 52) AS cid) made`,
  `INSERT INTO operation (id, workspace_id, kind, queue, target_id, concurrency_key, state, attempts, next_attempt_at,
     started_at, finished_at)
   SELECT id, workspace_id, 'pin.add', 'pins', id, 'file:' || id, 'succeeded', 1, now(), now(), now() FROM file`,
  'VACUUM ANALYZE file',
  'VACUUM ANALYZE operation',
  'CHECKPOINT',
]

/** Jobs that wait in Redis; the dispatcher keeps their number low, however many operations wait. */
async function measureQueue(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const server = await startRedis()
  ending.defer(() => server.stop())
  const redis = new Redis(server.url)
  ending.defer(() => redis.disconnect())
  const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info('memory'))?.[1])
  const backend = createQueueBackend(
    { redisUrl: server.url, databaseUrl: '' },
    createLogger('bench', 'silent'),
  )
  ending.defer(() => backend.close())
  const queue = backend.queue('pins')
  await queue.add([{ id: uuidv7(), jobId: uuidv7(), priority: 1 }])
  const before = await used()
  for (let added = 0; added < JOBS; added += BATCH)
    await queue.add(Array.from({ length: BATCH }, () => ({ id: uuidv7(), jobId: uuidv7(), priority: 1 })))
  return [{ what: 'Redis, a job', berth: `${Math.round(((await used()) - before) / JOBS)} bytes` }]
}

if (import.meta.main) print(title, await bench())
