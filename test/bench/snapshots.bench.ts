/**
 * Snapshots of a workspace compared with an import of the whole, on the same node in turns: what a sync stores when 10
 * of 5,000 files have changed, and what a restore reads. The time git needs to find the changes is not included.
 */
import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { CID } from 'multiformats/cid'
import { buildSnapshot } from '../../src/agents/snapshots/index.ts'
import { walkFolder } from '../../src/storage/dag/folder.ts'
import { createEmbeddedStorage } from '../../src/storage/embedded.ts'
import { createKuboStorage } from '../../src/storage/kubo.ts'
import type { Storage } from '../../src/storage/port.ts'
import { kuboBinary, startKubo } from '../support/kubo.ts'
import { print, type Result } from './support/report.ts'
import { compare, time } from './support/time.ts'

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

async function benchStorage(storage: Storage, on: string): Promise<Result[]> {
  const tree: Tree = new Map()
  for (let i = 0; i < FILES; i++) {
    tree.set(`area-${i % 10}/topic-${i % FOLDERS}/note ${i}.md`, randomBytes(FILE_BYTES))
  }
  let { cid } = await sync(storage, null, tree)
  const syncs: { berth: number; bare: number }[] = []
  const restores: typeof syncs = []
  let newBytes = 0
  for (let i = -1; i < ROUNDS; i++) {
    const changes = change(tree, i)
    const synced = await time(async () => {
      const made = await sync(storage, cid, changes)
      cid = made.cid
      newBytes = made.bytes
    })
    const restored = await time(() => restore(storage, cid))
    // New content for each: otherwise the second would find what the first has stored.
    change(tree, i + ROUNDS + 1)
    const added = await time(async () => {
      cid = (await storage.add(entries(tree), { signal })).cid
    })
    if (i < 0) continue // the warm-up
    syncs.push({ berth: synced, bare: added })
    restores.push({ berth: restored, bare: added })
  }
  return [
    compare(`a sync of ${CHANGED} changed files against a full add, ${on}`, syncs, { goal: { atMost: 0.1 } }),
    {
      what: `bytes of that, ${on}`,
      berth: `${(newBytes / 1e3).toFixed(0)} KB`,
      bare: `${((FILES * FILE_BYTES) / 1e6).toFixed(0)} MB`,
      ratio: newBytes / (FILES * FILE_BYTES),
      goal: { atMost: 0.01 },
    },
    compare(`reading all of it against a full add, ${on}`, restores, { goal: { atMost: 0.5 } }),
  ]
}

/** Gives some files new content. @returns these files. */
function change(tree: Tree, round: number): Tree {
  const paths = [...tree.keys()]
  const changed: Tree = new Map()
  for (let i = 0; i < CHANGED; i++) {
    changed.set(paths[((round + 1) * 997 + i * 431) % FILES] ?? '', randomBytes(FILE_BYTES))
  }
  for (const [path, content] of changed) tree.set(path, content)
  return changed
}

/** Stores the changed files like a sync that knows them. The name of a blob is its path. */
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

/** Reads all files. @throws Error if any are missing. */
async function restore(storage: Storage, cid: CID): Promise<void> {
  let bytes = 0
  for await (const { content } of walkFolder(storage, cid, { signal })) {
    for await (const chunk of content()) bytes += chunk.length
  }
  if (bytes !== FILES * FILE_BYTES) throw new Error(`Only ${bytes} bytes came back`)
}

async function* entries(tree: Tree) {
  for (const [path, content] of tree) yield { path, content: once(content) }
}

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  yield bytes
}

if (import.meta.main) print(title, await bench())
