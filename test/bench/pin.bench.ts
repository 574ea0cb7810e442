/**
 * How long a pin takes from the request to its end, when the content lies on a host node beside it:
 * Berth on Kubo against `pin/add` of the same Kubo, and Berth on its embedded node. New content each time.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import { createKuboStorage } from '../../src/storage/kubo.ts'
import type { AddEntry, Storage } from '../../src/storage/port.ts'
import { startKubo } from '../support/kubo.ts'
import { type Stack, startStack } from '../support/stack.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Pinning from a local host node'

const ROUNDS = 8
const MIB = 1024 * 1024
const { signal } = new AbortController()

/** What is pinned: so many files of so many bytes, random and so never known before. */
interface Content {
  what: string
  files: number
  fileBytes: number
}
const FILE: Content = { what: 'a file of 50 MiB', files: 1, fileBytes: 50 * MIB }
const FOLDER: Content = { what: '2,000 files of 10 KiB', files: 2000, fileBytes: 10 * 1024 }

interface HostNode {
  storage: Storage
  address: string
}

export async function bench(): Promise<Result[]> {
  return [...(await benchKubo()), ...(await benchEmbedded())]
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
    const rounds: { berth: number; bare: number }[] = []
    for (let i = -1; i < ROUNDS; i++) {
      const byBerth = async () => time(pinByBerth(stack, key, host, await add(host, content)))
      const byKubo = async () => time(pinByKubo(kuboUrl, host, await add(host, content)))
      // In turns, who is first: the node still writes down what was pinned before.
      const round =
        i % 2 === 0
          ? { berth: await byBerth(), bare: await byKubo() }
          : { bare: await byKubo(), berth: await byBerth() }
      if (i >= 0) rounds.push(round) // the first is the warm-up
    }
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
  return results
}

async function benchEmbedded(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const stack = await startStack({ kind: 'embedded' })
  ending.defer(() => stack.stop())
  const dir = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  ending.defer(() => rm(dir, { recursive: true, force: true }))
  // The host node is this process: Berth's worker has one of its own.
  const storage = createEmbeddedStorage({ dir, network: 'public', listen: ['/ip4/127.0.0.1/tcp/0'] })
  await storage.start()
  ending.defer(() => storage.stop())
  const { addresses } = await storage.info({ signal })
  const host = { storage, address: addresses[0] ?? '' }
  const key = await stack.createKey()

  const results: Result[] = []
  for (const content of [FILE, FOLDER]) {
    const rounds: number[] = []
    for (let i = -1; i < ROUNDS; i++) {
      const seconds = await time(pinByBerth(stack, key, host, await add(host, content)))
      if (i >= 0) rounds.push(seconds)
    }
    results.push({ what: `${content.what}, embedded`, berth: speed(content, median(rounds)) })
  }
  return results
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

/** What a client does: ask, then wait for the end of the operation. */
async function pinByBerth(stack: Stack, key: string, host: HostNode, cid: string): Promise<void> {
  const headers = { authorization: `Bearer ${key}` }
  const body = JSON.stringify({ cid, host_nodes: [host.address] })
  const accepted = await fetch(`${stack.url}/v3/files/public/pin_by_cid`, { method: 'POST', headers, body })
  const operation = accepted.headers.get('operation-id')
  const ended = await fetch(`${stack.url}/v0/operations/${operation}?wait=120`, { headers })
  const text = await ended.text()
  if (!text.includes('"succeeded"')) throw new Error(text)
}

/** What Berth is held against: `ipfs swarm connect` and `ipfs pin add`, without the start of a process. */
async function pinByKubo(apiUrl: string, host: HostNode, cid: string): Promise<void> {
  for (const path of [`swarm/connect?arg=${encodeURIComponent(host.address)}`, `pin/add?arg=${cid}`]) {
    const response = await fetch(`${apiUrl}/api/v0/${path}`, { method: 'POST' })
    const text = await response.text()
    if (!response.ok) throw new Error(`${path}: ${text}`)
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
