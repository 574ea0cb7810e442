import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, mkdtemp, rm, stat, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { agentPaths } from '../paths.ts'
import { Git } from './git.ts'
import { putIndex, takeIndex } from './index-file.ts'

test('a copy of an index is not newer than the index', async () => {
  const home = await mkdtemp(join(tmpdir(), 'index-'))
  const paths = agentPaths(home)
  await mkdir(paths.root, { recursive: true })
  execFileSync('git', ['init', '-q', paths.root])
  execFileSync('git', ['-C', paths.root, 'read-tree', '--empty'])
  const git = new Git({ paths, diskBytes: 2 ** 30 })
  await git.prepare()
  const theirs = join(git.dir, 'index')
  const written = 1_700_000_000.9
  await utimes(theirs, written, written)

  assert.equal(await takeIndex(git), true)
  assert.equal((await stat(git.index)).mtimeMs, 1_700_000_000_000)
  await utimes(git.index, written + 5, written + 5)
  assert.equal(await putIndex(git), true)
  assert.equal((await stat(theirs)).mtimeMs, 1_700_000_005_000)
  await rm(home, { recursive: true })
})
