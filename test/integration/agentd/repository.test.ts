/** The agent's root as a git repository: commits, how they are read, and what must stay out of them. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmod, mkdir, readFile, rm, symlink, truncate, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import type { TreeChange } from '../../../agentd/repository/protocol.ts'
import { until } from '../../support/processes.ts'
import { TOKEN } from './agentd.ts'
import { RepositoryWorld, useRepository } from './repository.ts'

const world = await useRepository()
const { root, git, put, commit, status: repository, files } = world

async function text(
  path: string,
  init: RequestInit = {},
): Promise<{ status: number; text: string; truncated: boolean }> {
  const response = await fetch(world.agentd.url(path), {
    ...init,
    headers: { authorization: `Bearer ${TOKEN}` },
  })
  return {
    status: response.status,
    text: await response.text(),
    truncated: response.headers.get('truncated') === 'true',
  }
}

async function changes(to: string, from?: string): Promise<TreeChange[]> {
  const query = from ? `from=${from}&to=${to}` : `to=${to}`
  const answer = await text(`/v1/repository/changes?${query}`)
  assert.equal(answer.status, 200, answer.text)
  return answer.text
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line))
}

test('a change is committed once', async () => {
  assert.deepEqual(await repository(), { head: null, dirty: true, pushed: null })
  const empty = await commit()
  assert.deepEqual([empty.isNew, files(empty.commit)], [true, []])
  assert.deepEqual(await repository(), { head: empty.commit, dirty: false, pushed: null })

  await put('workspace/a.md', 'a')
  await put('.gitignore', 'ignored\n')
  await put('ignored/x', 'x')
  assert.equal((await repository()).dirty, true)
  const first = await commit({ message: 'feat: begin' })
  assert.equal(first.isNew, true)
  assert.deepEqual(files(first.commit), ['.gitignore', 'workspace/a.md'])
  assert.equal(git('log', '-1', '--format=%an <%ae> %cn %s'), 'Berth <agent@berth.invalid> Berth feat: begin')
  assert.equal(git('rev-parse', 'main^{tree}'), first.tree)
  assert.equal(git('rev-parse', 'main^'), empty.commit)
  const object = Buffer.from(first.object, 'base64').toString()
  assert.equal(object.trim(), git('cat-file', 'commit', first.commit))
  // The agent's own git sees a clean tree.
  assert.equal(git('status', '--porcelain'), '')

  const again = await commit()
  assert.deepEqual([again.isNew, again.commit], [false, first.commit])
  await rm(join(root, 'workspace/a.md'))
  assert.deepEqual(files((await commit()).commit), ['.gitignore'])
})

test('the files of a commit are one pack and unchanged', async () => {
  const text = 'the same line\n'.repeat(1000)
  await Promise.all(Array.from({ length: 40 }, (_, i) => put(`data/${i}.txt`, `${i}\n${text}`)))
  const { commit: made } = await commit()
  assert.match(git('count-objects', '-v'), /^in-pack: 4[0-9]$[\s\S]*^packs: 1$/m)
  assert.equal(git('show', `${made}:data/7.txt`), `7\n${text}`.trim())
  // Text stays text: only that one call sets the size above which git treats a file as large.
  await put('data/7.txt', 'seven\n')
  assert.match(git('diff', '--stat'), /1 insertion/)
  git('fsck', '--strict')
})

test('a commit of much more than 32 MiB has several packs', async () => {
  const parts = Array.from({ length: 5 }, () => randomBytes(10_000_000))
  await Promise.all(parts.map((bytes, i) => writeFile(join(root, `${i}`), bytes)))
  await commit()
  assert.match(git('count-objects', '-v'), /^packs: 2$/m)
  git('fsck', '--strict')
})

test('commits work if the agent commits itself, leaves its branch or deletes the repository', async () => {
  await put('a', 'a')
  const first = await commit()
  await put('b', 'b')
  git('add', '-A')
  git('commit', '-qm', 'mine')
  const mine = git('rev-parse', 'HEAD')
  const taken = await commit()
  assert.deepEqual([taken.isNew, taken.commit], [false, mine])

  git('checkout', '-q', '--detach', first.commit)
  await put('c', 'c')
  const detached = await commit()
  assert.deepEqual(files(detached.commit), ['a', 'c'])
  assert.deepEqual([git('rev-parse', 'HEAD'), git('rev-parse', 'main')], [detached.commit, mine])

  await rm(join(root, '.git'), { recursive: true })
  assert.equal((await repository()).head, null)
  const anew = await commit()
  assert.deepEqual([anew.isNew, files(anew.commit)], [true, ['a', 'c']])
  assert.equal(git('rev-list', '--count', 'main'), '1')

  // Half of the repository, or something else in place of it.
  await rm(join(root, '.git/objects'), { recursive: true })
  assert.deepEqual(files((await commit()).commit), ['a', 'c'])
  await rm(join(root, '.git'), { recursive: true })
  await put('.git', 'gitdir: /nowhere')
  assert.deepEqual(files((await commit()).commit), ['a', 'c'])
  await put('.git/HEAD', 'junk')
  assert.deepEqual(files((await commit()).commit), ['a', 'c'])
})

test('the last commit is still known if git finds no repository in the folder', async () => {
  await put('a', 'a')
  const { commit: head } = await commit()
  await put('.git/HEAD', 'junk')
  assert.equal((await repository()).head, head)
  await rm(join(world.agentd.home, '.berth/git'), { recursive: true })
  assert.equal((await repository()).head, head)
  assert.equal((await commit()).isNew, false)
  // Operations that failed because the folder was missing are not retried before agentd restarts.
  await world.agentd.kill('SIGKILL')
  await world.boot()
  assert.equal((await repository()).dirty, false)
})

test('changes, blobs, diff and files describe the content of commits', async () => {
  await put('a b', 'one\ntwo\n')
  await put('run', '#!/bin/sh\n')
  await put('gone', 'gone\n')
  await put('turns', 'file\n')
  await put('ö', 'ö')
  await chmod(join(root, 'run'), 0o755)
  await symlink('a b', join(root, 'link'))
  const from = await commit()
  await put('a b', 'one\nthree\n')
  await rm(join(root, 'gone'))
  await rm(join(root, 'turns'))
  await put('turns/into', 'folder\n')
  await put('new', 'new')
  const to = await commit()
  // Another call may be copying the index at that moment; reading commits needs no index.
  await truncate(join(world.agentd.home, '.berth/git/index'), 20)

  const all = await changes(from.commit)
  assert.deepEqual(
    all.map((change) => 'blob' in change && [change.path, change.mode, change.size, change.isNew]),
    [
      ['a b', '100644', 8, true],
      ['gone', '100644', 5, true],
      ['link', '120000', 3, true],
      ['run', '100755', 10, true],
      ['turns', '100644', 5, true],
      ['ö', '100644', 2, true],
    ],
  )
  const id = (path: string) => git('rev-parse', `${to.commit}:${path}`)
  const file = { mode: '100644' } as const
  assert.deepEqual(await changes(to.commit, from.commit), [
    { path: 'a b', ...file, blob: id('a b'), size: 10, isNew: false },
    { path: 'gone', removed: true },
    { path: 'new', ...file, blob: id('new'), size: 3, isNew: true },
    { path: 'turns', removed: true },
    { path: 'turns/into', ...file, blob: id('turns/into'), size: 7, isNew: true },
  ])
  assert.equal((await text(`/v1/repository/changes?to=${'1'.repeat(40)}`)).status, 404)
  assert.equal((await text('/v1/repository/changes?to=HEAD')).status, 400)

  const blobs = [id('new'), id('a b'), id('new')]
  const read = (list: unknown) =>
    text('/v1/repository/blobs', { method: 'POST', body: JSON.stringify({ blobs: list }) })
  assert.equal(
    (await read(blobs)).text,
    `${blobs[0]} 3\nnew\n${blobs[1]} 10\none\nthree\n\n${blobs[2]} 3\nnew\n`,
  )
  assert.deepEqual((await read([])).text, '')
  assert.equal((await read(['1'.repeat(40)])).status, 404)
  assert.equal((await read([id('new'), to.commit])).status, 404)
  assert.equal((await read(['HEAD'])).status, 400)

  const diff = `/v1/repository/diff?from=${from.commit}&to=${to.commit}`
  const whole = await text(diff)
  assert.match(whole.text, /^diff --git a\/a b b\/a b\n[\s\S]*\n-two\n\+three\n/)
  assert.equal(whole.truncated, false)
  const cut = await text(`${diff}&max=200`)
  assert.equal(cut.truncated, true)
  assert.ok(cut.text.length <= 200 && cut.text.endsWith('\n') && whole.text.startsWith(cut.text))
  assert.equal(
    (await text(`/v1/repository/files?commit=${to.commit}`)).text,
    '10 a b\n3 link\n3 new\n10 run\n7 turns/into\n2 ö\n',
  )
  const at = `/v1/repository/file?commit=${from.commit}`
  assert.equal((await text(`${at}&path=a%20b`)).text, 'one\ntwo\n')
  assert.equal((await text(`${at}&path=a%20b&max=3`)).status, 413)
  assert.equal((await text(`${at}&path=turns/into`)).status, 404)
  assert.equal((await text(`${at}&path=../x`)).status, 400)
})

test('nested repositories are kept as files', async () => {
  const inner = (folder: string, ...args: string[]) => git('-C', folder, ...args)
  for (const folder of ['with', 'without', 'deep', 'empty']) {
    await mkdir(join(root, folder), { recursive: true })
    inner(folder, 'init', '-q')
  }
  await put('with/a/x', 'x')
  await put('with/.gitignore', 'ignored')
  await put('with/ignored', 'x')
  inner('with', 'add', '-A')
  inner('with', 'commit', '-qm', 'inner')
  await put('without/y', 'y')
  await mkdir(join(root, 'deep/er'))
  inner('deep/er', 'init', '-q')
  await put('deep/er/z', 'z')
  inner('deep/er', 'add', '-A')
  inner('deep/er', 'commit', '-qm', 'inner')
  await put('plain', 'plain')

  const first = await commit()
  assert.deepEqual(files(first.commit), ['deep/er/z', 'plain', 'with/.gitignore', 'with/a/x', 'without/y'])
  assert.equal((await repository()).dirty, false)
  await put('with/a/new', 'new')
  inner('with', 'add', '-A')
  inner('with', 'commit', '-qm', 'more')
  const second = await commit()
  assert.deepEqual(
    (await changes(second.commit, first.commit)).map(({ path }) => path),
    ['with/a/new'],
  )
  // The agent adds a submodule in its own commit.
  git('rm', '-rq', '--cached', 'with')
  git('add', 'with')
  git('commit', '-qm', 'as a submodule')
  assert.match(git('ls-tree', 'HEAD', 'with'), /^160000/)
  const third = await commit()
  assert.equal(third.tree, second.tree)
})

test('files that cannot be kept are omitted and named; the rest is committed', async () => {
  await put('fine', 'fine')
  await writeFile(Buffer.concat([Buffer.from(join(root, 'bad-')), Buffer.from([0xff])]), 'x')
  execFileSync('mkfifo', [join(root, 'fifo')])
  const first = await commit()
  assert.deepEqual(files(first.commit), ['fine'])
  assert.deepEqual(first.leftOut, ['bad-\ufffd'])
  // Names that git reserves on other systems, and a file that cannot be read.
  await put('git~1', 'x')
  await put('.GIT/config', 'x')
  await put('closed', 'x')
  await chmod(join(root, 'closed'), 0)
  const second = await commit()
  const isRoot = process.getuid?.() === 0
  const closed = isRoot ? [] : ['closed']
  assert.deepEqual(second.leftOut.sort(), ['.GIT/config', 'bad-\ufffd', ...closed, 'git~1'])
  // Otherwise it would be saved again and again.
  assert.equal((await repository()).dirty, false)
  // In the middle of a merge, with an invalid index.
  await put('.git/index', 'junk')
  await put('more', 'more')
  const third = await commit()
  assert.deepEqual(files(third.commit), [...(isRoot ? ['closed'] : []), 'fine', 'more'])
})

test('manifest.json lists the attached skills and secrets and keeps everything else', async () => {
  const manifest = {
    version: 1,
    agent: { name: 'A' },
    skills: [
      { name: 'one', clawhub_slug: '@x/one', note: 'n' },
      { name: 'gone', cid: 'c' },
    ],
    secrets: [{ name: 'NEEDED', description: 'why', required: true }],
  }
  await put('manifest.json', JSON.stringify(manifest))
  const attached = { skills: [{ name: 'one', cid: 'bafy1' }], secrets: [{ name: 'NEEDED' }, { name: 'NEW' }] }
  const first = await commit({ manifest: attached })
  const written = await readFile(join(root, 'manifest.json'), 'utf8')
  assert.deepEqual(JSON.parse(written), {
    ...manifest,
    skills: [{ note: 'n', name: 'one', cid: 'bafy1' }],
    secrets: [...manifest.secrets, { name: 'NEW' }],
  })
  assert.equal(written, `${JSON.stringify(JSON.parse(written), null, 2)}\n`)
  assert.equal((await commit({ manifest: attached })).commit, first.commit)
  await put('manifest.json', `\uFEFF${JSON.stringify(manifest)}`)
  await commit({ manifest: attached })
  assert.equal(await readFile(join(root, 'manifest.json'), 'utf8'), written)
  for (const broken of ['{', '[]', '']) {
    await put('manifest.json', broken)
    await commit({ manifest: attached })
    assert.equal(await readFile(join(root, 'manifest.json'), 'utf8'), broken)
  }
  await rm(join(root, 'manifest.json'))
  await commit({ manifest: attached })
  await assert.rejects(readFile(join(root, 'manifest.json')))
})

test('invalid requests are rejected', async () => {
  for (const json of [
    null,
    {},
    { message: '' },
    { message: 'a\0' },
    { message: 'x', manifest: {} },
    { message: 'x', later: 1 },
  ])
    assert.equal((await world.agentd.call('POST', '/v1/repository/commit', { json, epoch: 1 })).status, 400)
  const json = { message: 'x' }
  assert.equal((await world.agentd.call('POST', '/v1/repository/commit', { json })).status, 400)
  assert.equal((await world.agentd.call('POST', '/v1/repository/commit', { json, epoch: 0 })).status, 409)
})

test('many objects are packed and none is lost', async (t) => {
  // The shared agentd waits longer each time that a test's repository was removed while agentd looked at it.
  const own = await RepositoryWorld.start()
  t.after(() => own.close())
  await own.anew()
  await own.put('kept', 'of nobody')
  const unreachable = own.git('hash-object', '-w', 'kept')
  await Promise.all(Array.from({ length: 2100 }, (_, i) => own.put(`many/${i}`, `${i}`)))
  // The agent's own git stores each as a loose object; a commit by agentd would store them as one pack.
  own.git('add', 'many')
  const { commit: id } = await own.commit()
  await until('they are packed', () => own.git('count-objects').startsWith('0 '), 300_000)
  assert.equal(own.git('fsck', '--no-dangling'), '')
  assert.equal(own.files(id).length, 2101)
  assert.equal(own.git('cat-file', 'blob', unreachable), 'of nobody')
  assert.equal((await own.commit()).isNew, false)
})
