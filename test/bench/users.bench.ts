/**
 * Requests that users make all day: a page of files with their metadata, the state of an operation, a folder of small
 * files in one form, and pieces of a video. Compared with the same Kubo's RPC API, or a minimal Express server.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Dispatcher, Pool, request } from 'undici'
import { freePort, run, until } from '../support/processes.ts'
import { startPostgres } from '../support/servers.ts'
import { startStack } from '../support/stack.ts'
import { startWeb } from './support/berth.ts'
import { load, type Target } from './support/load.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { compare, time } from './support/time.ts'
import { createClient, fill } from './support/transfer.ts'

export const title = 'What users ask for all day'

const ROUNDS = 5
const CONNECTIONS = '10'
const PAGE = 100
const PAGE_REQUESTS = 500
const PAGE_CLIENTS = 16
const POLLS = 4000
const POLL_CLIENTS = 200
const FOLDER_FILES = 2000
const FOLDER_FILE_BYTES = 10_240
const VIDEO_BYTES = 100_000_000
const RANGES = 100
const RANGE_BYTES = 1_000_000
const RANGE_CLIENTS = 4
/** The embedded node is compared with a server that stores nothing, and with one that only sends a file. */
const GOALS = {
  real: { folder: { atMost: 1.5 }, ranges: { atMost: 1.5 } },
  embedded: { folder: { atMost: 5 }, ranges: { atMost: 3 } },
}
const BARE = fileURLToPath(new URL('support/bare-users.program.ts', import.meta.url))

export async function bench(): Promise<Result[]> {
  return [...(await benchReads()), ...(await benchContent('real')), ...(await benchContent('embedded'))]
}

async function benchReads(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const postgres = await startPostgres()
  ending.defer(() => postgres.stop())
  const web = await startWeb(postgres.url, ending, { BERTH_DATABASE_POOL: CONNECTIONS })
  const bare = await startBare(ending, { DATABASE_URL: postgres.url })
  await web.pool.query(FILES, [10 * PAGE])
  const { rows } = await web.pool.query<{ id: string }>(OPERATIONS, [POLL_CLIENTS])
  const id = (n: number) => rows[n % rows.length]?.id
  const { url, headers } = web
  return [
    await rates(
      `a page of ${PAGE} files with metadata`,
      { url, headers, method: 'GET', path: () => `/v3/files/public?limit=${PAGE}` },
      { url: bare, method: 'GET', path: () => `/files?limit=${PAGE}` },
      { requests: PAGE_REQUESTS, clients: PAGE_CLIENTS, goal: { atLeast: 0.8 } },
    ),
    await rates(
      `${POLL_CLIENTS} clients that poll operations`,
      { url, headers, method: 'GET', path: (n) => `/v0/operations/${id(n)}` },
      { url: bare, method: 'GET', path: (n) => `/operations/${id(n)}` },
      { requests: POLLS, clients: POLL_CLIENTS, goal: { atLeast: 0.6 } },
    ),
  ]
}

const FILES = `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes,
    size, number_of_files, mime_type, pinned_at)
  SELECT gen_random_uuid(), workspace.id, 'public', 'pinned', 'bafkrei' || i, 'bafkrei' || i, 'report ' || i || '.pdf',
    jsonb_build_object('env', 'prod', 'n', i::text, 'owner', 'somebody', 'project', 'a project', 'year', '2026'),
    '{}', 1000, 1, 'application/pdf', now()
  FROM workspace, generate_series(1, $1::int) i`
const OPERATIONS = `INSERT INTO operation (id, workspace_id, kind, queue, target_id, concurrency_key, state, attempts,
    next_attempt_at)
  SELECT file.id, workspace_id, 'pin.add', 'pins', file.id, 'file:' || file.id, 'queued', 1, now() + interval '1 day'
  FROM file LIMIT $1 RETURNING id`

async function rates(
  what: string,
  berth: Target,
  bare: Target,
  options: { requests: number; clients: number } & Pick<Result, 'goal'>,
): Promise<Result> {
  const { requests, clients, goal } = options
  const rounds: { berth: number; bare: number }[] = []
  for (let i = -1; i < ROUNDS; i++) {
    const round = {
      berth: (await load(berth, requests, clients)).perSecond,
      bare: (await load(bare, requests, clients)).perSecond,
    }
    if (i >= 0) rounds.push(round) // the first is the warm-up
  }
  const show = (of: 'berth' | 'bare') => `${median(rounds.map((round) => round[of])).toFixed(0)} /s`
  const ratio = median(rounds.map((round) => round.berth / round.bare))
  return { what, berth: show('berth'), bare: show('bare'), ratio, goal }
}

