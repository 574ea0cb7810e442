/**
 * How fast a file is uploaded and downloaded. On the same Kubo, an upload to Berth is compared with `ipfs add`, and a
 * download from its gateway with `ipfs cat`. An upload to the embedded node is compared with a minimal server
 * (`bare-upload.ts`). New content for each upload. The client is curl, because a client in Node.js would be half of the
 * cost.
 */
import { execFile } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { kuboBinary } from '../support/kubo.ts'
import { freePort, run, until } from '../support/processes.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'
import { createClient, fill } from './support/transfer.ts'

export const title = 'A file of 200 MB, up and down'

const BARE_SERVER = join(import.meta.dirname, 'support/bare-upload.ts')
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
  const bare = kind === 'embedded' ? await startBareServer(ending) : undefined

  const up: Round[] = []
  const stored: Round[] = []
  const down: Round[] = []
  for (let i = -1; i < ROUNDS; i++) {
    const ofNew = async <T>(send: () => Promise<T>) => {
      await fill(path, BYTES)
      return timed(send)
    }
    const [uploaded, added] = await inTurns(
      i,
      () => ofNew(() => upload(stack, key, path)),
      () =>
        ofNew(() =>
          bare
            ? post(`${bare}/hash`, path)
            : ipfs(stack, 'add', '--quieter', '--progress=false', path).then(() => ''),
        ),
    )
    const cid = uploaded.result
    const [downloaded, cat] = await inTurns(
      i,
      () => timed(() => download(gateway, cid)),
      bare ? undefined : () => timed(() => ipfs(stack, 'cat', cid)),
    )
    const written = bare ? await ofNew(() => post(`${bare}/store`, path)) : undefined
    if (i < 0) continue // the warm-up
    up.push({ berth: uploaded.seconds, bare: added?.seconds })
    stored.push({ berth: uploaded.seconds, bare: written?.seconds })
    down.push({ berth: downloaded.seconds, bare: cat?.seconds })
  }
  if (bare) {
    return [
      report('upload, embedded, against a server that hashes it', up, { atLeast: 0.6 }),
      report('upload, embedded, against one that also writes it to the disk', stored),
      report('download, embedded', down),
    ]
  }
  return [
    report('upload, on Kubo, against ipfs add', up, { atLeast: 0.8 }),
    report('download, on Kubo, against ipfs cat', down, { atLeast: 0.7 }),
  ]
}

interface Round {
  berth: number
  bare: number | undefined
}

function report(what: string, rounds: Round[], goal?: Result['goal']): Result {
  const berth = median(rounds.map(({ berth }) => berth))
  const bares = rounds.flatMap(({ bare }) => bare ?? [])
  if (bares.length === 0) return { what, berth: speed(berth) }
  return {
    what,
    berth: speed(berth),
    bare: speed(median(bares)),
    ratio: median(rounds.map(({ berth, bare = Number.NaN }) => bare / berth)),
    goal,
  }
}

const speed = (seconds: number) => `${(BYTES / 1e6 / seconds).toFixed(0)} MB/s (${seconds.toFixed(2)} s)`

/** The server of `bare-upload.ts`. Resolves to its address. */
async function startBareServer(ending: AsyncDisposableStack): Promise<string> {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const server = run(process.execPath, [BARE_SERVER], { env: { ...process.env, PORT: String(port) } })
  ending.defer(() => server.end('SIGKILL'))
  await until('the bare server answers', async () => (await fetch(url, { method: 'POST' })).ok, 10_000)
  return url
}

/** Runs both in alternating order; the second is omitted if it does not exist. */
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
  const answer = await post(`${stack.url}/v3/files`, path, '-H', `Authorization: Bearer ${key}`)
  return JSON.parse(answer).data.cid
}

/** Sends the form of an upload. */
const post = (url: string, path: string, ...args: string[]): Promise<string> =>
  curl(...args, '-F', 'network=public', '-F', `file=@${path}`, url)

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

/**
 * The alternative that Berth is compared with: Kubo's own command, including the start of its process, as a user runs
 * it.
 */
async function ipfs(stack: Stack, ...args: string[]): Promise<void> {
  const env = { ...process.env, IPFS_PATH: stack.parts?.kubo.repo }
  const command = 'exec "$0" "$@" > /dev/null'
  await promisify(execFile)('sh', ['-c', command, kuboBinary ?? '', ...args], { env })
}

if (import.meta.main) print(title, await bench())
