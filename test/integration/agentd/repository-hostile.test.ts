/** The agent's repository at its most hostile: configurations that hang, concurrent writers, and kills halfway. */
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { chmod, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { processesOf, TOKEN, until } from './agentd.ts'
import { useRepository } from './repository.ts'

const world = await useRepository()

const url = () => world.agentd.url('/v1/git')
const TOKEN_HEADER = `http.extraHeader=Authorization: Bearer ${TOKEN}`
const client = (...args: string[]) =>
  execFileSync('git', ['-c', TOKEN_HEADER, '-c', 'user.name=C', '-c', 'user.email=c@d.e', ...args], {
    stdio: ['ignore', 'pipe', 'pipe'],
  })
    .toString()
    .trim()

test('a configuration that the agent writes is never run and blocks nothing', async () => {
  const place = await mkdtemp(join(tmpdir(), 'hostile-'))
  const ran = join(place, 'ran')
  await world.put('hang.sh', `#!/bin/sh\ntouch ${ran}\nsleep 1000\n`)
  const script = join(world.root, 'hang.sh')
  await chmod(script, 0o755)
  await world.commit()
  client('clone', '-q', url(), join(place, 'c'))
  const settings = [
    ['core.fsmonitor', script],
    ['core.hooksPath', join(world.root, '.git/hooks')],
    ['filter.hang.clean', script],
    ['filter.hang.smudge', script],
    ['filter.hang.process', script],
    ['diff.external', script],
    ['uploadpack.packObjectsHook', script],
    ['commit.gpgSign', 'true'],
    ['gpg.program', script],
    ['core.editor', script],
    ['core.worktree', '/'],
    ['receive.denyCurrentBranch', 'refuse'],
    ['transfer.hideRefs', 'refs/heads'],
    ['extensions.unknown', 'true'],
  ] as const
  for (const [name, value] of settings) world.git('config', '-f', '.git/config', name, value)
  for (const hook of [
    'pre-receive',
    'update',
    'post-receive',
    'reference-transaction',
    'post-index-change',
  ]) {
    await world.put(`.git/hooks/${hook}`, `#!/bin/sh\nexec ${script}\n`)
    await chmod(join(world.root, '.git/hooks', hook), 0o755)
  }
  // An include that nobody ever writes to, and an invalid git configuration.
  execFileSync('mkfifo', [join(world.root, '.git/include')])
  await world.put(
    '.git/config',
    `${await readFile(join(world.root, '.git/config'), 'utf8')}[include]\n\tpath = include\n[[\n`,
  )
  await world.put('.gitattributes', '* filter=hang diff=hang text eol=crlf working-tree-encoding=UTF-16\n')
  await world.put('lines', 'one\r\ntwo\n')

  const { commit } = await world.commit()
  assert.equal((await world.status()).dirty, false)
  const at = `/v1/repository/file?commit=${commit}&path=lines`
  const kept = await fetch(world.agentd.url(at), { headers: { authorization: `Bearer ${TOKEN}` } })
  assert.equal(await kept.text(), 'one\r\ntwo\n')
  client('-C', join(place, 'c'), 'pull', '-q')
  await writeFile(join(place, 'c/pushed'), 'pushed')
  client('-C', join(place, 'c'), 'add', 'pushed')
  client('-C', join(place, 'c'), 'commit', '-qm', 'x')
  client('-C', join(place, 'c'), 'push', '-q')
  assert.equal(await readFile(join(world.root, 'pushed'), 'utf8'), 'pushed')
  const reset = await world.agentd.call('POST', '/v1/repository/reset', { json: { commit }, epoch: 1 })
  assert.equal(reset.status, 200)
  await assert.rejects(readFile(ran))
  await rm(place, { recursive: true })
})

test('a commit is consistent during concurrent writes', async () => {
  execFileSync('git', ['init', '-q', join(world.root, 'inner')])
  await world.put('inner/file', 'of a repository without a commit')
  for (let i = 0; i < 50; i++) await world.put(`f${i % 5}/${i}`, 'x'.repeat(100_000))
  const program = `
    const fs = require('fs')
    const [root] = process.argv.slice(1)
    for (let i = 0; ; i++) {
      const name = root + '/f' + (i % 5) + '/' + (i % 50)
      try {
        if (i % 7 === 0) fs.truncateSync(name, i % 50_000)
        else if (i % 3 === 0) fs.unlinkSync(name)
        else fs.writeFileSync(name, String(i).repeat(30_000))
        for (let n = 0; n < 10; n++) {
          fs.writeFileSync(root + '/f1/temporary' + process.pid + i + n, 'x')
          fs.unlinkSync(root + '/f1/temporary' + process.pid + i + n)
        }
      } catch {}
    }`
  const writers = [1, 2].map(() => spawn(process.execPath, ['-e', program, world.root], { stdio: 'ignore' }))
  try {
    const commits = []
    for (let i = 0; i < 5; i++) commits.push(await world.commit())
    assert.ok(commits.some(({ isNew }) => isNew))
    const { commit } = await world.commit()
    assert.ok(world.files(commit).includes('inner/file'))
    assert.ok(!world.files(commit).includes('inner/.berth'))
  } finally {
    for (const writer of writers) writer.kill('SIGKILL')
  }
  assert.equal(world.git('fsck', '--no-dangling', '--full'), '')
  await world.commit()
  assert.equal(world.git('status', '--porcelain'), '')
})

test('leftover locks block nothing', async () => {
  await world.put('a', 'a')
  await world.commit()
  await world.put('.git/index.lock', '')
  await world.put('b', 'b')
  // The commit does not wait for a fresh lock, like the one of a git command that is running now.
  assert.deepEqual(world.files((await world.commit()).commit), ['a', 'b'])
  await world.put('.git/refs/heads/main.lock', '')
  await world.agentd.kill('SIGKILL')
  await world.boot()
  await world.put('c', 'c')
  assert.deepEqual(world.files((await world.commit()).commit), ['a', 'b', 'c'])
  assert.equal(world.git('status', '--porcelain'), '')
})

test('agentd recovers from a kill at any moment of a commit, a push or a reset', async () => {
  const place = await mkdtemp(join(tmpdir(), 'killed-'))
  for (let i = 0; i < 300; i++) await world.put(`files/${i}`, `${i}`.repeat(2000))
  const first = await world.commit()
  const clone = join(place, 'c')
  client('clone', '-q', url(), clone)
  const started = Date.now()
  await writeFile(join(clone, 'timed'), 'x')
  client('-C', clone, 'add', '-A')
  client('-C', clone, 'commit', '-qm', 'timed')
  client('-C', clone, 'push', '-q', url(), 'HEAD:main')
  const pushMs = Date.now() - started
  const timed = client('-C', clone, 'rev-parse', 'HEAD')
  await world.agentd.call('DELETE', `/v1/repository/pushed?commit=${timed}`, { epoch: 1 })
  let pushes = 0
  for (let round = 0; round < 6; round++) {
    client('-C', clone, 'fetch', '-q', url(), 'main')
    client('-C', clone, 'reset', '-q', '--hard', 'FETCH_HEAD')
    for (let i = 0; i < 100; i++) await writeFile(join(clone, `pushed${i}`), `${round} ${i}`)
    client('-C', clone, 'add', '-A')
    client('-C', clone, 'commit', '-qm', `push ${round}`)
    const pushed = client('-C', clone, 'rev-parse', 'HEAD')
    await world.put('mine', `${round}`)
    const kinds = [
      () => world.commit(),
      () => world.agentd.call('POST', '/v1/repository/reset', { json: { commit: first.commit }, epoch: 1 }),
    ]
    if (round % 3 < 2) kinds[round % 3]?.().catch(() => {})
    else {
      await world.commit()
      client('-C', clone, '-c', 'pull.rebase=true', 'pull', '-q', url(), 'main')
    }
    const push = spawn('git', ['-c', TOKEN_HEADER, '-C', clone, 'push', '-q', url(), 'HEAD:main'], {
      stdio: 'ignore',
    })
    // The third round lets the push succeed.
    if (round === 2) await until('the push', 120_000, async () => push.exitCode !== null)
    else await sleep(pushMs * Math.random() * 1.5)
    await world.agentd.kill('SIGKILL')
    await until('git has exited', 60_000, async () => push.exitCode !== null || push.signalCode !== null)
    await world.boot()

    const mine = await world.commit()
    const status = await world.status()
    if (status.pushed !== null) {
      pushes++
      assert.equal(status.pushed, client('-C', clone, 'rev-parse', 'HEAD'))
      // The working tree has all of the push.
      assert.equal(await readFile(join(world.root, 'pushed99'), 'utf8'), `${round} 99`)
      await world.agentd.call('DELETE', `/v1/repository/pushed?commit=${status.pushed}`, { epoch: 1 })
    } else assert.notEqual(world.git('rev-parse', 'main'), pushed)
    assert.equal(world.git('status', '--porcelain'), '')
    assert.equal(world.git('fsck', '--no-dangling'), '')
    // The agent's file is in the history or in a kept ref; a reset that was cut off may have removed it since.
    const log = world.git('log', '--all', '--diff-filter=AM', '--format=%H', '--', 'mine')
    const all = log.split('\n').filter(Boolean)
    assert.ok(
      all.some((commit) => world.git('show', `${commit}:mine`) === `${round}`) ||
        mine.commit === first.commit,
    )
  }
  assert.ok(pushes > 0, 'no push went through')
  assert.deepEqual(await processesOf(world.agentd), [])
  await rm(place, { recursive: true })
})

test('concurrent commits, a push and a reset end in one history', async () => {
  const place = await mkdtemp(join(tmpdir(), 'at-once-'))
  await world.put('a', 'a')
  const first = await world.commit()
  const clone = join(place, 'c')
  client('clone', '-q', url(), clone)
  await writeFile(join(clone, 'pushed'), 'pushed')
  client('-C', clone, 'add', '-A')
  client('-C', clone, 'commit', '-qm', 'push')
  await world.put('mine', 'mine')
  const push = spawn('git', ['-c', TOKEN_HEADER, '-C', clone, 'push', '-q'], { stdio: 'ignore' })
  const json = { commit: first.commit }
  const [one, two, reset] = await Promise.all([
    world.commit({ message: 'one' }),
    world.commit({ message: 'two' }),
    world.agentd.call('POST', '/v1/repository/reset', { json, epoch: 1 }),
  ])
  assert.equal(reset.status, 200)
  assert.equal([one, two].filter(({ isNew }) => isNew).length <= 1, true)
  await until('git has exited', 60_000, async () => push.exitCode !== null)
  await world.commit()
  assert.equal(world.git('status', '--porcelain'), '')
  assert.equal(world.git('fsck', '--no-dangling'), '')
  assert.equal(world.git('log', '--all', '--format=%H', '--', 'mine').split('\n').length >= 1, true)
  assert.equal(
    world.git('show', `${world.git('log', '--all', '-1', '--format=%H', '--', 'mine')}:mine`),
    'mine',
  )
  await rm(place, { recursive: true })
})

test('a push whose agentd dies before it updates the working tree is finished by the next one', async () => {
  const record = join(world.agentd.home, '.berth/push.json')
  await world.put('a', 'old')
  await world.put('other', 'old')
  const old = await world.commit()
  await world.put('a', 'new')
  await world.put('b', 'new')
  const pushed = await world.commit()
  // A changed file, a new one, one that must not be kept, and one that cannot be kept.
  const ofTheAgent = ['other', 'mine', 'secrets.txt', 'git~1']
  const stages: [string, () => Promise<void>, string][] = [
    ['before the ref moves', async () => world.git('reset', '-q', '--hard', old.commit) as never, 'old'],
    [
      'before the first file',
      async () => {
        world.git('reset', '-q', '--hard', old.commit)
        world.git('update-ref', 'refs/heads/main', pushed.commit)
        await world.put('other', 'of the agent')
      },
      'new',
    ],
    [
      'between two files',
      async () => {
        world.git('reset', '-q', '--hard', old.commit)
        world.git('update-ref', 'refs/heads/main', pushed.commit)
        await world.put('a', 'ne')
        for (const name of ofTheAgent) await world.put(name, 'of the agent')
      },
      'new',
    ],
    [
      'before the record is cleared',
      async () => world.git('reset', '-q', '--hard', pushed.commit) as never,
      'new',
    ],
  ]
  for (const [stage, arrange, content] of stages) {
    await world.agentd.kill('SIGKILL')
    await rm(join(world.agentd.home, '.berth/pushed.json'), { force: true })
    await arrange()
    await writeFile(record, JSON.stringify({ old: old.commit, new: pushed.commit, ref: 'refs/heads/main' }))
    await world.boot()
    assert.equal(await readFile(join(world.root, 'a'), 'utf8'), content, stage)
    const isPushed = content === 'new'
    assert.equal((await world.status()).pushed, isPushed ? pushed.commit : null, stage)
    await assert.rejects(readFile(record))
    if (stage === 'before the first file' || stage === 'between two files') {
      const names = stage === 'between two files' ? ofTheAgent : ['other']
      for (const name of names)
        assert.equal(await readFile(join(world.root, name), 'utf8'), 'of the agent', name)
      assert.equal((await world.commit()).isNew, true)
      for (const name of ofTheAgent.slice(1)) await rm(join(world.root, name), { force: true })
      await world.commit()
    } else assert.equal((await world.commit()).commit, isPushed ? pushed.commit : old.commit, stage)
    assert.equal(world.git('status', '--porcelain'), '', stage)
  }
})

test('FIFOs in place of files block agentd at most until its restart', async () => {
  await world.put('a', 'a')
  await world.commit()
  const folder = join(world.agentd.home, '.berth')
  for (const name of ['push.json', 'push.json.part', 'pushed.json', 'pushed.json.part']) {
    await rm(join(folder, name), { force: true })
    execFileSync('mkfifo', [join(folder, name)])
  }
  assert.equal((await world.status()).pushed, null)
  await rm(join(world.root, '.git/logs/HEAD'))
  for (const name of ['packed-refs', 'refs/heads/other', 'objects/info/alternates', 'logs/HEAD'])
    execFileSync('mkfifo', [join(world.root, '.git', name)])
  await world.agentd.kill('SIGKILL')
  await world.boot()
  await world.put('b', 'b')
  await world.commit()
  const place = await mkdtemp(join(tmpdir(), 'records-'))
  client('clone', '-q', url(), join(place, 'c'))
  client('-C', join(place, 'c'), 'commit', '-q', '--allow-empty', '-m', 'x')
  client('-C', join(place, 'c'), 'push', '-q')
  assert.equal((await world.status()).pushed, client('-C', join(place, 'c'), 'rev-parse', 'HEAD'))
  await rm(place, { recursive: true })
})

test('nothing is committed until the secrets are known', async () => {
  await world.agentd.kill('SIGKILL')
  await world.agentd.boot()
  const json = { message: 'sync' }
  const committed = await world.agentd.call('POST', '/v1/repository/commit', { json, epoch: 1 })
  const pushed = await world.agentd.call('GET', '/v1/git/info/refs?service=git-receive-pack')
  assert.deepEqual([committed.status, pushed.status], [503, 503])
  assert.equal((await world.agentd.call('GET', '/v1/repository')).status, 200)
  await world.tellSecrets()
  await world.commit()
})
