/**
 * Snapshots of a workspace against an import of the whole, on the same node in turns: what a sync stores when 10 of
 * 5,000 files have changed, and what a restore reads. Git's part, finding out what has changed, is not in it.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CID } from 'multiformats/cid'
import { buildSnapshot } from '../../src/agents/snapshots/dag.ts'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import { walkFolder } from '../../src/storage/folder.ts'
import { createKuboStorage } from '../../src/storage/kubo.ts'
import type { Storage } from '../../src/storage/port.ts'
import { kuboBinary, startKubo } from '../support/kubo.ts'
import { median } from './support/numbers.ts'
import { print, type Result } from './support/report.ts'

export const title = 'Snapshots of 5,000 files, 98 MB, 300 directories'

const FILES = 5000
const FOLDERS = 300
const FILE_BYTES = 19_600
const CHANGED = 10
const ROUNDS = 5

type Tree = Map<string, Buffer>

const { signal } = new AbortController()

export async function bench(): Promise<Result[]> {
  await using ending = new AsyncDisposableStack()
  const dir = await mkdtemp(join(tmpdir(), 'berth-bench-'))
  ending.defer(() => rm(dir, { recursive: true, force: true }))
  const embedded = createEmbeddedStorage({ dir, network: 'private', offline: true })
  await embedded.start()
  ending.defer(() => embedded.stop())
  const results = await benchStorage(embedded, 'embedded')
  if (!kuboBinary) return results

  const node = await startKubo()
  ending.defer(() => node.stop())
  const kubo = createKuboStorage({ apiUrl: node.apiUrl, network: 'private' })
  await kubo.start()
  ending.defer(() => kubo.stop())
  return [...results, ...(await benchStorage(kubo, 'on Kubo'))]
}

interface Round {
  seconds: { sync: number; restore: number; add: number }
  bytes: { sync: number; add: number }
}

async function benchStorage(storage: Storage, on: string): Promise<Result[]> {
  const tree: Tree = new Map()
  for (let i = 0; i < FILES; i++) {
    tree.set(`area-${i % 10}/topic-${i % FOLDERS}/note ${i}.md`, randomBytes(FILE_BYTES))
  }
  let { cid } = await sync(storage, null, tree)
  const rounds: Round[] = []
  for (let i = -1; i < ROUNDS; i++) {
    const changes = change(tree, i)
    const synced = await timed(() => sync(storage, cid, changes))
    cid = synced.result.cid
    const restored = await timed(() => restore(storage, cid))
    // New content for both: what the one has stored would be there for the other.
    change(tree, i + ROUNDS + 1)
    const added = await timed(() => storage.add(entries(tree), { signal }))
    cid = added.result.cid
    if (restored.result !== added.result.size) throw new Error(`Only ${restored.result} bytes came back`)
    if (i < 0) continue // the warm-up
    rounds.push({
      seconds: { sync: synced.seconds, restore: restored.seconds, add: added.seconds },
      bytes: { sync: synced.result.bytes, add: added.result.size },
    })
  }
  const add = median(rounds.map(({ seconds }) => seconds.add))
  const row = (step: 'sync' | 'restore', what: string, atMost: number): Result => {
    const berth = median(rounds.map(({ seconds }) => seconds[step]))
    const ratio = median(rounds.map(({ seconds }) => seconds[step] / seconds.add))
    return { what: `${what}, ${on}`, berth: ms(berth), bare: ms(add), ratio, goal: { atMost } }
  }
  const bytes = {
    sync: median(rounds.map(({ bytes }) => bytes.sync)),
    add: median(rounds.map(({ bytes }) => bytes.add)),
  }
  return [
    row('sync', `a sync of ${CHANGED} changed files against a full add`, 0.1),
    {
      what: `bytes of that, ${on}`,
      berth: `${(bytes.sync / 1e3).toFixed(0)} KB`,
      bare: `${(bytes.add / 1e6).toFixed(0)} MB`,
      ratio: bytes.sync / bytes.add,
      goal: { atMost: 0.01 },
    },
    row('restore', 'reading all of it against a full add', 1),
  ]
}

/** Gives some files new content. @returns those. */
function change(tree: Tree, round: number): Tree {
  const paths = [...tree.keys()]
  const changed: Tree = new Map()
  for (let i = 0; i < CHANGED; i++) {
    changed.set(paths[((round + 1) * 997 + i * 431) % FILES] ?? '', randomBytes(FILE_BYTES))
  }
  for (const [path, content] of changed) tree.set(path, content)
  return changed
}

/** What a sync does once it knows what has changed. The name of a blob is its path. */
function sync(storage: Storage, base: CID | null, changed: Tree): Promise<{ cid: CID; bytes: number }> {
  return buildSnapshot(storage, {
    base,
    signal,
    changes: (async function* () {
      for (const [path, { length: size }] of changed) {
        yield { path, mode: '100644' as const, blob: path, size, isNew: base === null }
      }
    })(),
    read: async function* (blobs) {
      for (const blob of blobs) yield { blob, content: once(changed.get(blob) ?? Buffer.alloc(0)) }
    },
  })
}

/** Reads all the files. Resolves to their bytes. */
async function restore(storage: Storage, cid: CID): Promise<number> {
  let bytes = 0
  for await (const { content } of walkFolder(storage, cid, { signal })) {
    for await (const chunk of content()) bytes += chunk.length
  }
  return bytes
}

async function* entries(tree: Tree) {
  for (const [path, content] of tree) yield { path, content: once(content) }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

async function timed<T>(work: () => Promise<T>): Promise<{ result: T; seconds: number }> {
  const start = performance.now()
  const result = await work()
  return { result, seconds: (performance.now() - start) / 1000 }
}

const ms = (seconds: number) => `${(seconds * 1000).toFixed(0)} ms`

if (import.meta.main) print(title, await bench())
