/**
 * Attackers of a Berth and a tenant of it: the 95th percentile of the tenant's requests during each attack, compared
 * with the same requests a moment before. The attackers are other clients and another workspace, and their attacks are
 * cheap.
 */
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import pg from 'pg'
import { request } from 'undici'
import { startPostgres } from '../support/servers.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { quantile } from './support/numbers.ts'
import { proportionalBytes } from './support/process-use.ts'
import { print, type Result } from './support/report.ts'

export const title = 'A tenant during attacks'

const GOAL = { atMost: 3 }
const MS = 8000
/** Time from the beginning of an attack until the tenant is measured. */
const HEAD_START_MS = 2000
const FILES = 20_000
const LARGE = 64 * 1024 * 1024

interface World {
  url: string
  tenant: Workspace
  attackers: [Workspace, Workspace]
  /** CIDs of the attackers' public files. */
  small: string
  large: string
}
/** A workspace's key, and the host of its gateway. */
interface Workspace {
  headers: Record<string, string>
  host: string
  id: string
}

interface Attack {
  what: string
  /** A request of the tenant; null if it was refused. */
  asks(world: World): Promise<unknown>
  /** Runs until it is stopped. */
  run(world: World, until: AbortSignal): Promise<unknown>
}

const ATTACKS: Attack[] = [
  {
    what: 'a Range of 15,500 spaces, 4 connections',
    asks: listFiles,
    run: (world, until) =>
      repeat(4, until, () => {
        const range = `bytes=0-${' '.repeat(15_500)}x`
        return ask(world, `/ipfs/${world.small}`, { headers: { host: world.attackers[0].host, range } })
      }),
  },
  {
    what: 'a query of 7,400 times ?%, 30 a second',
    asks: listFiles,
    run: (world, until) => repeat(3, until, () => ask(world, `/nothing?${'?%'.repeat(7400)}`), 100),
  },
  {
    what: `a part of ${FILES.toLocaleString('en')} long names, 33 at a time, on the free plan`,
    asks: listFiles,
    run: ({ url, attackers: [{ headers }] }, until) =>
      repeat(33, until, () => ask({ url }, `/v3/files/public?name=${'.'.repeat(127)}!`, { headers }), 200),
  },
  {
    what: 'bodies without a key that never end, 4 addresses × 64',
    asks: ({ url }) =>
      ask({ url }, '/v0/login', { method: 'POST', body: '{"token": "none"}', from: 'tenant' }),
    run: ({ url }, until) =>
      hold(url, 256, until, (at) => ({
        head: `POST /v0/login HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\nx-forwarded-for: 203.0.113.${at % 4}\r\n\r\n`,
        drip: '1\r\n \r\n',
      })),
  },
  {
    what: 'uploads of a byte a second, 2 workspaces × 128',
    asks: (world) => upload(world, world.tenant, 'small'),
    run: ({ url, attackers }, until) =>
      hold(url, 256, until, (at) => ({
        head: `POST /v3/files HTTP/1.1\r\nhost: x\r\nauthorization: ${attackers[at % 2]?.headers.authorization}\r\ncontent-type: multipart/form-data; boundary=b\r\ncontent-length: 1000000\r\n\r\n--b\r\ncontent-disposition: form-data; name="file"; filename="x"\r\n\r\n`,
        drip: 'x',
      })),
  },
  {
    what: 'downloads that nobody reads, 2 addresses × 100',
    asks: (world) =>
      ask(world, `/ipfs/${world.small}`, { headers: { host: world.tenant.host }, from: 'tenant' }),
    run: ({ url, attackers, large }, until) =>
      hold(url, 200, until, (at) => ({
        head: `GET /ipfs/${large} HTTP/1.1\r\nhost: ${attackers[at % 2]?.host}\r\nx-forwarded-for: 203.0.113.${at % 2}\r\n\r\n`,
        drip: '',
      })),
  },
]

export async function bench(): Promise<Result[]> {
  const results: Result[] = []
  await using ending = new AsyncDisposableStack()
  const postgres = await startPostgres()
  ending.defer(() => postgres.stop())
  const env = { BERTH_TRUST_PROXY: '127.0.0.1', DATABASE_URL: postgres.url }
  const stack = await startStack({ kind: 'embedded', env })
  ending.defer(() => stack.stop())
  const world = await fill(stack, postgres.url)
  const web = await stack.pidOf('web')
  for (const { what, asks, run } of ATTACKS) {
    const calm = await measure(() => asks(world))
    const attack = new AbortController()
    const running = run(world, attack.signal)
    await new Promise((resolve) => setTimeout(resolve, HEAD_START_MS))
    const busy = await measure(() => asks(world))
    attack.abort()
    await running
    const memory = Math.round((await proportionalBytes(web)) / 1_048_576)
    results.push({
      what: `${what}: ${busy.refused} of ${busy.count} refused, web has ${memory} MB`,
      berth: `${busy.p95.toFixed(1)} ms`,
      bare: `${calm.p95.toFixed(1)} ms`,
      ratio: busy.p95 / calm.p95,
      goal: GOAL,
    })
  }
  return results
}

