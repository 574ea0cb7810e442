/**
 * Costs of requests and periodic passes over 10,000, 100,000 and a million files, and as many operations. They are
 * given in milliseconds, and in the 8 KiB pages that PostgreSQL reads, which do not depend on other load on the
 * machine. `BERTH_TEST_SCALE=10000,10000000` sets other sizes: ten million need 15 GB and half an hour. With
 * `BERTH_TEST_SCALE_SERVER`, a PostgreSQL that has pg_stat_statements loaded, the filled databases are kept for the
 * next run. `BERTH_TEST_DOCS=write` writes the table into docs/scale.md.
 */
import { createHash } from 'node:crypto'
import { readFile, writeFile } from 'node:fs/promises'
import { CID } from 'multiformats/cid'
import * as Digest from 'multiformats/hashes/digest'
import pg from 'pg'
import { KeyService } from '../../src/accounts/keys.ts'
import { setRole } from '../../src/accounts/members.ts'
import { makeIndexes } from '../../src/db/late-indexes.ts'
import { migrate } from '../../src/db/migrate.ts'
import { createPool, type Pool, type Queryable, queryOne } from '../../src/db/pool.ts'
import { createPrisma } from '../../src/db/prisma.ts'
import {
  dispatchOperations,
  NO_WORKSPACE,
  readUnclaimed,
  readWaiting,
  releaseExpired,
} from '../../src/db/statements/dispatch.ts'
import { claimDueDomains } from '../../src/db/statements/domains.ts'
import { sumKeptContent, sumStoredContent } from '../../src/db/statements/files.ts'
import { claimOperation, endOperation } from '../../src/db/statements/operations.ts'
import { markBackfilled, readExpiredFiles } from '../../src/db/statements/pins.ts'
import { removeSignedUploads, removeUploads } from '../../src/db/statements/uploads.ts'
import {
  readComparedAgents,
  readRunningAgents,
  readUnknownAgents,
  readVersionsInUse,
} from '../../src/db/statements/worker-agents.ts'
import { forgetOldCounts } from '../../src/files/analytics/request-counts.ts'
import { STATEMENTS } from '../../src/health/database-metrics.ts'
import { createLogger } from '../../src/log.ts'
import { forgetOldOperations } from '../../src/operations/operation-store.ts'
import type { Storage } from '../../src/storage/port.ts'
import { reconcilePins } from '../../workers/reconcile/pins.ts'
import { startPostgres } from '../support/servers.ts'
import { startWeb } from './support/berth.ts'
import { load, type Target } from './support/load.ts'
import { quantile } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { dumpAll, endPasses, forgetDeletions, readDeletable } from './support/scale-ends.ts'
import { cidOf, fileId, fillLarge, GROUPS, LARGE_WORKSPACE, SMALL_WORKSPACE } from './support/scale-rows.ts'

export const title = 'Scale: cost by the number of files'

const SIZES = (process.env.BERTH_TEST_SCALE ?? '10000,100000,1000000').split(',').map(Number)
const JWT_KEY = 'a key of the benchmark, of no other use'
const WORKER = '01900000-00dd-7000-8000-000000000000'
const REQUESTS = 20
const PASSES = 5
const NO_FILE = '00000000-0000-0000-0000-000000000000'
const LONG_MS = 1000
/** Workspaces in one statement of the dispatcher. */
const TURNS = 1000
/** Slots of idle workers. */
const FREE = 100
/** Pins that the node lists at a time. */
const LISTED = 10_000
/** A tree over a thousand times the rows is one or two levels higher; one more page on top of few is not growth. */
const GOAL = { atMost: 4 }
/** Metrics that count rows, up to a limit. */
const GROWING = ['operations', 'agents']
const FEW = 20
const PAGE = 'docs/scale.md'
const [BEGIN, END] = ['<!-- The benchmark writes this table. -->\n', '<!-- End. -->']

interface Cost {
  ms: number
  pages: number
}
/** Costs by name, in order. Costs whose name begins with `*` grow, which docs/scale.md explains. */
type Costs = Map<string, Cost>

