/**
 * The cost of the audit for requests that change something, compared with a web process without the audit. For pins,
 * the entry is part of the statement that accepts them; for groups, it is written before the change and completed after
 * it.
 */
import { createHash, randomBytes } from 'node:crypto'
import { fileURLToPath } from 'node:url'
import { CID } from 'multiformats/cid'
import * as Digest from 'multiformats/hashes/digest'
import { startPostgres, startRedis } from '../support/servers.ts'
import { startWeb, type Web } from './support/berth.ts'
import { load, type Target } from './support/load.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'

export const title = 'The audit'

const ROUNDS = 9
const REQUESTS = 3000
const CONCURRENCY = 32
const WITHOUT = fileURLToPath(new URL('support/without-audit.program.ts', import.meta.url))

export async function bench(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const [postgres, redis] = await Promise.all([startPostgres(), startRedis()])
  stack.defer(() => postgres.stop())
  stack.defer(() => redis.stop())
  const jwtKey = randomBytes(32).toString('hex')
  const settings = { JWT_KEY: jwtKey, REDIS_URL: redis.url, BERTH_DATABASE_POOL: '10' }
  const berth = await startWeb(postgres.url, stack, settings)
  const bare = await startWeb(postgres.url, stack, { ...settings, NODE_OPTIONS: `--import ${WITHOUT}` })
  let made = 0
  const pins: Request = {
    path: '/v3/files/public/pin_by_cid',
    body() {
      const digest = createHash('sha256').update(String(made++)).digest()
      return { cid: CID.createV1(0x55, Digest.create(0x12, digest)).toString(), name: 'a file' }
    },
  }
  const groups: Request = { path: '/v3/groups/public', body: () => ({ name: `group ${made++}` }) }
  return [
    await compare('pins accepted', pins, berth, bare),
    await compare('groups made', groups, berth, bare),
  ]
}

interface Request {
  path: string
  body(): unknown
}

async function compare(what: string, request: Request, berth: Web, bare: Web): Promise<Result> {
  /** A round on tables that are empty, except the audit's, while the other server is stopped. */
  const round = async (web: Web, other: Web) => {
    for (const table of ['operation', 'file', 'event_pending', 'event'])
      await web.pool.query(`TRUNCATE ${table}`)
    const target: Target = {
      url: web.url,
      method: 'POST',
      path: () => request.path,
      // The first of the two processes has created the key.
      headers: { ...berth.headers, 'content-type': 'application/json' },
      body: request.body,
    }
    other.running.process.kill('SIGSTOP')
    try {
      return (await load(target, REQUESTS, CONCURRENCY)).perSecond
    } finally {
      other.running.process.kill('SIGCONT')
    }
  }
  const rounds: { berth: number; bare: number }[] = []
  for (let i = -1; i < ROUNDS; i++) {
    // The order alternates, because each process leaves work to the server.
    const first = i % 2 === 0 ? await round(berth, bare) : undefined
    const without = await round(bare, berth)
    const measured = { berth: first ?? (await round(berth, bare)), bare: without }
    if (i >= 0) rounds.push(measured) // the first is the warm-up
  }
  return {
    what: `${what}, with and without the audit`,
    berth: `${median(rounds.map((one) => one.berth)).toFixed(0)} /s`,
    bare: `${median(rounds.map((one) => one.bare)).toFixed(0)} /s`,
    ratio: median(rounds.map((one) => one.berth / one.bare)),
  }
}

if (import.meta.main) print(title, await bench())
