/**
 * How fast a file goes in and out: an upload to Berth against `ipfs add`, and a download from its gateway
 * against `ipfs cat`, on the same Kubo. The embedded node has no bare counterpart; its speed is for
 * information. New content for each upload. The client is curl, for one in Node.js would be half of the cost.
 */
import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { kuboBinary } from '../support/kubo.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { createClient, fill } from './support/transfer.ts'

export const title = 'A file of 200 MB, up and down'

const ROUNDS = 4
const BYTES = 200_000_000

export async function bench(): Promise<Result[]> {
  return [...(await benchStack('real')), ...(await benchStack('embedded'))]
}

async function benchStack(kind: 'real' | 'embedded'): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind })
  ending.defer(() => stack.stop())
  const key = await stack.createKey()
  const { gateway } = await createClient(stack)
  const path = join(tmpdir(), `berth-bench-${process.pid}`)
  ending.defer(() => rm(path, { force: true }))

  const up: Round[] = []
  const down: Round[] = []
  for (let i = -1; i < ROUNDS; i++) {
    const byBerth = async () => {
      await fill(path, BYTES)
      return timed(() => upload(stack, key, path))
    }
    const byKubo = async () => {
      await fill(path, BYTES)
      return timed(() => ipfs(stack, 'add', '--quieter', '--progress=false', path))
    }
    const [uploaded, added] = await inTurns(i, byBerth, kind === 'real' ? byKubo : undefined)
    const cid = uploaded.result
    const [downloaded, cat] = await inTurns(
      i,
      () => timed(() => download(gateway, cid)),
      kind === 'real' ? () => timed(() => ipfs(stack, 'cat', cid)) : undefined,
    )
    if (i < 0) continue // the warm-up
    up.push({ berth: uploaded.seconds, bare: added?.seconds })
    down.push({ berth: downloaded.seconds, bare: cat?.seconds })
  }
  const on = kind === 'real' ? 'on Kubo, against ipfs' : 'embedded'
  return [
    report(kind === 'real' ? `upload, ${on} add` : `upload, ${on}`, up),
    report(kind === 'real' ? `download, ${on} cat` : `download, ${on}`, down),
  ]
}

interface Round {
  berth: number
  bare: number | undefined
}

function report(what: string, rounds: Round[]): Result {
  const berth = median(rounds.map(({ berth }) => berth))
  const bares = rounds.flatMap(({ bare }) => bare ?? [])
  if (bares.length === 0) return { what, berth: speed(berth) }
  return {
    what,
    berth: speed(berth),
    bare: speed(median(bares)),
    ratio: median(rounds.map(({ berth, bare = Number.NaN }) => bare / berth)),
    goal: { atLeast: 0.7 },
  }
}

const speed = (seconds: number) => `${(BYTES / 1e6 / seconds).toFixed(0)} MB/s (${seconds.toFixed(2)} s)`

/** Runs both, now one first and now the other; the second is left out where there is none. */
async function inTurns<A, B>(
  round: number,
  first: () => Promise<A>,
  second: (() => Promise<B>) | undefined,
): Promise<[A, B | undefined]> {
  if (round % 2 === 0) return [await first(), await second?.()]
  const b = await second?.()
  return [await first(), b]
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; seconds: number }> {
  const start = performance.now()
  const result = await work()
  return { result, seconds: (performance.now() - start) / 1000 }
}

/** Uploads a file. Resolves to its CID. */
async function upload(stack: Stack, key: string, path: string): Promise<string> {
  const answer = await curl(
    ...['-H', `Authorization: Bearer ${key}`, '-F', 'network=public', '-F', `file=@${path}`],
    `${stack.url}/v3/files`,
  )
  return JSON.parse(answer).data.cid
}

async function download({ url, host }: { url: string; host: string }, cid: string): Promise<void> {
  const bytes = await curl(
    '-H',
    `Host: ${host}`,
    '-o',
    '/dev/null',
    '-w',
    '%{size_download}',
    `${url}/ipfs/${cid}`,
  )
  if (Number(bytes) !== BYTES) throw new Error(`The gateway sent ${bytes} bytes`)
}

async function curl(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)('curl', ['--fail-with-body', '--silent', ...args])
  return stdout
}

/** What Berth is held against: Kubo's own command, with the start of its process as a user has it. */
async function ipfs(stack: Stack, ...args: string[]): Promise<void> {
  const env = { ...process.env, IPFS_PATH: stack.parts?.kubo.repo }
  const command = 'exec "$0" "$@" > /dev/null'
  await promisify(execFile)('sh', ['-c', command, kuboBinary ?? '', ...args], { env })
}

if (import.meta.main) print(title, await bench())