/** Paths of requests by the number of files. */
const PAGES: Record<string, (files: number) => string> = {
  'files, first page': () => '/v3/files/public',
  'files, middle page': (n) => `/v3/files/public?pageToken=${token(n / 2)}`,
  'files, the oldest first': () => '/v3/files/public?order=ASC',
  'files, one CID': (n) => `/v3/files/public?cid=${cidOf(n / 2 + 1)}`,
  'files, a rare key value': (n) => `/v3/files/public?keyvalues[n]=${n / 2 + 1}`,
  'files, a common key value': () => '/v3/files/public?keyvalues[env]=prod',
  'files, a group of about 100': () => `/v3/files/public?group=${GROUPS.small}`,
  'files, a group of a tenth of all': () => `/v3/files/public?group=${GROUPS.large}`,
  'files, in no group': () => '/v3/files/public?group=null',
  'files, a common type': () => '/v3/files/public?mimeType=application/pdf',
  'files, a type of one file': () => '/v3/files/public?mimeType=image/png',
  '* files, part of one name': (n) => `/v3/files/public?name=${n / 2 + 1}.pdf`,
  'files, part of many names': () => '/v3/files/public?name=podcast',
  'files, part of no name': () => '/v3/files/public?name=zebrafish',
  'files, two letters of no name': () => '/v3/files/public?name=qq',
  'pin queue, first page': () => '/v3/files/public/pin_by_cid',
  'pin queue, one status': () => '/v3/files/public/pin_by_cid?status=backfilled',
  'pin queue, a status that no pin has': () => '/v3/files/public/pin_by_cid?status=over_max_size',
  'pin queue, one CID': (n) => `/v3/files/public/pin_by_cid?cid=${cidOf(n / 2 + 1)}`,
  'Pinning Service API, one CID': (n) => `/psa/pins?cid=${cidOf(n / 2 + 1)}`,
  'Pinning Service API, one name': (n) => `/psa/pins?name=invoice%20report%20${n / 2 + 1}.pdf`,
  '* Pinning Service API, part of one name': (n) => `/psa/pins?name=${n / 2 + 1}.pdf&match=partial`,
  'operations, first page': () => '/v0/operations',
  'operations, failed': () => '/v0/operations?state=failed',
  'operations, running': () => '/v0/operations?state=running',
  'operations, waiting': () => '/v0/operations?state=queued',
  'operations, a kind that is rare': () => '/v0/operations?kind=pin.remove',
  'operations, of one file': (n) => `/v0/operations?target=${fileId(n - 1)}`,
  'agents, first page': () => '/v0/agents',
  'usage of the workspace': () => '/v3/usage',
}
const OF_SMALL: typeof PAGES = {
  'a small workspace: files, first page': () => '/v3/files/public',
  'a small workspace: files, part of a name': () => '/v3/files/public?name=podcast',
  'a small workspace: operations, first page': () => '/v0/operations',
  'a small workspace: usage': () => '/v3/usage',
}

export async function bench(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  let server = process.env.BERTH_TEST_SCALE_SERVER
  if (!server) {
    const own = await startPostgres(undefined, {
      shared_preload_libraries: 'pg_stat_statements',
      shared_buffers: '768MB',
    })
    stack.defer(() => own.stop())
    server = own.url
  }
  const measured = new Map<number, Costs>()
  for (const files of SIZES) {
    const url = await filled(server, files)
    console.log(`  ${files.toLocaleString('en')} files are there`)
    measured.set(files, new Map([...(await measureRequests(url, files)), ...(await measurePasses(url))]))
  }
  if (process.env.BERTH_TEST_DOCS === 'write') await writeTable(measured)
  const [least, most] = [measured.get(SIZES[0] ?? 0), measured.get(SIZES.at(-1) ?? 0)]
  return [...(most ?? [])].map(([what, cost]) => {
    const small = least?.get(what)
    const result = { what, berth: show(cost), bare: small ? show(small) : '' }
    const goal = what.startsWith('*') ? undefined : GOAL
    return small && !Number.isNaN(cost.pages)
      ? { ...result, ratio: (cost.pages + FEW) / (small.pages + FEW), goal }
      : result
  })
}

/** A database with this many files on the server; an existing one is kept. @returns its URL. */
async function filled(server: string, files: number): Promise<string> {
  const name = `scale_${files}`
  const url = Object.assign(new URL(server), { pathname: name }).href
  const admin = new pg.Client({ connectionString: server })
  await admin.connect()
  const { rowCount } = await admin.query('SELECT FROM pg_database WHERE datname = $1', [name])
  if (!rowCount) await admin.query(`CREATE DATABASE ${name}`)
  await admin.end()
  const pool = createPool(url, 1, createLogger('bench', 'silent'))
  try {
    await migrate(pool)
    await pool.query(
      `INSERT INTO workspace (id, name, plan) VALUES ($1, 'large', 'unlimited'), ($2, 'small', 'unlimited')
       ON CONFLICT DO NOTHING`,
      [LARGE_WORKSPACE, SMALL_WORKSPACE],
    )
    if (!rowCount) {
      const client = new pg.Client({ connectionString: url })
      await client.connect()
      await fillLarge(client, files)
      await client.end()
    }
    await pool.query('CREATE EXTENSION IF NOT EXISTS pg_stat_statements')
    await makeIndexes(pool, AbortSignal.timeout(3_600_000))
  } finally {
    await pool.end()
  }
  return url
}

