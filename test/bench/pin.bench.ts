/**
 * How long a pin takes from the request to its end if the content is on a nearby host node. Berth on Kubo is compared
 * with `pin/add` of the same Kubo, and Berth on its embedded node with another Kubo. New content each time.
 */
import { randomBytes } from 'node:crypto'
import { createKuboStorage } from '../../src/storage/kubo.ts'
import type { AddEntry, Storage } from '../../src/storage/port.ts'
import { startKubo } from '../support/kubo.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Pinning from a local host node'

const ROUNDS = 8
const MIB = 1024 * 1024
/** Pins of almost no content, whose time shows the fixed cost. */
const SMALL_ROUNDS = 30
/** The most that a pin may take beyond `ipfs pin add`, in milliseconds. */
const FIXED_MS = 40
/** More than any of these pins takes, in milliseconds. */
const STALL_MS = 20_000
/** The benchmark ends if a Kubo receives nothing over this many connections. */
const MAX_TRIES = 3
const { signal } = new AbortController()

/** Content that is pinned: this many files of this many bytes, random and so never known before. */
interface Content {
  what: string
  files: number
  fileBytes: number
}
const FILE: Content = { what: 'a file of 50 MiB', files: 1, fileBytes: 50 * MIB }
const SMALL: Content = { what: 'a file of 1 KiB', files: 1, fileBytes: 1024 }
const FOLDER: Content = { what: '2,000 files of 10 KiB', files: 2000, fileBytes: 10 * 1024 }

interface HostNode {
  storage: Storage
  address: string
}

export async function bench(): Promise<Result[]> {
  return [...(await benchKubo()), ...(await benchEmbedded(false)), ...(await benchEmbedded(true))]
}

async function benchKubo(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind: 'real' })
  ending.defer(() => stack.stop())
  const remote = await startKubo()
  ending.defer(() => remote.stop())
  const storage = createKuboStorage({ apiUrl: remote.apiUrl, network: 'public' })
  await storage.start()
  ending.defer(() => storage.stop())
  const host = { storage, address: remote.multiaddr }
  const kuboUrl = stack.parts?.kubo.apiUrl ?? ''
  const key = await stack.createKey()

  const results: Result[] = []
  for (const content of [FILE, FOLDER]) {
    const rounds = await inTurns(
      async () => time(pinByBerth(stack, key, host, await add(host, content))),
      async () => time(pinByKubo(kuboUrl, host, await add(host, content))),
    )
    const berth = median(rounds.map(({ berth }) => berth))
    const bare = median(rounds.map(({ bare }) => bare))
    results.push({
      what: `${content.what}, on Kubo`,
      berth: speed(content, berth),
      bare: speed(content, bare),
      ratio: median(rounds.map(({ berth, bare }) => bare / berth)),
      goal: content === FILE ? { atLeast: 0.9 } : undefined,
    })
  }
  const small = await inTurns(
    async () => time(pinByBerth(stack, key, host, await add(host, SMALL))),
    async () => time(pinByKubo(kuboUrl, host, await add(host, SMALL))),
    SMALL_ROUNDS,
  )
  const beyond = median(small.map(({ berth, bare }) => (berth - bare) * 1000))
  const ms = (seconds: number) => `${(seconds * 1000).toFixed(1)} ms`
  results.push({
    what: `${SMALL.what} on Kubo, time beyond pin add ÷ ${FIXED_MS} ms`,
    berth: ms(median(small.map(({ berth }) => berth))),
    bare: ms(median(small.map(({ bare }) => bare))),
    ratio: beyond / FIXED_MS,
    goal: { atMost: 1 },
  })
  return results
}

/**
 * The embedded node compared with a Kubo. Each retrieves from the same other Kubo content that was added in its own
 * format.
 */
