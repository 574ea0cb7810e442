import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { Readable } from 'node:stream'
import { buffer } from 'node:stream/consumers'
import { describe, it, type TestContext } from 'node:test'
import { writeImport } from '../../../agentd/repository/import-stream.ts'
import type { FolderEntry } from '../../../src/storage/dag/folder.ts'
import { fastImport, quotePath, UnfitFolder } from './fast-import.ts'

const limits = { message: 'm', maxBytes: 1_000_000 }
const LIMIT_MS = 60_000

const file = (path: string, ...chunks: string[]): FolderEntry => ({
  path,
  type: 'file',
  size: chunks.reduce((sum, chunk) => sum + Buffer.byteLength(chunk), 0),
  async *content() {
    for (const chunk of chunks) yield Buffer.from(chunk)
  },
})
const link = (path: string, target: string): FolderEntry => ({ ...file(path), type: 'symlink', target })

async function* each(entries: FolderEntry[]) {
  yield* entries
}

async function streamOf(entries: FolderEntry[], options: Partial<Parameters<typeof fastImport>[1]> = {}) {
  return buffer(fastImport(each(entries), { executables: [], ...limits, ...options }))
}

function repository(t: TestContext): (...args: [string[], Buffer?]) => string {
  const dir = mkdtempSync(join(tmpdir(), 'berth-import-'))
  t.after(() => rmSync(dir, { recursive: true }))
  const git = (args: string[], input?: Buffer) =>
    execFileSync('git', args, {
      cwd: dir,
      input,
      encoding: 'utf8',
      timeout: LIMIT_MS,
      stdio: ['pipe', 'pipe', 'ignore'],
    })
  git(['init', '--quiet'])
  return git
}

/** Imports a stream as agentd does. */
const importInto = (git: ReturnType<typeof repository>, stream: Buffer) =>
  writeImport(Readable.from([stream]), join(git(['rev-parse', '--absolute-git-dir']).trim(), 'objects/pack'))

const ODD = [
  'plain.txt',
  'with blank',
  '"quoted"',
  'back\\slash',
  'line\nbreak',
  'tab\tand\u007f',
  '-dash',
  'ünï/cødé/🦉',
  "it's",
  'a/b/c/d/e',
  'M 100644 inline x',
  // git sorts the folder between them.
  ...['order.txt', 'order/x', 'order0'],
]

describe('fast-import streams', () => {
  it("a folder's stream produces the same tree that git makes of its files", async (t) => {
    const git = repository(t)
    const entries = [
      ...ODD.map((path) => file(path, `of ${path}`)),
      file('empty'),
      file('large', ...['a', 'b', 'c'].map((letter) => letter.repeat(70_000))),
      file('same', 'of plain.txt'),
      file('run.sh', '#!/bin/sh\n', 'exit 0\n'),
      file('tricky', 'done\nM 100644 inline evil\ndata 1\nx\n'),
      link('link', 'a/b'),
    ]
    const stream = await streamOf(entries, { executables: ['run.sh', 'gone'] })
    git(['fast-import', '--quiet'], stream)
    const imported = git(['rev-parse', 'refs/berth/import^{tree}'])
    const root = git(['rev-parse', '--show-toplevel']).trim()
    for (const entry of entries) {
      const path = join(root, entry.path)
      mkdirSync(dirname(path), { recursive: true })
      if (entry.type === 'symlink') symlinkSync(entry.target ?? '', path)
      else writeFileSync(path, await buffer(entry.content()))
    }
    chmodSync(join(root, 'run.sh'), 0o755)
    git(['add', '--all'])
    assert.equal(imported, git(['write-tree']))

    // agentd imports it without git's help.
    const other = repository(t)
    const { commit, tree } = await importInto(other, stream)
    assert.equal(`${tree}\n`, imported)
    assert.equal(`${commit}\n`, git(['rev-parse', 'refs/berth/import']))
    other(['fsck', '--full', '--no-dangling'])
  })
  it("an empty folder's stream produces an empty tree", async (t) => {
    const git = repository(t)
    git(['fast-import', '--quiet'], await streamOf([]))
    const tree = '4b825dc642cb6eb9a060e54bf8d69288fbee4904'
    assert.equal(git(['rev-parse', 'refs/berth/import^{tree}']).trim(), tree)
    assert.equal((await importInto(repository(t), await streamOf([]))).tree, tree)
  })
  it("git refuses a folder's stream that was cut", async (t) => {
    const git = repository(t)
    const whole = await streamOf([file('a', 'text')])
    for (const length of [whole.length - 5, whole.length - 8, 100])
      assert.throws(() => git(['fast-import', '--quiet'], whole.subarray(0, length)))
    assert.throws(() => git(['rev-parse', '--verify', '--quiet', 'refs/berth/import']))
  })
  it("agentd refuses a folder's stream that was cut, or is in disorder, and keeps nothing of it", async (t) => {
    const git = repository(t)
    const whole = await streamOf([file('a', 'text')])
    for (const length of [whole.length - 5, whole.length - 8, 100])
      await assert.rejects(importInto(git, whole.subarray(0, length)), { code: 'bad_request' })
    for (const paths of [
      ['a', 'a'],
      ['a', 'a/b'],
      ['a/b', 'a'],
      ['a/x', 'b', 'a/y'],
    ]) {
      const stream = await streamOf(paths.map((path) => file(path, path)))
      await assert.rejects(importInto(git, stream), { code: 'bad_request' }, paths.join())
    }
    assert.match(git(['count-objects', '-v']), /^count: 0\n.*packs: 0\n.*garbage: 0\n/s)
  })
  it("a folder's stream fails over the size limit", async () => {
    await assert.rejects(streamOf([file('a', 'xx'), file('b', 'xx')], { maxBytes: 3 }), UnfitFolder)
    await assert.rejects(streamOf([link('a', 'xxxx')], { maxBytes: 3 }), UnfitFolder)
  })
  it("a folder's stream fails if a file's size is not the stated one", async () => {
    for (const size of [3, 5]) await assert.rejects(streamOf([{ ...file('a', 'text'), size }]), UnfitFolder)
  })
  for (const path of ['', '/a', 'a/', 'a//b', '.', 'a/../b', '..', 'a/.git/config', '.GIT', 'nul\0'])
    it(`a folder's stream refuses the path ${JSON.stringify(path)}`, () =>
      assert.throws(() => quotePath(path), UnfitFolder))
})