/**
 * Three workspaces with a small file each. The attackers' workspaces also have a large file, and the first many more
 * files with long names.
 */
async function fill(stack: Stack, databaseUrl: string): Promise<World> {
  const { url } = stack
  const workspaceOf = async (name: string, ...args: string[]): Promise<Workspace> => {
    const headers = { authorization: `Bearer ${await stack.createKey(...args)}` }
    const { data } = (await (await fetch(`${url}/v3/gateways`, { headers })).json()) as {
      data: { rows: { domain: string }[] }
    }
    const { workspaces } = ((await (await fetch(`${url}/v0/workspaces`, { headers })).json()) as Workspaces)
      .data
    const host = `${data.rows[0]?.domain}.gateway.localhost:${new URL(url).port}`
    const id = workspaces[0]?.id
    if (!id) throw new Error(`${name}: no workspace`)
    return { headers, host, id }
  }
  for (const name of ['tenant', 'other'])
    await stack.berth('workspaces', 'create', name, '--plan', 'unlimited')
  const tenant = await workspaceOf('tenant', '-w', 'tenant')
  const attackers: World['attackers'] = [
    await workspaceOf('default'),
    await workspaceOf('other', '-w', 'other'),
  ]
  const bytes = randomBytes(LARGE)
  const [small, large] = [await upload({ url }, tenant, 'small'), await upload({ url }, attackers[0], bytes)]
  await upload({ url }, attackers[0], 'small')
  await upload({ url }, attackers[1], bytes)
  const client = new pg.Client({ connectionString: databaseUrl })
  await client.connect()
  await client.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes)
     SELECT gen_random_uuid(), $1, 'public', 'pinned', 'x', i::text, repeat('.', 255), '{}', '{}'
     FROM generate_series(1, $2::int) i`,
    [attackers[0].id, FILES],
  )
  await client.end()
  await stack.berth('workspaces', 'set-plan', 'default', 'free')
  return { url, tenant, attackers, small: `${small}`, large: `${large}` }
}

interface Workspaces {
  data: { workspaces: { id: string }[] }
}

/** The 95th percentile in milliseconds of sequential requests, and how many were refused. */
async function measure(ask: () => Promise<unknown>) {
  const times: number[] = []
  let refused = 0
  for (const end = performance.now() + MS; performance.now() < end; ) {
    const start = performance.now()
    if ((await ask()) === null) refused++
    times.push(performance.now() - start)
  }
  return { p95: quantile(times, 0.95), refused, count: times.length }
}

function listFiles({ url, tenant }: World): Promise<unknown> {
  return ask({ url }, '/v3/files/public?limit=10', { headers: tenant.headers, from: 'tenant' })
}

let visitors = 0
const visitor = () => `2001:db8:${(++visitors).toString(16)}::1`

/** @returns null for an answer of 429 or 503. */
async function ask(
  { url }: { url: string },
  path: string,
  { headers = {}, method = 'GET', body = null, from }: Asked = {},
): Promise<unknown> {
  // Visitors of the tenant come from different addresses, because each address has its own limit.
  const address = { 'x-forwarded-for': from === 'tenant' ? visitor() : '203.0.113.1' }
  const answer = await request(`${url}${path}`, { method, body, headers: { ...address, ...headers } })
  const text = await answer.body.text()
  return [429, 503].includes(answer.statusCode) ? null : text
}
interface Asked {
  headers?: Record<string, string>
  method?: 'GET' | 'POST'
  body?: string | null
  from?: 'tenant'
}

/** Uploads a file. @returns its CID; null if it was refused. */
async function upload(
  { url }: { url: string },
  { headers }: Workspace,
  content: string | Uint8Array<ArrayBuffer>,
): Promise<string | null> {
  const form = new FormData()
  form.set('file', new Blob([content]), 'file')
  const answer = await fetch(`${url}/v3/files`, { method: 'POST', headers, body: form })
  if (answer.status === 429 || answer.status === 503) return null
  return ((await answer.json()) as { data: { cid: string } }).data.cid
}

/** Repeats something in this many parallel loops. */
async function repeat(rows: number, until: AbortSignal, act: () => Promise<unknown>, pauseMs = 0) {
  const row = async () => {
    while (!until.aborted) {
      await act().catch(() => {})
      await new Promise((resolve) => setTimeout(resolve, pauseMs))
    }
  }
  await Promise.all(Array.from({ length: rows }, row))
}

/** Keeps connections open that send a few bytes a second and read nothing. Closed connections are reopened. */
async function hold(
  url: string,
  count: number,
  until: AbortSignal,
  request: (at: number) => { head: string; drip: string },
) {
  const sockets = new Map<number, Socket>()
  const open = (at: number) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1')
    socket.on('error', () => {}).once('close', () => until.aborted || setTimeout(open, 500, at))
    socket.pause()
    socket.write(request(at).head)
    sockets.set(at, socket)
  }
  for (let at = 0; at < count; at++) open(at)
  const dripping = setInterval(() => {
    for (const [at, socket] of sockets) socket.write(request(at).drip)
  }, 1000)
  await once(until, 'abort')
  clearInterval(dripping)
  for (const socket of sockets.values()) socket.destroy()
}

if (import.meta.main) print(title, await bench())