async function benchEmbedded(asInstalled: boolean): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind: 'embedded' })
  ending.defer(() => stack.stop())
  const [remote, bare] = await Promise.all([startOther(asInstalled), startOther(asInstalled)])
  ending.defer(async () => void (await Promise.all([remote.stop(), bare.stop()])))
  const host = { address: remote.multiaddr }
  const key = await stack.createKey()

  const rounds = await inTurns(
    async () => time(pinByBerth(stack, key, host, await addByKubo(remote.apiUrl))),
    async () => time(pinByKubo(bare.apiUrl, host, await addByKubo(remote.apiUrl))),
  )
  const berth = median(rounds.map(({ berth }) => berth))
  const bareTime = median(rounds.map(({ bare }) => bare))
  return [
    {
      what: `${FILE.what} from ${asInstalled ? 'a Kubo as it is installed' : 'a Kubo'}, embedded, time`,
      berth: speed(FILE, berth),
      bare: speed(FILE, bareTime),
      ratio: median(rounds.map(({ berth, bare }) => berth / bare)),
      goal: { atMost: 1.5 },
    },
  ]
}

const startOther = (asInstalled: boolean) => startKubo(undefined, undefined, { asInstalled })

/**
 * Measures both and alternates the order, because a node still writes what was pinned before. The first round is the
 * warm-up.
 */
async function inTurns(byBerth: () => Promise<number>, byKubo: () => Promise<number>, count = ROUNDS) {
  const rounds: { berth: number; bare: number }[] = []
  for (let i = -1; i < count; i++) {
    const round =
      i % 2 === 0
        ? { berth: await byBerth(), bare: await byKubo() }
        : { bare: await byKubo(), berth: await byBerth() }
    if (i >= 0) rounds.push(round)
  }
  return rounds
}

/** Adds a file like `ipfs add`: with the blocks that Kubo makes. */
async function addByKubo(apiUrl: string): Promise<string> {
  const form = new FormData()
  form.set('file', new Blob([randomBytes(FILE.fileBytes)]), 'file')
  const response = await fetch(`${apiUrl}/api/v0/add`, { method: 'POST', body: form })
  return ((await response.json()) as { Hash: string }).Hash
}

async function add({ storage }: HostNode, { files, fileBytes }: Content): Promise<string> {
  async function* entries(): AsyncGenerator<AddEntry> {
    for (let i = 0; i < files; i++)
      yield { path: files === 1 ? 'file' : `folder/${i}`, content: random(fileBytes) }
  }
  return String((await storage.add(entries(), { signal })).cid)
}

async function* random(bytes: number): AsyncGenerator<Uint8Array> {
  for (let left = bytes; left > 0; left -= MIB) yield randomBytes(Math.min(left, MIB))
}

/** Pins like a client of Berth: sends the request, then waits for the end of the operation. */
async function pinByBerth(stack: Stack, key: string, host: { address: string }, cid: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` }
  const body = JSON.stringify({ cid, host_nodes: [host.address] })
  const accepted = await fetch(`${stack.url}/v3/files/public/pin_by_cid`, { method: 'POST', headers, body })
  const operation = accepted.headers.get('operation-id')
  const ended = await fetch(`${stack.url}/v0/operations/${operation}?wait=120`, { headers })
  const text = await ended.text()
  if (!text.includes('"succeeded"')) throw new Error(text)
}

/**
 * The alternative that Berth is compared with: `ipfs swarm connect` and `ipfs pin add`, without the start of a process.
 * Sometimes a Kubo gets nothing from another one as long as their connection stands; this reconnects then, as Berth
 * does. The median of the rounds excludes such a round.
 */
async function pinByKubo(apiUrl: string, host: { address: string }, cid: string): Promise<void> {
  const call = async (path: string, arg: string) => {
    const url = `${apiUrl}/api/v0/${path}?arg=${encodeURIComponent(arg)}`
    const response = await fetch(url, { method: 'POST', signal: AbortSignal.timeout(STALL_MS) })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${text}`)
  }
  for (let tries = 1; ; tries++) {
    await call('swarm/connect', host.address)
    try {
      return await call('pin/add', cid)
    } catch (error) {
      if ((error as Error).name !== 'TimeoutError' || tries === MAX_TRIES) throw error
      await call('swarm/disconnect', host.address)
    }
  }
}

async function time(work: Promise<void>): Promise<number> {
  const start = performance.now()
  await work
  return (performance.now() - start) / 1000
}

const speed = ({ files, fileBytes }: Content, seconds: number) =>
  `${((files * fileBytes) / 1e6 / seconds).toFixed(0)} MB/s (${seconds.toFixed(2)} s)`

if (import.meta.main) print(title, await bench())