async function benchContent(kind: 'real' | 'embedded'): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind })
  ending.defer(() => stack.stop())
  const folder = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  ending.defer(() => rm(folder, { recursive: true, force: true }))
  const bare = await startBare(ending, { FOLDER: folder })
  const client = await createClient(stack)
  const { url, host } = client.gateway
  const headers = { authorization: `Bearer ${await stack.createKey()}` }
  const kubo = stack.parts?.kubo.apiUrl

  const folders: { berth: number; bare: number }[] = []
  for (let i = -1; i < ROUNDS; i++) {
    const round = {
      berth: await sendFolder(`${stack.url}/v3/files`, '/', headers),
      // As `ipfs add -r` sends it.
      bare: kubo
        ? await sendFolder(`${kubo}/api/v0/add?cid-version=1`, '%2F')
        : await sendFolder(`${bare}/folder`, '/'),
    }
    if (i >= 0) folders.push(round)
  }

  await fill(join(folder, 'video'), VIDEO_BYTES)
  const cid = await client.upload(join(folder, 'video'), 'public')
  const ranges: { berth: number; bare: number }[] = []
  for (let i = -1; i < ROUNDS; i++) {
    const offsets = Array.from({ length: RANGES }, () =>
      Math.floor(Math.random() * (VIDEO_BYTES - RANGE_BYTES)),
    )
    const round = {
      berth: await time(() => readRanges(url, `/ipfs/${cid}`, offsets, { host })),
      bare: await time(() => (kubo ? catRanges(kubo, cid, offsets) : readRanges(bare, '/video', offsets))),
    }
    if (i >= 0) ranges.push(round)
  }
  const goals = GOALS[kind]
  const on = kind === 'real' ? 'on Kubo' : 'embedded'
  return [
    compare(`a folder of ${FOLDER_FILES.toLocaleString('en')} files in one form, ${on}`, folders, {
      goal: goals.folder,
    }),
    compare(`${RANGES} ranges of a video, ${on}`, ranges, { goal: goals.ranges }),
  ]
}

/**
 * Sends new files in one folder, as one form.
 * @param slash how slashes are encoded in their names.
 * @returns ms.
 */
async function sendFolder(url: string, slash: string, headers?: Record<string, string>): Promise<number> {
  const form = new FormData()
  if (headers) form.set('network', 'public')
  for (let i = 0; i < FOLDER_FILES; i++) {
    form.append('file', new Blob([randomBytes(FOLDER_FILE_BYTES)]), `folder${slash}${i}`)
  }
  const encoded = new Response(form)
  const type = encoded.headers.get('content-type') ?? ''
  const body = Buffer.from(await encoded.arrayBuffer())
  return time(async () => {
    const answer = await request(url, { method: 'POST', headers: { ...headers, 'content-type': type }, body })
    const text = await answer.body.text()
    if (answer.statusCode !== 200) throw new Error(`${url}: ${answer.statusCode} ${text}`)
  })
}

const readRanges = (url: string, path: string, offsets: number[], headers?: Record<string, string>) =>
  readAll(url, offsets, (offset) => {
    const range = `bytes=${offset}-${offset + RANGE_BYTES - 1}`
    return { method: 'GET', path, headers: { ...headers, range } }
  })

const catRanges = (url: string, cid: string, offsets: number[]) =>
  readAll(url, offsets, (offset) => {
    const query = `arg=${cid}&offset=${offset}&length=${RANGE_BYTES}`
    return { method: 'POST', path: `/api/v0/cat?${query}` }
  })

/** Reads a piece from each offset, some at a time. @throws Error if a piece is incomplete. */
async function readAll(
  url: string,
  offsets: number[],
  requestFor: (offset: number) => Dispatcher.RequestOptions,
): Promise<void> {
  const pool = new Pool(url, { connections: RANGE_CLIENTS, pipelining: 1 })
  try {
    const read = async (offset: number) => {
      const { body } = await pool.request(requestFor(offset))
      const { byteLength } = await body.arrayBuffer()
      if (byteLength !== RANGE_BYTES) throw new Error(`${url} sent ${byteLength} bytes from ${offset} on`)
    }
    await Promise.all(offsets.map(read))
  } finally {
    await pool.destroy()
  }
}

/** The minimal server. @returns its origin. */
async function startBare(ending: AsyncDisposableStack, settings: NodeJS.ProcessEnv): Promise<string> {
  const port = await freePort()
  const running = run(process.execPath, [BARE], {
    env: { ...process.env, PORT: String(port), POOL: CONNECTIONS, ...settings },
  })
  ending.defer(() => running.end())
  const url = `http://127.0.0.1:${port}`
  await until('the bare server answers', async () => {
    if (running.process.exitCode !== null) throw new Error(running.output())
    return (await fetch(`${url}/none`)).status === 404
  })
  return url
}

if (import.meta.main) print(title, await bench())
