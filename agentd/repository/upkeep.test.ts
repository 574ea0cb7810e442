/** Kept commits are dropped in time and collected, on a real repository. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, globSync } from 'node:fs'
import { mkdir, utimes, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { useFolder } from '../../test/support/folder.ts'
import { until } from '../../test/support/processes.ts'
import { agentPaths } from '../paths.ts'
import { Git } from './git.ts'
import { keptRef } from './kept.ts'
import { ensureRepository, removeLeftovers } from './layout.ts'
import { Mutex, type Repository } from './repository.ts'
import { RETRY_MS, SOON_MS, Upkeep } from './upkeep.ts'

const DAY = 86_400_000
const KEPT = 'refs/berth/kept'

async function open(t: TestContext) {
  const home = await useFolder('berth-upkeep-', t)
  const paths = agentPaths(home)
  await mkdir(paths.root)
  const warnings: string[] = []
  const log = { warn: (text: string) => void warnings.push(text) } as unknown as Repository['log']
  const git = new Git({ paths, diskBytes: 2 ** 30 })
  await ensureRepository(git, log)
  const repository: Repository = {
    git,
    root: paths.root,
    log,
    mutex: new Mutex(),
    secrets: () => [],
    knowsSecrets: () => true,
  }
  const run = (args: string[], input = '') =>
    execFileSync('git', ['-c', 'user.name=A', '-c', 'user.email=a@example.com', ...args], {
      cwd: paths.root,
      input,
    })
      .toString()
      .trim()
  return {
    git,
    warnings,
    run,
    upkeep: new Upkeep(repository),
    /** A commit of one file that nothing refers to. */
    make(text: string): { commit: string; blob: string } {
      const blob = run(['hash-object', '-w', '--stdin'], text)
      const tree = run(['mktree'], `100644 blob ${blob}\tfile\n`)
      return { commit: run(['commit-tree', tree, '-m', text]), blob }
    },
    keep: (commit: string, daysAgo: number) =>
      run(['update-ref', `${KEPT}/${Date.now() - daysAgo * DAY}-${commit}`, commit]),
    kept: () => run(['for-each-ref', '--format=%(objectname)', KEPT]).split('\n').filter(Boolean).sort(),
    /** Makes all objects this many days older. */
    async age(days: number) {
      const at = new Date(Date.now() - days * DAY)
      for (const path of globSync(join(git.dir, 'objects/**'))) await utimes(path, at, at)
    },
    has(id: string): boolean {
      try {
        run(['cat-file', '-e', id])
        return true
      } catch {
        return false
      }
    },
  }
}

test('a commit kept for a month is collected; younger ones and staged files stay', async (t) => {
  const { age, git, has, keep, kept, make, run, upkeep } = await open(t)
  const head = make('head')
  run(['update-ref', 'HEAD', head.commit])
  const [old, young] = [make('old'), make('young')]
  keep(old.commit, 31)
  keep(young.commit, 29)
  const staged = run(['hash-object', '-w', '--stdin'], 'staged')
  run(['update-index', '--add', '--cacheinfo', `100644,${staged},staged`])
  await age(15)
  const fresh = make('about to be referred to')
  await upkeep.look()
  assert.deepEqual(kept(), [young.commit])
  for (const { commit, blob } of [head, young, fresh]) assert.ok(has(commit) && has(blob))
  assert.ok(has(staged))
  assert.ok(!has(old.commit) && !has(old.blob))
  assert.equal(run(['fsck', '--connectivity-only', '--no-dangling']), '')
  assert.equal(existsSync(join(git.dir, 'berth-collect')), false)
})

