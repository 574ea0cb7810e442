/**
 * How many small files the gateway serves, and how soon the first byte of a large file arrives. Both are compared with
 * `cat` of a Kubo's RPC API, the minimum work of a gateway in front of it. On Kubo it is the same node; embedded it is
 * another node with the same content. Small files are also compared with a server in Node that sends as many bytes. It
 * also measures the cost of counting.
 */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { openAsBlob } from 'node:fs'
import { rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startKubo } from '../support/kubo.ts'
import { startStack } from '../support/stack.ts'
import { load, type Target } from './support/load.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { createClient, fill } from './support/transfer.ts'

export const title = 'The gateway'

const REQUESTS = 4000
const CONCURRENCY = 16
/**
 * Rounds that are not counted: V8 compiles what runs often, and the web process reaches its full rate after 20,000
 * requests.
 */
const WARM_UP = 5
const ROUNDS = 5
const COUNTING_ROUNDS = 9
const FIRST_BYTES = 31
const SMALL = 1024
const LARGE = 100_000_000

export async function bench(): Promise<Result[]> {
  return [...(await benchStack('real')), ...(await benchStack('embedded')), await benchCounting()]
}

async function benchStack(kind: 'real' | 'embedded'): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind })
  ending.defer(() => stack.stop())
  const client = await createClient(stack)
  const kubo = stack.parts?.kubo ?? (await startKubo())
  if (!stack.parts) ending.defer(() => kubo.stop())
  const path = join(tmpdir(), `berth-bench-${process.pid}`)
  ending.defer(() => rm(path, { force: true }))
  const upload = async (bytes: number) => {
    await fill(path, bytes)
    const cid = await client.upload(path, 'public')
    return { cid, kuboCid: stack.parts ? cid : await add(kubo.apiUrl, path) }
  }
  const small = await upload(SMALL)
  const large = await upload(LARGE)
  const server = fork(new URL('./support/bare-file.program.ts', import.meta.url), [`${SMALL}`])
  ending.defer(() => void server.kill())
  const [bareUrl] = (await once(server, 'message')) as [string]
  const { url, host } = client.gateway
  const cat = (cid: string) => `/api/v0/cat?arg=${cid}`

  const rates: { berth: number; kubo: number; node: number }[] = []
  for (let i = -WARM_UP; i < ROUNDS; i++) {
    const perSecond = async (target: Target) => (await load(target, REQUESTS, CONCURRENCY)).perSecond
    const rate = {
      berth: await perSecond({ url, method: 'GET', path: () => `/ipfs/${small.cid}`, headers: { host } }),
      kubo: await perSecond({ url: kubo.apiUrl, method: 'POST', path: () => cat(small.kuboCid) }),
      node: await perSecond({ url: bareUrl, method: 'GET', path: () => '/' }),
    }
    if (i >= 0) rates.push(rate)
  }
  const waits: { berth: number; bare: number }[] = []
  for (let i = -WARM_UP; i < FIRST_BYTES; i++) {
    const berth = await firstByte(url, 'GET', `/ipfs/${large.cid}`, { host })
    const bare = await firstByte(kubo.apiUrl, 'POST', cat(large.kuboCid))
    if (i >= 0) waits.push({ berth, bare })
  }
  const on = kind === 'real' ? 'on Kubo' : 'embedded'
  const against = (bare: 'kubo' | 'node') => rates.map((rate) => ({ berth: rate.berth, bare: rate[bare] }))
  return [
    {
      ...compare(`files of 1 KiB, ${on}`, against('kubo'), rateOf),
      goal: { atLeast: kind === 'real' ? 0.5 : 1 },
    },
    {
      ...compare(`files of 1 KiB, ${on}, beside a bare server in Node`, against('node'), rateOf),
      ...(kind === 'embedded' && { goal: { atLeast: 0.35 } }),
    },
    {
      ...compare(`first byte of 100 MB, ${on}`, waits, (ms) => `${ms.toFixed(1)} ms`),
      goal: { atMost: 1.5 },
    },
  ]
}

/** Pins a file on a Kubo; resolves to its CID. */
async function add(apiUrl: string, path: string): Promise<string> {
  const form = new FormData()
  form.set('file', await openAsBlob(path))
  const answer = await fetch(`${apiUrl}/api/v0/add?cid-version=1`, { method: 'POST', body: form })
  if (!answer.ok) throw new Error(`add: ${answer.status} ${await answer.text()}`)
  return ((await answer.json()) as { Hash: string }).Hash
}

const rateOf = (n: number) => `${n.toFixed(0)} /s`

/** A gateway that counts what it serves, compared with one that does not. */
async function benchCounting(): Promise<Result> {
  await using ending = new AsyncDisposableStack()
  const path = join(tmpdir(), `berth-bench-counting-${process.pid}`)
  ending.defer(() => rm(path, { force: true }))
  await fill(path, SMALL)
  async function open(env: NodeJS.ProcessEnv) {
    const stack = await startStack({ kind: 'embedded', env })
    ending.defer(() => stack.stop())
    const client = await createClient(stack)
    const cid = await client.upload(path, 'public')
    const { url, host } = client.gateway
    return { url, method: 'GET', path: () => `/ipfs/${cid}`, headers: { host } } as const
  }
  const counting = await open({ BERTH_INTERVALS: 'analytics=1' })
  const plain = await open({ BERTH_RETENTION: 'analytics=0' })
  const rates: { berth: number; bare: number }[] = []
  for (let i = -1; i < COUNTING_ROUNDS; i++) {
    const berth = await load(counting, REQUESTS, CONCURRENCY)
    const bare = await load(plain, REQUESTS, CONCURRENCY)
    if (i >= 0) rates.push({ berth: berth.perSecond, bare: bare.perSecond }) // the first is the warm-up
  }
  return compare('files of 1 KiB, counted each second, or not at all', rates, rateOf)
}

function compare(
  what: string,
  rounds: { berth: number; bare: number }[],
  show: (figure: number) => string,
): Result {
  const berth = show(median(rounds.map(({ berth }) => berth)))
  const bare = show(median(rounds.map(({ bare }) => bare)))
  return { what, berth, bare, ratio: median(rounds.map(({ berth, bare }) => berth / bare)) }
}

/** Milliseconds until the first byte of a response, without waiting for the rest. */
function firstByte(
  origin: string,
  method: string,
  path: string,
  headers: Record<string, string> = {},
): Promise<number> {
  return new Promise((resolve, reject) => {
    const start = performance.now()
    const sent = request(`${origin}${path}`, { method, headers, agent: false }, (response) => {
      response.once('data', () => {
        resolve(performance.now() - start)
        sent.destroy()
      })
      response.once('error', () => {})
    })
    sent.once('error', reject)
    sent.end()
  })
}

if (import.meta.main) print(title, await bench())
