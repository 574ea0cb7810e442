/**
 * The accept path of `POST /v3/files/public/pin_by_cid` compared with a bare Express handler, both on the same
 * PostgreSQL and Redis. No worker runs: Berth dispatches only as much as its workers have room for, so in a burst of
 * requests nearly all of them wait in PostgreSQL, and only the dispatcher's passes remain.
 */
import { createHash } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { Redis } from 'ioredis'
import { CID } from 'multiformats/cid'
import * as Digest from 'multiformats/hashes/digest'
import { freePort, type Running, run, until } from '../support/processes.ts'
import { startPostgres, startRedis } from '../support/servers.ts'
import { startWeb } from './support/berth.ts'
import { type Load, load, type Target } from './support/load.ts'
import { median, quantile } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Accepting a pin'

const ROUNDS = 7
const REQUESTS = 3000
const CONCURRENCY = 32
const CONNECTIONS = '10'
const BARE = fileURLToPath(new URL('support/bare-accept.ts', import.meta.url))

export async function bench(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
  stack.defer(() => postgres.stop())
  stack.defer(() => redis.stop())
  const admin = new Redis(redis.url)
  stack.defer(() => admin.disconnect())

  const web = await startWeb(postgres.url, stack, {
    REDIS_URL: redis.url,
    BERTH_DATABASE_POOL: CONNECTIONS,
  })
  const bare = await startBare(postgres.url, redis.url, stack)
  const berthTarget: Target = {
    url: web.url,
    method: 'POST',
    path: () => '/v3/files/public/pin_by_cid',
    headers: { ...web.headers, 'content-type': 'application/json' },
    body: pinRequest,
  }
  const bareTarget: Target = {
    url: bare.url,
    method: 'POST',
    path: () => '/pin',
    headers: { 'content-type': 'application/json' },
    body: pinRequest,
  }

  /** Measures one round on empty tables and an empty queue, while the other server is paused. */
  const round = async (target: Target, count: number, other: Running) => {
    await admin.flushall()
    // The tables are emptied one by one: a lock on all of them would deadlock with a pass of the dispatcher.
    for (const table of ['operation', 'file', 'bare_pin']) await web.pool.query(`TRUNCATE ${table}`)
    other.process.kill('SIGSTOP')
    try {
      return await load(target, count, CONCURRENCY)
    } finally {
      other.process.kill('SIGCONT')
    }
  }

  const rounds: { berth: Load; bare: Load }[] = []
  for (let i = -1; i < ROUNDS; i++) {
    const measured = {
      berth: await round(berthTarget, REQUESTS, bare.running),
      bare: await round(bareTarget, REQUESTS, web.running),
    }
    if (i >= 0) rounds.push(measured) // the first is the warm-up
  }
  return results(rounds)
}

async function startBare(databaseUrl: string, redisUrl: string, stack: AsyncDisposableStack) {
  const port = await freePort()
  const running = run(process.execPath, [BARE], {
    env: {
      ...process.env,
      DATABASE_URL: databaseUrl,
      REDIS_URL: redisUrl,
      PORT: String(port),
      POOL: CONNECTIONS,
    },
  })
  stack.defer(() => running.end())
  const url = `http://127.0.0.1:${port}`
  await until(`the bare server answers: ${running.output()}`, async () => (await fetch(url)).status === 404)
  return { url, running }
}

let made = 0

/** A request as clients send it, with a new CID each time. */
function pinRequest(n: number) {
  const digest = createHash('sha256').update(String(made++)).digest()
  return {
    cid: CID.createV1(0x55, Digest.create(0x12, digest)).toString(),
    name: `file ${n}`,
    keyvalues: { env: 'bench', n: String(n) },
  }
}

function results(rounds: { berth: Load; bare: Load }[]): Result[] {
  const rate = (load: Load) => load.perSecond
  const milliseconds = (q: number) => (load: Load) => quantile(load.latencies, q)
  const compare = (of: (load: Load) => number) => ({
    berth: median(rounds.map(({ berth }) => of(berth))),
    bare: median(rounds.map(({ bare }) => of(bare))),
    ratio: median(rounds.map(({ berth, bare }) => of(berth) / of(bare))),
  })
  const show = (what: string, unit: string, of: (load: Load) => number): Result => {
    const { berth, bare, ratio } = compare(of)
    return { what, berth: `${berth.toFixed(1)} ${unit}`, bare: `${bare.toFixed(1)} ${unit}`, ratio }
  }
  return [
    { ...show('requests per second', '/s', rate), goal: { atLeast: 0.7 } },
    show('median latency', 'ms', milliseconds(0.5)),
    show('99th percentile', 'ms', milliseconds(0.99)),
  ]
}

if (import.meta.main) print(title, await bench())
