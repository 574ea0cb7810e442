/**
 * A page of a list with 100,000 pins, compared with the same page with 1,000: two databases with a web process each.
 * Pages of one file or of the newest files must not get slower.
 */
import pg from 'pg'
import { makeIndexes } from '../../src/db/late-indexes.ts'
import type { Pool } from '../../src/db/pool.ts'
import { startPostgres } from '../support/servers.ts'
import { startWeb, type Web } from './support/berth.ts'
import { load } from './support/load.ts'
import { median, quantile } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Lists: 100,000 pins against 1,000'

const SMALL = 1000
const LARGE = 100_000
const ROUNDS = 11
const REQUESTS = 25
const GROUP = '01900000-0000-7000-8000-0000000000aa'
/** The CID of one pinned and one pending file; the CIDs of the others only have to differ. */
const SOUGHT = 'bafkreifzjut3te7nhyekklss27nh3k72ysco7y32koao5eei66wof36n5e'
const GOAL = { atMost: 1.5 }

/** Paths by the number of pins, because the middle page and the requested file depend on it. */
const PAGES: { what: string; goal?: typeof GOAL; path: (pins: number) => string }[] = [
  { what: 'files, first page', goal: GOAL, path: () => '/v3/files/public' },
  {
    what: 'files, page in the middle',
    goal: GOAL,
    path: (n) => `/v3/files/public?pageToken=${token(n / 2)}`,
  },
  { what: 'pin queue, first page', goal: GOAL, path: () => '/v3/files/public/pin_by_cid' },
  { what: 'pin queue, one status', path: () => '/v3/files/public/pin_by_cid?status=expired' },
  { what: 'pin queue, one CID', path: () => `/v3/files/public/pin_by_cid?cid=${SOUGHT}` },
  { what: 'files, one CID', path: () => `/v3/files/public?cid=${SOUGHT}` },
  { what: 'files, a rare key value', path: (n) => `/v3/files/public?keyvalues[n]=${n / 2}` },
  { what: 'files, a common key value', path: () => '/v3/files/public?keyvalues[env]=prod' },
  { what: 'files, part of one name', goal: GOAL, path: (n) => `/v3/files/public?name=report%20${n / 2}.pdf` },
  { what: 'files, a group of 100', path: () => `/v3/files/public?group=${GROUP}` },
  { what: 'operations, first page', path: () => '/v0/operations' },
]

export async function bench(): Promise<Result[]> {
  await using stack = new AsyncDisposableStack()
  const postgres = await startPostgres()
  stack.defer(() => postgres.stop())
  const [small, large] = [
    await startFilled(postgres.url, 'small', SMALL, stack),
    await startFilled(postgres.url, 'large', LARGE, stack),
  ]
  const latency = async ({ url, headers }: Web, path: string) => {
    const { latencies } = await load({ url, method: 'GET', path: () => path, headers }, REQUESTS, 1)
    return quantile(latencies, 0.5)
  }
  const results: Result[] = []
  for (const { what, path, goal } of PAGES) {
    const rounds: { small: number; large: number }[] = []
    for (let i = -1; i < ROUNDS; i++) {
      const round = {
        small: await latency(small, path(SMALL)),
        large: await latency(large, path(LARGE)),
      }
      if (i >= 0) rounds.push(round) // the first is the warm-up
    }
    const ms = (of: 'small' | 'large') => `${median(rounds.map((round) => round[of])).toFixed(2)} ms`
    const ratio = median(rounds.map((round) => round.large / round.small))
    results.push({ what, berth: ms('large'), bare: ms('small'), ratio, goal })
  }
  return results
}

/** A web process on a new database with `count` pinned files and as many that are not pinned. */
async function startFilled(
  serverUrl: string,
  name: string,
  count: number,
  stack: AsyncDisposableStack,
): Promise<Web> {
  const client = new pg.Client({ connectionString: serverUrl })
  await client.connect()
  await client.query(`CREATE DATABASE ${name}`)
  await client.end()
  const url = new URL(serverUrl)
  url.pathname = name
  const web = await startWeb(url.href, stack)
  await fill(web.pool, count)
  return web
}

async function fill(pool: Pool, count: number): Promise<void> {
  const { rows } = await pool.query<{ id: string }>('SELECT id FROM workspace')
  const workspace = rows[0]?.id
  await pool.query(
    `INSERT INTO file_group (id, workspace_id, network, name) VALUES ('${GROUP}', $1, 'public', 'g')`,
    [workspace],
  )
  await pool.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, group_id, host_nodes,
       size, number_of_files, mime_type, pinned_at)
     SELECT ${id('pinned', 'i')}, $1, 'public', 'pinned', 'bafkrei' || i, 'bafkrei' || i,
       'report ' || i || '.pdf', jsonb_build_object('env', 'prod', 'n', i::text),
       CASE WHEN i % ($2 / 100) = 0 THEN '${GROUP}'::uuid END, '{}', 1000, 1, 'application/pdf', now()
     FROM generate_series(1, $2::int) i`,
    [workspace, count],
  )
  await pool.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes)
     SELECT ${id('pending', 'i')}, $1, 'public',
       (ARRAY['searching', 'backfilled', 'expired', 'bad_host_node'])[1 + i % 4],
       'bafkrei' || i, 'bafkrei' || i, 'draft ' || i, '{}', '{}'
     FROM generate_series(1, $2::int) i`,
    [workspace, count],
  )
  for (const kind of ['pinned', 'pending'] as const) {
    await pool.query(`UPDATE file SET cid = $1, cid_v1 = $1 WHERE id = ${id(kind, '$2::int')}`, [
      SOUGHT,
      count / 2,
    ])
  }
  // The operations of the files. Operations of unfinished pins are due tomorrow, so that nothing runs.
  await pool.query(
    `INSERT INTO operation (id, workspace_id, kind, queue, target_id, concurrency_key, state, attempts,
       next_attempt_at, started_at, finished_at)
     SELECT id, workspace_id, 'pin.add', 'pins', id, 'file:' || id,
       CASE WHEN status = 'pinned' THEN 'succeeded' WHEN unfinished THEN 'queued' ELSE 'failed' END,
       1, now() + interval '1 day', now(), CASE WHEN NOT unfinished THEN now() END
     FROM (SELECT *, status IN ('searching', 'backfilled') AS unfinished FROM file) file`,
  )
  await makeIndexes(pool, AbortSignal.timeout(600_000))
  await pool.query('VACUUM ANALYZE')
}

type Kind = 'pinned' | 'pending'
const PREFIX: Record<Kind, string> = {
  pinned: '01900000-0000-7000-8000-',
  pending: '01900000-0001-7000-8000-',
}

/** Ids in the order of `n`, like UUIDv7 in the order of time. */
const id = (kind: Kind, n: string) => `('${PREFIX[kind]}' || lpad(to_hex(${n}), 12, '0'))::uuid`
const token = (n: number) =>
  Buffer.from(PREFIX.pinned + n.toString(16).padStart(12, '0')).toString('base64url')

if (import.meta.main) print(title, await bench())
