/** Checks a push's objects, on a real repository without agentd. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir } from 'node:fs/promises'
import { type TestContext, test } from 'node:test'
import { useFolder } from '../../test/support/folder.ts'
import { agentPaths } from '../paths.ts'
import { Confidential } from './confidential.ts'
import { Git } from './git.ts'
import { ensureRepository } from './layout.ts'
import { checkHistory } from './push-history.ts'
import { NO_COMMIT, type Repository } from './repository.ts'

const VALUE = 'value-of-a-secret'

async function open(t: TestContext) {
  const home = await useFolder('berth-history-', t)
  const paths = agentPaths(home)
  await mkdir(paths.root)
  const git = new Git({ paths, diskBytes: 2 ** 30 })
  await ensureRepository(git, {} as Repository['log'])
  const run = (args: string[], input = '') =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
      cwd: paths.root,
      input,
    })
      .toString()
      .trim()
  const check = (commit: string, lookMs?: number) =>
    checkHistory(git, [{ old: NO_COMMIT, new: commit, ref: 'refs/heads/new' }], {
      env: {},
      confidential: new Confidential([VALUE], []),
      ...(lookMs !== undefined && { lookMs }),
    })
  /** A commit of one file that no ref leads to. */
  const commitOf = (path: string, text: string, ...parents: string[]) => {
    const blob = run(['hash-object', '-w', '--stdin'], text)
    const tree = run(['mktree'], `100644 blob ${blob}\t${path}\n`)
    return run(['commit-tree', tree, ...parents.flatMap((parent) => ['-p', parent])], 'm')
  }
  return { run, check, commitOf }
}

test('only objects that no ref leads to are checked [report: pushed secrets]', async (t) => {
  const { run, check, commitOf } = await open(t)
  const first = commitOf('notes', VALUE)
  const second = commitOf('notes', 'clean', first)
  const line = `notes in commit ${first.slice(0, 10)}: it has the value of one of the agent’s secrets.`
  assert.deepEqual(await check(second), [line])
  // Clients cannot reach anything through Berth's own refs.
  run(['update-ref', 'refs/berth/kept/1', first])
  assert.deepEqual(await check(second), [line])
  run(['update-ref', 'refs/heads/old', first])
  assert.deepEqual(await check(second), [])
  assert.deepEqual(await check(NO_COMMIT), [])
})

test('a push that takes too long to check is refused with advice [report: pushed secrets]', async (t) => {
  const { check, commitOf } = await open(t)
  const [line, ...more] = await check(commitOf('a', 'a'), 0)
  assert.match(line ?? '', /^The push is too large to be checked within 0 s: push fewer commits at a time/)
  assert.deepEqual(more, [])
})
