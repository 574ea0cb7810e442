import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, describe, test } from 'node:test'
import { promisify } from 'node:util'
import fc from 'fast-check'
import type { CID } from 'multiformats/cid'
import { buildSnapshot } from '../../../src/agents/snapshots/index.ts'
import { walkFolder } from '../../../src/storage/dag/folder.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'
import { createKuboStorage } from '../../../src/storage/kubo.ts'
import type { Storage } from '../../../src/storage/port.ts'
import { type KuboNode, kuboBinary, startKubo } from '../../support/kubo.ts'
import { failsWith, heldBytes, MIB } from './cases/context.ts'
import { collect, randomBytes } from './content.ts'
import { temporaryFolder } from './node-process.ts'
import { byBytes, each, importedAs, snapshot, type Tree, type TreeFile } from './trees.ts'

const { signal } = new AbortController()
const withoutKubo = kuboBinary ? false : 'BERTH_TEST_KUBO is not set: it names the Kubo binary'

/** Few names, so that files, links and folders often meet at one path. */
const name = fc.constantFrom(
  'a',
  'b',
  'c',
  'a.b',
  'ü',
  'two words',
  'new\nline',
  '😀',
  '-',
  '%2F',
  "'",
  'a\\b',
)
const path = fc.array(name, { minLength: 1, maxLength: 4 }).map((names) => names.join('/'))
const text = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom('', 'x', 'same', 'other', '/', '..') },
  { weight: 1, arbitrary: fc.constant('large '.repeat(MIB / 4)) },
)
const file = fc.oneof(
  { weight: 5, arbitrary: text.map((text) => ({ text })) },
  { weight: 1, arbitrary: fc.constantFrom('a', '../b', '/etc/passwd', 'ü').map((link) => ({ link })) },
)
/** A file that is added or removed (null), along with everything in its way or below it. */
const edits = (maxLength: number) => fc.array(fc.tuple(path, fc.option(file, { freq: 3 })), { maxLength })

/** Files, or folders with a file, with names of 255 bytes: 900 of them are enough for a shard. */
const longNames = (folder: string, below: string, count: number): [string, TreeFile][] =>
  Array.from({ length: count }, (_, i) => [
    `${folder}/${`${i} `.padEnd(255, 'long ')}${below}`,
    { text: `${i}` },
  ])

function edited(tree: Tree, edits: [string, TreeFile | null][]): Tree {
  const result: Tree = new Map(tree)
  for (const [path, file] of edits) {
    for (const other of result.keys()) {
      if (other === path || other.startsWith(`${path}/`) || path.startsWith(`${other}/`)) result.delete(other)
    }
    if (file) result.set(path, file)
  }
  return result
}

