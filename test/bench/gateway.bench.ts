/**
 * How many small files the gateway serves, and how soon the first byte of a large one comes: Berth on Kubo
 * against `cat` of the same Kubo's RPC API, which is the least that a gateway in front of it can do. And what counting
 * costs.
 */
import { rm } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { startStack } from '../support/stack.ts'
import { load } from './support/load.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { createClient, fill } from './support/transfer.ts'

export const title = 'The gateway'

const REQUESTS = 4000
const CONCURRENCY = 16
const ROUNDS = 3
const COUNTING_ROUNDS = 9
const FIRST_BYTES = 15
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
  const path = join(tmpdir(), `berth-bench-${process.pid}`)
  ending.defer(() => rm(path, { force: true }))
  const upload = async (bytes: number) => {
    await fill(path, bytes)
    return client.upload(path, 'public')
  }
  const small = await upload(SMALL)
  const large = await upload(LARGE)
  const kubo = stack.parts?.kubo.apiUrl
  const { url, host } = client.gateway

  const rates: { berth: number; bare: number | undefined }[] = []
  for (let i = -1; i < ROUNDS; i++) {
    const gateway = { url, method: 'GET', path: () => `/ipfs/${small}`, headers: { host } } as const
    const berth = await load(gateway, REQUESTS, CONCURRENCY)
    const cat = { url: kubo ?? '', method: 'POST', path: () => `/api/v0/cat?arg=${small}` } as const
    const bare = kubo ? await load(cat, REQUESTS, CONCURRENCY) : undefined
    if (i >= 0) rates.push({ berth: berth.perSecond, bare: bare?.perSecond }) // the first is the warm-up
  }
  const waits: { berth: number; bare: number | undefined }[] = []
  for (let i = 0; i < FIRST_BYTES; i++) {
    const berth = await firstByte(url, 'GET', `/ipfs/${large}`, { host })
    const bare = kubo ? await firstByte(kubo, 'POST', `/api/v0/cat?arg=${large}`) : undefined
    waits.push({ berth, bare })
  }
  const on = kind === 'real' ? 'on Kubo' : 'embedded'
  return [
    compare(
      `files of 1 KiB, ${on}`,
      rates,
      (n) => `${n.toFixed(0)} /s`,
      (berth, bare) => berth / bare,
    ),
    compare(
      `first byte of 100 MB, ${on}`,
      waits,
      (ms) => `${ms.toFixed(1)} ms`,
      (berth, bare) => berth / bare,
    ),
  ]
}

/** A gateway that counts what it serves, against one that does not. */
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
  const counting = await open({ BERTH_ANALYTICS_FLUSH_SECONDS: '1' })
  const plain = await open({ BERTH_ANALYTICS_DAYS: '0' })
  const rates: { berth: number; bare: number }[] = []
  for (let i = -1; i < COUNTING_ROUNDS; i++) {
    const berth = await load(counting, REQUESTS, CONCURRENCY)
    const bare = await load(plain, REQUESTS, CONCURRENCY)
    if (i >= 0) rates.push({ berth: berth.perSecond, bare: bare.perSecond }) // the first is the warm-up
  }
  return compare(
    'files of 1 KiB, counted each second, or not at all',
    rates,
    (n) => `${n.toFixed(0)} /s`,
    (berth, bare) => berth / bare,
  )
}

function compare(
  what: string,
  rounds: { berth: number; bare: number | undefined }[],
  show: (figure: number) => string,
  ratio: (berth: number, bare: number) => number,
): Result {
  const berth = show(median(rounds.map(({ berth }) => berth)))
  const bares = rounds.flatMap(({ bare }) => bare ?? [])
  if (bares.length === 0) return { what, berth }
  const ratios = rounds.map(({ berth, bare = Number.NaN }) => ratio(berth, bare))
  return { what, berth, bare: show(median(bares)), ratio: median(ratios) }
}

/** Milliseconds until the first byte of an answer; the rest is not waited for. */
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