/**
 * The median of `runs` times, and the pages of the statements that ran as often. Slow work runs once.
 * @param work runs something this many times, and returns the milliseconds that each took.
 */
async function measure(pool: Pool, most: number, work: (runs: number) => Promise<number[]>): Promise<Cost> {
  const [first = 0] = await work(1) // plans and caches
  const runs = first > LONG_MS ? 1 : most
  await pool.query('SELECT pg_stat_statements_reset()')
  const ms = quantile(await work(runs), 0.5)
  const { pages } = await queryOne<{ pages: number }>(
    pool,
    `SELECT coalesce(sum((shared_blks_hit + shared_blks_read) / calls), 0)::float8 AS pages FROM pg_stat_statements
     WHERE dbid = (SELECT oid FROM pg_database WHERE datname = current_database()) AND calls >= $1
       AND query NOT LIKE '%pg_stat_statements%'`,
    [runs],
  )
  return { ms, pages }
}

async function measureRequests(url: string, files: number): Promise<Costs> {
  await using stack = new AsyncDisposableStack()
  const web = await startWeb(url, stack, { JWT_KEY, BERTH_PINS: 'active=250' })
  const prisma = createPrisma(web.pool)
  const keys = new KeyService(prisma, new TextEncoder().encode(JWT_KEY))
  const headersOf = async (workspaceId: string) => {
    const { id: userId } = await setRole(prisma, { workspaceId, user: 'bench', role: 'owner' })
    const key = { workspaceId, userId, name: 'bench', scopes: ['admin'], expiresAt: null }
    return { authorization: `Bearer ${(await keys.create(key)).token}` }
  }
  const [large, small] = [await headersOf(LARGE_WORKSPACE), await headersOf(SMALL_WORKSPACE)]
  const send = (target: Omit<Target, 'url'>) => async (runs: number) =>
    (await load({ url: web.url, ...target }, runs, 1)).latencies

  const costs: Costs = new Map()
  for (const [paths, headers] of [
    [PAGES, large],
    [OF_SMALL, small],
  ] as const)
    for (const [what, path] of Object.entries(paths)) {
      const work = send({ method: 'GET', path: () => path(files), headers })
      costs.set(what, await measure(web.pool, REQUESTS, work))
    }
  const accept = send({
    method: 'POST',
    path: () => '/v3/files/public/pin_by_cid',
    headers: { ...large, 'content-type': 'application/json' },
    body: () => ({ cid: randomCid(), name: 'new', keyvalues: { env: 'bench' } }),
  })
  costs.set('accepting a pin', await measure(web.pool, REQUESTS, accept))
  const doomed = await readDeletable(web.pool, REQUESTS + 1)
  let next = 0
  const path = () => `/v3/files/public/${doomed[next++]}`
  const remove = send({ method: 'DELETE', path, headers: large })
  costs.set('deleting a file', await measure(web.pool, REQUESTS, remove))
  await forgetDeletions(web.pool, doomed)
  return costs
}