for (const driver of ['embedded', 'kubo'] as const) {
  describe(`snapshots on ${driver}`, { skip: driver === 'kubo' && withoutKubo }, () => {
    let storage: Storage
    let kubo: KuboNode | undefined
    const closing: (() => Promise<void>)[] = []

    before(async () => {
      if (driver === 'kubo') {
        kubo = await startKubo()
        closing.push(kubo.stop)
        storage = createKuboStorage({ apiUrl: kubo.apiUrl, network: 'private' })
      } else {
        const { dir, remove } = await temporaryFolder()
        closing.push(remove)
        storage = createEmbeddedStorage({ dir, network: 'private', offline: true })
      }
      await storage.start()
      closing.push(() => storage.stop())
    })
    after(async () => {
      for (const close of closing.reverse()) await close()
    })

    /** Makes snapshots one after the other, and compares each with an import of the whole tree. */
    const follow = async (trees: Tree[]): Promise<void> => {
      let from: { tree: Tree; cid: CID } | null = null
      for (const tree of trees) {
        const { cid } = await snapshot(storage, tree, from)
        assert.equal(`${cid}`, await importedAs(tree))
        assert.equal(await storage.isPinned(cid, { signal }), true)
        assert.deepEqual(await filesOf(storage, cid), inOrder(tree))
        from = { tree, cid }
      }
    }

    test(`snapshots on ${driver} equal an import of all files, whatever changed`, async () => {
      const steps = fc.array(edits(8), { minLength: 1, maxLength: 4 })
      await fc.assert(
        fc.asyncProperty(edits(20), steps, async (first, steps) => {
          const trees = [edited(new Map(), first)]
          for (const step of steps) trees.push(edited(trees.at(-1) ?? new Map(), step))
          await follow(trees)
        }),
        { numRuns: driver === 'embedded' ? 60 : 20 },
      )
    })

    test(`snapshots on ${driver} are sharded where the profile requires it, and only there`, async () => {
      const wide = (count: number): Tree => new Map([...longNames('wide', '', count), ['b', { text: 'b' }]])
      // An entry takes 301 bytes: 870 of them fit in a block of 262,144, and one more does not.
      await follow([wide(870), wide(871), wide(872), wide(870), wide(2), wide(900), new Map()])
    })

    test(`snapshots on ${driver} read and store only what has changed`, async () => {
      const tree: Tree = new Map(
        Array.from({ length: 200 }, (_, i) => [`${i % 10}/${i % 20}/${i}`, { text: `file ${i}` }]),
      )
      const first = await snapshot(storage, tree)
      assert.deepEqual([first.blocks, first.asked.length], [200 + 20 + 10 + 1, 200])
      const next = edited(tree, [
        ['3/13/13', { text: 'changed' }],
        ['3/13/new', { text: 'file 7' }],
        ['4/4/4', null],
      ])
      const second = await snapshot(storage, next, { tree, cid: first.cid })
      assert.equal(`${second.cid}`, await importedAs(next))
      assert.equal(second.asked.length, 2)
      // Two files; 3/13, 3, 4/4, 4 and the root.
      assert.equal(second.blocks, 2 + 5)
      const third = await snapshot(storage, next, { tree: next, cid: second.cid })
      assert.deepEqual([`${third.cid}`, third.blocks, third.bytes], [`${second.cid}`, 0, 0])
    })

    test('an empty snapshot is an empty directory, even after everything was removed', async () => {
      const tree: Tree = new Map([['a/b/c', { text: 'x' }]])
      const empty = 'bafybeiczsscdsbs7ffqz55asqdf3smv6klcw3gofszvwlyarci47bgf354'
      assert.equal(`${(await snapshot(storage, new Map())).cid}`, empty)
      const { cid } = await snapshot(storage, tree)
      assert.equal(`${(await snapshot(storage, new Map(), { tree, cid })).cid}`, empty)
    })

    test('a large file is streamed through a snapshot', async () => {
      const size = 128 * MIB
      const held = heldBytes()
      let most = 0
      async function* measured() {
        let pieces = 0
        for await (const piece of randomBytes('large', size)) {
          if (++pieces % 32 === 0) most = Math.max(most, heldBytes() - held)
          yield piece
        }
      }
      const blob = '0'.repeat(40)
      const { cid, bytes } = await buildSnapshot(storage, {
        base: null,
        changes: each([{ path: 'large', mode: '100644', blob, size, isNew: true }]),
        read: () => each([{ blob, content: measured() }]),
        signal,
      })
      assert.ok(bytes > size && most < 64 * MIB, `${most} bytes were held`)
      assert.equal((await storage.stat(cid, { signal })).size, size)
    })

    test('a snapshot rejects impossible files and missing content', async () => {
      const blob = '0'.repeat(40)
      const build = (path: string, options: { text?: string; mode?: '100644' | '120000' } = {}) => {
        const { text, mode = '100644' } = options
        return buildSnapshot(storage, {
          base: null,
          changes: each([{ path, mode, blob, size: 1, isNew: true }]),
          read: () => each(text === undefined ? [] : [{ blob, content: each([Buffer.from(text)]) }]),
          signal,
        })
      }
      const odd = [
        '',
        '/',
        'a//b',
        '../a',
        'a/..',
        './a',
        '.git/hooks/x',
        'a/.GIT',
        'a\0',
        '\ud800',
        'x'.repeat(256),
      ]
      for (const path of [...odd, `${'a/'.repeat(200)}b`]) {
        await assert.rejects(build(path, { text: 'x' }), failsWith('invalid_object'), path)
      }
      await assert.rejects(build('a'), failsWith('invalid_object'))
      await assert.rejects(
        build('a', { text: 'x'.repeat(4096), mode: '120000' }),
        failsWith('invalid_object'),
      )
      await build(`${'a/'.repeat(199)}b`, { text: 'x' })
    })

    test('a source that fails or hangs ends a snapshot', async () => {
      const failing = buildSnapshot(storage, {
        base: null,
        // biome-ignore lint/correctness/useYield: it fails before its first change
        changes: (async function* () {
          throw new Error('the agent went away')
        })(),
        read: () => each([]),
        signal,
      })
      await assert.rejects(failing, /^Error: the agent went away$/)
      const blob = '0'.repeat(40)
      const never = { [Symbol.asyncIterator]: () => ({ next: () => new Promise<never>(() => {}) }) }
      for (const read of [() => never, () => each([{ blob, content: never }])]) {
        const hanging = buildSnapshot(storage, {
          base: null,
          changes: each([{ path: 'a', mode: '100644', blob, size: 1, isNew: true }]),
          read,
          signal: AbortSignal.timeout(50),
        })
        await assert.rejects(hanging, failsWith('aborted'))
      }
    })

    // Only Kubo has `ipfs add`.
    if (driver === 'embedded') return
    test('snapshots on kubo equal what `ipfs add -r` makes of the files', async () => {
      const files = longNames('files', '', 900)
      const folders = longNames('folders', '/file', 900)
      const links: [string, TreeFile][] = [
        ['files/link', { link: 'nowhere' }],
        ['link', { link: '../ü' }],
      ]
      const odd = ['ü ä', 'new\nline', 'c\\', 'd\\/e', '😀/…', '%2F', '.hidden/x'].map(
        (path): [string, TreeFile] => [path, { text: path }],
      )
      const tree: Tree = new Map([...files, ...folders, ...links, ...odd])
      const first = await snapshot(storage, tree)
      assert.equal(`${first.cid}`, await ipfsAdd(kubo, tree))
      const next: Tree = new Map([
        ...files.slice(0, 100),
        ...folders.slice(0, 880),
        ['link/x', { text: 'x' }],
      ])
      const second = await snapshot(storage, next, { tree, cid: first.cid })
      assert.equal(`${second.cid}`, await ipfsAdd(kubo, next))
      const third = await snapshot(storage, tree, { tree: next, cid: second.cid })
      assert.equal(`${third.cid}`, `${first.cid}`)
    })
  })
}

