import { createHash } from 'node:crypto'
import { importer } from 'ipfs-unixfs-importer'
import type { CID } from 'multiformats/cid'
import type { TreeChange } from '../../../agentd/repository/protocol.ts'
import { buildSnapshot } from '../../../src/agents/snapshots/index.ts'
import { PROFILE } from '../../../src/storage/dag/unixfs-write.ts'
import type { Storage } from '../../../src/storage/port.ts'

/** The files of a commit by path: their content, or the target of a symbolic link. */
export type TreeFile = { text: string } | { link: string }
export type Tree = Map<string, TreeFile>

const textOf = (file: TreeFile): string => ('text' in file ? file.text : file.link)
const blobOf = (text: string): string => createHash('sha1').update(text).digest('hex')

/** The changes between two trees, in git's order. */
export function changesBetween(from: Tree, to: Tree): TreeChange[] {
  const changes: TreeChange[] = []
  for (const path of byBytes(new Set([...from.keys(), ...to.keys()]))) {
    const [before, after] = [from.get(path), to.get(path)]
    if (!after) changes.push({ path, removed: true })
    else if (JSON.stringify(before) !== JSON.stringify(after)) {
      const text = textOf(after)
      const mode = 'text' in after ? '100644' : '120000'
      changes.push({ path, mode, blob: blobOf(text), size: Buffer.byteLength(text), isNew: !before })
    }
  }
  return changes
}

export const byBytes = (paths: Iterable<string>): string[] =>
  [...paths].sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)))

/** Makes the snapshot of a tree, based on the snapshot of another. `asked` lists the blobs that were read for it. */
export async function snapshot(
  storage: Storage,
  to: Tree,
  from: { tree: Tree; cid: CID } | null = null,
): Promise<{ cid: CID; blocks: number; bytes: number; asked: string[] }> {
  const changes = changesBetween(from?.tree ?? new Map(), to)
  const texts = new Map(Array.from(to.values(), (file) => [blobOf(textOf(file)), textOf(file)]))
  const asked: string[] = []
  const made = await buildSnapshot(storage, {
    base: from?.cid ?? null,
    changes: each(changes),
    read: async function* (blobs) {
      asked.push(...blobs)
      for (const blob of blobs.toReversed())
        yield { blob, content: each([Buffer.from(texts.get(blob) ?? '')]) }
    },
    signal: new AbortController().signal,
  })
  return { ...made, asked }
}

/** The CID that the importer creates from a whole tree. */
export async function importedAs(tree: Tree): Promise<string> {
  const entries = Array.from(tree, ([path, file]) =>
    'text' in file ? { path, content: Buffer.from(file.text) } : { path, link: file.link },
  )
  const options = { profile: PROFILE, wrapWithDirectory: true } as const
  let root = ''
  for await (const { path, cid } of importer(entries, { put: async (cid) => cid }, options)) {
    if (path === '') root = `${cid}`
  }
  return root
}

/** Some values as a stream. */
export async function* each<T>(values: Iterable<T>): AsyncGenerator<T> {
  yield* values
}