async function measurePasses(url: string): Promise<Costs> {
  const pool = createPool(url, 2, createLogger('bench', 'silent'))
  const { signal } = new AbortController()
  const { id } = await queryOne<{ id: string }>(
    pool,
    `SELECT id FROM operation WHERE queue = 'pins' AND state = 'queued' AND attempts = 0 AND next_attempt_at <= now()
     ORDER BY id LIMIT 1`,
  )
  const agents = await pool.query<{ id: string }>('SELECT agent_id AS id FROM agent')
  const volumes = agents.rows.map((agent) => agent.id)
  const passes: Record<string, () => Promise<unknown>> = {
    'dispatcher: leases that ran out': () => releaseExpired.run(pool),
    'dispatcher: jobs that were lost': () => readUnclaimed.run(pool, 'pins', 3000, 100),
    '* dispatcher: what is due': () =>
      undone(pool, async (db) => {
        const { rows } = await readWaiting.run(db, 'pins', NO_WORKSPACE, TURNS)
        await dispatchOperations.run(
          db,
          'pins',
          FREE,
          250,
          rows.map((row) => row.id),
        )
      }),
    'dispatcher: pins behind the limit': () => markBackfilled.run(pool, 250),
    'worker: claiming an operation, and its end': async () => {
      const { epoch = 0 } = (await claimOperation.first(pool, id, WORKER, 60_000)) ?? {}
      await endOperation.run(pool, id, epoch, 'queued', 0, 0, null, null, null, null)
    },
    'worker: files that expire': () => readExpiredFiles.run(pool, 500),
    'worker: sums of what is kept': async () => {
      await sumKeptContent.run(pool)
      await sumStoredContent.run(pool)
    },
    'worker: retention': async () => {
      await forgetOldOperations(pool, 30, signal)
      await forgetOldCounts(pool, 30, signal)
    },
    ...endPasses(pool, { id: fileId(1), cid: cidOf(1) }, (work) => undone(pool, work)),
    'worker: domains that are due': () => claimDueDomains.run(pool, 20),
    '* worker: agents against sandboxes': () => readComparedAgents.run(pool, []),
    '* worker: sandboxes and volumes against agents': () => readUnknownAgents.run(pool, volumes),
    '* worker: agents that run': () => readRunningAgents.run(pool, 12),
    'worker: engines in use': () => readVersionsInUse.run(pool),
    'web: uploads that expire': async () => {
      await removeSignedUploads.run(pool, 500)
      await removeUploads.run(pool, 500)
    },
  }
  for (const [name, { text, values }] of Object.entries(STATEMENTS))
    passes[`${GROWING.includes(name) ? '* ' : ''}metrics: ${name}`] = () =>
      pool.query({ name: `metrics-${name}`, text, values })
  const costs: Costs = new Map()
  try {
    for (const [what, pass] of Object.entries(passes)) {
      const cost = await measure(pool, PASSES, async (runs) => {
        const times = []
        for (let i = 0; i < runs; i++) times.push(await time(pass))
        return times
      })
      costs.set(what, cost)
    }
    const compare = () => reconcilePins(pool, nodeOf(pool), signal)
    costs.set('* worker: pins against files', { ms: await time(compare), pages: Number.NaN })
    costs.set('* a backup: all rows', { ms: await time(() => dumpAll(url)), pages: Number.NaN })
  } finally {
    await pool.end()
  }
  return costs
}

/** Runs `work` in a transaction that is rolled back. */
async function undone(pool: Pool, work: (db: Queryable) => Promise<unknown>): Promise<void> {
  const client = await pool.connect()
  try {
    await client.query('BEGIN')
    await work(client)
    await client.query('ROLLBACK')
  } finally {
    client.release()
  }
}

async function time(work: () => Promise<unknown>): Promise<number> {
  const start = performance.now()
  await work()
  return performance.now() - start
}

/** A node that has all the pins that it should have. */
function nodeOf(pool: Pool): Storage {
  async function* list() {
    let last = NO_FILE
    for (;;) {
      const { rows } = await pool.query<{ id: string; cid: string }>(
        `SELECT id, cid_v1 AS cid FROM file WHERE network = 'public' AND removed_at IS NULL AND id > $1
         AND status IN ('prechecking', 'backfilled', 'searching', 'retrieving', 'pinned') ORDER BY id LIMIT $2`,
        [last, LISTED],
      )
      for (const { cid } of rows) yield CID.parse(cid)
      const next = rows.at(-1)
      if (!next) return
      last = next.id
    }
  }
  return { network: 'public', list } as unknown as Storage
}

let made = 0
function randomCid(): string {
  const digest = createHash('sha256').update(`${process.pid} ${Date.now()} ${made++}`).digest()
  return CID.createV1(0x55, Digest.create(0x12, digest)).toString()
}

const token = (n: number) => Buffer.from(fileId(n)).toString('base64url')
const show = ({ ms, pages }: Cost) =>
  `${ms < 100 ? ms.toFixed(1) : Math.round(ms).toLocaleString('en')} ms${Number.isNaN(pages) ? '' : `, ${Math.round(pages).toLocaleString('en')} p.`}`

async function writeTable(measured: Map<number, Costs>): Promise<void> {
  const names = new Set([...measured.values()].flatMap((costs) => [...costs.keys()]))
  const row = (cells: string[]) => `| ${cells.join(' | ')} |\n`
  const table = [
    row(['files', ...SIZES.map((size) => size.toLocaleString('en'))]),
    row(['---', ...SIZES.map(() => '---:')]),
    ...[...names].map((name) =>
      row([
        name.replace(/^\* (.*)/, '*$1*'),
        ...SIZES.map((size) => {
          const cost = measured.get(size)?.get(name)
          return cost ? show(cost) : ''
        }),
      ]),
    ),
  ].join('')
  const page = await readFile(PAGE, 'utf8')
  const [from, to] = [page.indexOf(BEGIN) + BEGIN.length, page.indexOf(END)]
  await writeFile(PAGE, page.slice(0, from) + table + page.slice(to))
}

if (import.meta.main) print(title, await bench())