test('the newest hundred kept commits stay, each once', async (t) => {
  const { keep, kept, run, upkeep } = await open(t)
  const at = Date.now() - DAY
  const by = 'committer A <a@example.com> 1700000000 +0000'
  const stream = Array.from(
    { length: 103 },
    (_, i) => `commit ${KEPT}/${at + i}-x\n${by}\ndata 4\nn${`${i}`.padStart(3)}\n`,
  )
  run(['fast-import', '--quiet'], stream.join(''))
  const byAge = run(['for-each-ref', '--format=%(objectname)', KEPT]).split('\n')
  keep(byAge.at(-1) as string, 2)
  await upkeep.look()
  assert.deepEqual(kept(), byAge.slice(3).sort())
})

test('the month of a commit that an older agentd kept begins now', async (t) => {
  const { kept, make, run, upkeep } = await open(t)
  const { commit } = make('of an older agentd')
  run(['update-ref', `${KEPT}/${commit}`, commit])
  await upkeep.look()
  assert.deepEqual(kept(), [commit])
  assert.match(run(['for-each-ref', '--format=%(refname)', KEPT]), new RegExp(`^${KEPT}/\\d{13}-${commit}$`))
  assert.match(keptRef(commit), new RegExp(`^${KEPT}/\\d{13}-${commit}$`))
})

test('a failed check is retried, and work begun before agentd was killed is finished', async (t) => {
  const retries: (() => void)[] = []
  const wait = globalThis.setTimeout
  const held = (callback: () => void, ms?: number) =>
    ms === RETRY_MS ? wait(() => retries.push(callback), 0) : wait(callback, ms)
  t.mock.method(globalThis, 'setTimeout', held as typeof wait)
  const { age, git, has, keep, kept, make, run, upkeep, warnings } = await open(t)
  run(['update-ref', 'HEAD', make('head').commit])
  const old = make('old')
  keep(old.commit, 31)
  await age(15)
  // A killed git leaves these files.
  for (const name of ['packed-refs.lock', 'packed-refs.new']) await writeFile(join(git.dir, name), '')
  await upkeep.look()
  assert.match(warnings.join(), /^[^,]* again in 30 s: git update-ref: [^,]*packed-refs/)
  assert.deepEqual(kept(), [old.commit])
  await upkeep.look()
  assert.equal(warnings.length, 1)
  await removeLeftovers(git)
  const again = await until('a retry is scheduled', () => retries[0])
  again()
  const mark = join(git.dir, 'berth-collect')
  await until('the retry has run', () => kept().length === 0 && !has(old.commit) && !existsSync(mark))

  // The refs are dropped, and nothing is collected yet.
  const other = make('other')
  await age(15)
  await mkdir(mark)
  await upkeep.look()
  assert.ok(!has(other.commit))
})

test('upkeep waits until new commits have been read, and runs once for many commits', async (t) => {
  const looks: (() => void)[] = []
  const wait = globalThis.setTimeout
  const held = (callback: () => void, ms?: number) =>
    ms === SOON_MS ? wait(() => looks.push(callback), 0) : wait(callback, ms)
  t.mock.method(globalThis, 'setTimeout', held as typeof wait)
  const { has, keep, kept, make, run, upkeep } = await open(t)
  run(['update-ref', 'HEAD', make('head').commit])
  const old = make('old')
  keep(old.commit, 31)
  for (let i = 0; i < 3; i++) upkeep.soon()
  const look = await until('a check is scheduled', () => looks[0])
  assert.deepEqual([looks.length, kept()], [1, [old.commit]])
  look()
  await until('the check has run', () => kept().length === 0)
  assert.ok(has(old.commit))
  upkeep.soon()
  await until('the next check is scheduled', () => looks[1])
})

test('nothing is collected while the agent has additional working trees', async (t) => {
  const { age, git, has, keep, make, run, upkeep } = await open(t)
  run(['update-ref', 'HEAD', make('head').commit])
  run(['worktree', 'add', '-q', '--detach', join(git.dir, '../../other')])
  const old = make('old')
  keep(old.commit, 31)
  await age(15)
  await upkeep.look()
  assert.ok(has(old.commit))
  run(['worktree', 'remove', '--force', join(git.dir, '../../other')])
  await upkeep.look()
  assert.ok(!has(old.commit))
})