/** A folder by path, as `walkFolder` yields it. */
async function filesOf(storage: Storage, cid: CID): Promise<[string, string, string][]> {
  const files: [string, string, string][] = []
  for await (const { path, type, size, target, content } of walkFolder(storage, cid, { signal })) {
    const bytes = await collect(content())
    assert.equal(bytes.length, size)
    if (type === 'symlink') assert.equal(target, `${bytes}`)
    files.push([path, type, `${bytes}`])
  }
  return files.sort(([a], [b]) => Buffer.compare(Buffer.from(a), Buffer.from(b)))
}

const inOrder = (tree: Tree): [string, string, string][] =>
  byBytes(tree.keys()).map((path) => {
    const file = tree.get(path)
    if (!file) throw new Error(path)
    return 'text' in file ? [path, 'file', file.text] : [path, 'symlink', file.link]
  })

/** The CID that Kubo's own command creates from files on a disk. */
async function ipfsAdd(kubo: KuboNode | undefined, tree: Tree): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), 'berth-tree-'))
  try {
    for (const [path, file] of tree) {
      const target = join(dir, path)
      await mkdir(dirname(target), { recursive: true })
      await ('text' in file ? writeFile(target, file.text) : symlink(file.link, target))
    }
    const env = { ...process.env, IPFS_PATH: kubo?.repo }
    const args = ['add', '--recursive', '--hidden', '--quieter', '--pin=false', dir]
    const { stdout } = await promisify(execFile)(kuboBinary ?? '', args, { env })
    return stdout.trim()
  } finally {
    await rm(dir, { recursive: true })
  }
}
