/** Resets, and commits made from imported content, on a real agentd. */
import assert from 'node:assert/strict'
import { chmod, mkdir, mkdtemp, readdir, readFile, rm, stat } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { EPOCH_HEADER } from '../../../agentd/protocol.ts'
import type { Extras, Imported } from '../../../agentd/repository/protocol.ts'
import { TOKEN } from './agentd.ts'
import { useRepository } from './repository.ts'

const world = await useRepository()

const reset = (commit: unknown) =>
  world.agentd.call('POST', '/v1/repository/reset', { json: { commit }, epoch: 1 })

async function importStream(
  stream: string,
  bytes?: number,
): Promise<{ status: number; body: Imported & { message: string } }> {
  const query = bytes === undefined ? '' : `?bytes=${bytes}`
  const response = await fetch(world.agentd.url(`/v1/repository/import${query}`), {
    method: 'PUT',
    headers: { authorization: `Bearer ${TOKEN}`, [EPOCH_HEADER]: '1' },
    body: stream,
  })
  return { status: response.status, body: (await response.json()) as Imported & { message: string } }
}

/** A fast-import stream with one commit of these files. */
function streamOf(files: Record<string, string>): string {
  const changes = Object.entries(files).map(
    ([path, text]) => `M 100644 inline ${path}\ndata ${Buffer.byteLength(text)}\n${text}\n`,
  )
  return `feature done\ncommit refs/berth/import\ncommitter B <b@example.com> 1700000000 +0000\ndata 1\nm\n${changes.join('')}done\n`
}

test('a reset restores a commit and loses nothing', async () => {
  await world.put('.gitignore', 'ignored\n')
  await world.put('a', 'a')
  await world.put('folder/b', 'b')
  const first = await world.commit()
  await world.put('a', 'changed')
  await rm(join(world.root, 'folder'), { recursive: true })
  await world.put('folder', 'a file now')
  const second = await world.commit()
  await world.put('ignored', 'stays')
  await world.put('new', 'not committed')

  assert.equal((await reset(first.commit)).status, 200)
  assert.equal(await readFile(join(world.root, 'a'), 'utf8'), 'a')
  assert.equal(await readFile(join(world.root, 'folder/b'), 'utf8'), 'b')
  assert.equal(await readFile(join(world.root, 'ignored'), 'utf8'), 'stays')
  await assert.rejects(readFile(join(world.root, 'new')))
  assert.equal(world.git('status', '--porcelain'), '')
  assert.equal(world.git('rev-parse', 'main'), first.commit)
  assert.equal((await world.commit()).isNew, false)

  // The reset keeps the previous state, including uncommitted files.
  const [kept] = world.git('for-each-ref', '--format=%(objectname)', 'refs/berth/kept').split('\n')
  assert.equal(world.git('rev-parse', `${kept}^`), second.commit)
  assert.equal(world.git('show', `${kept}:new`), 'not committed')
  world.git('reflog', 'expire', '--expire=now', '--all')
  world.git('gc', '--quiet', '--prune=now')
  assert.equal((await reset(kept)).status, 200)
  assert.equal(await readFile(join(world.root, 'new'), 'utf8'), 'not committed')

  assert.equal((await reset('1'.repeat(40))).status, 404)
  assert.equal((await reset('HEAD')).status, 400)
  assert.equal((await reset(undefined)).status, 400)
})

test('a reset ends a merge in progress', async () => {
  await world.put('a', 'a')
  const first = await world.commit()
  world.git('checkout', '-q', '-b', 'side')
  await world.put('a', 'of the side')
  world.git('commit', '-q', '-a', '-m', 'side')
  world.git('checkout', '-q', 'main')
  await world.put('a', 'of main')
  world.git('commit', '-q', '-a', '-m', 'main')
  assert.throws(() => world.git('merge', 'side'))
  assert.equal((await reset(first.commit)).status, 200)
  await world.put('b', 'b')
  world.git('add', 'b')
  world.git('commit', '-q', '-m', 'later')
  assert.equal(world.git('log', '-1', '--format=%P'), first.commit)
})

for (const [size, bytes] of [
  ['small', 1000],
  ['large', 1e9],
] as const)
  test(`a ${size} import leaves the working tree alone and rejects paths that git cannot check out`, async () => {
    await world.put('a', 'a')
    const { commit } = await world.commit()
    const imported = await importStream(streamOf({ x: 'x', '"\\303\\266 \\"q\\""': 'quoted' }), bytes)
    assert.equal(imported.status, 200, imported.body.message)
    assert.equal(world.git('rev-parse', `${imported.body.commit}^{tree}`), imported.body.tree)
    assert.equal(world.git('rev-parse', 'HEAD'), commit)
    assert.equal(world.git('status', '--porcelain'), '')
    assert.equal((await reset(imported.body.commit)).status, 200)
    assert.equal(await readFile(join(world.root, 'ö "q"'), 'utf8'), 'quoted')

    for (const path of ['.git/config', 'a/.GIT/x', 'a/../x', '.git']) {
      const { status, body } = await importStream(streamOf({ fine: 'x', [path]: 'x' }), bytes)
      assert.deepEqual([path, status], [path, 400], body.message)
      assert.throws(() => world.git('rev-parse', '--verify', '--quiet', 'refs/berth/import'))
    }
    const whole = streamOf({ x: 'x' })
    for (const broken of [
      '',
      'junk\n',
      whole.slice(0, -10),
      whole.replace('refs/berth/import', 'refs/heads/other'),
    ])
      assert.equal((await importStream(broken, bytes)).status, 400)
    assert.equal((await importStream('feature export-marks=/tmp/marks-of-import\n', bytes)).status, 400)
  })

test('a first reset that fails leaves no HEAD and can be repeated', async () => {
  await world.put('seeded', 'there before')
  // No file system accepts the last name, so the checkout fails halfway.
  const unfit = await importStream(streamOf({ a: 'other', ['z'.repeat(300)]: 'z' }))
  assert.equal((await reset(unfit.body.commit)).status, 500)
  assert.throws(() => world.git('rev-parse', '--verify', '--quiet', 'HEAD'))
  assert.equal((await world.status()).head, null)

  const { body } = await importStream(streamOf({ a: 'a', 'folder/b': 'b' }))
  assert.equal((await reset(body.commit)).status, 200)
  assert.equal(world.git('rev-parse', 'main'), body.commit)
  assert.equal(await readFile(join(world.root, 'a'), 'utf8'), 'a')
  assert.equal(world.git('status', '--porcelain'), '')
  const kept = world.git('for-each-ref', '--format=%(objectname)', 'refs/berth/kept').split('\n')
  assert.ok(kept.some((commit) => world.files(commit).includes('seeded')))
})

test('a first import writes its files, which a reset only names', async () => {
  const names = async () => (await readdir(world.root)).filter((name) => name !== '.git')
  await world.put('.gitignore', 'data\n')
  await world.put('seeded', 'there before')
  await world.put('data/x', 'ignored, and in the way')
  const odd = 'M 100755 inline folder/run\ndata 2\n#!\nM 120000 inline folder/link\ndata 3\nrun\ndone\n'
  const files = {
    a: 'a',
    data: 'a file now',
    '"folder/\\303\\266/x"': 'ö',
    'folder/b': 'b',
    'folder/empty': '',
  }
  const stream = streamOf(files).replace(/done\n$/, odd)
  const cut = stream.slice(0, -20)
  assert.equal((await importStream(cut, 1000)).status, 400)
  assert.deepEqual(await names(), [])

  const { body } = await importStream(stream, 1000)
  assert.deepEqual((await names()).sort(), ['a', 'data', 'folder'])
  assert.throws(() => world.git('rev-parse', '--verify', '--quiet', 'HEAD'))
  assert.equal((await reset(body.commit)).status, 200)
  const check = async (commit: string) => {
    assert.equal(world.git('rev-parse', 'main'), commit)
    // Compares what the index has of each file.
    assert.equal(world.git('diff-files', '--name-only'), '')
    assert.equal(world.git('diff-index', '--cached', '--name-only', 'HEAD'), '')
    assert.equal(world.git('status', '--porcelain'), '')
    assert.equal(await readFile(join(world.root, 'data'), 'utf8'), 'a file now')
    assert.equal(await readFile(join(world.root, 'folder/link'), 'utf8'), '#!')
    assert.equal((await stat(join(world.root, 'folder/run'))).mode & 0o111, 0o111)
  }
  await check(body.commit)
  assert.equal((await world.commit()).commit, body.commit)
  const kept = world.git('for-each-ref', '--format=%(objectname)', 'refs/berth/kept').split('\n')
  assert.ok(kept.some((commit) => world.files(commit).includes('seeded')))

  // Without agentd's memory of the import, a reset writes them again.
  await world.anew()
  const again = await importStream(stream, 1000)
  await world.agentd.kill('SIGKILL')
  await world.boot()
  await world.put('folder/b', 'changed in between')
  assert.equal((await reset(again.body.commit)).status, 200)
  await check(again.body.commit)
  assert.equal(await readFile(join(world.root, 'folder/b'), 'utf8'), 'b')
})

test('a commit is recreated without its parents, and clones and later pushes work', async () => {
  await world.put('a', 'a')
  await world.commit()
  await world.put('b', 'b')
  const old = await world.commit({ message: 'second' })

  // An empty machine.
  await world.anew()
  const adopt = (object: string) =>
    world.agentd.call<{ commit: string }>('POST', '/v1/repository/adopt', { json: { object }, epoch: 1 })
  assert.equal((await adopt(old.object)).status, 404)
  const { body } = await importStream(streamOf({ a: 'a', b: 'b' }))
  assert.equal(body.tree, old.tree)
  const adopted = await adopt(old.object)
  assert.deepEqual(adopted, { status: 200, body: { commit: old.commit } })
  assert.equal((await adopt(old.object)).status, 200)
  assert.equal((await reset(old.commit)).status, 200)
  assert.equal(world.git('log', '--format=%s', 'main'), 'second')
  assert.equal(world.git('fsck', '--no-dangling'), '')
  assert.equal((await adopt(Buffer.from('junk').toString('base64'))).status, 400)
  assert.equal((await adopt(Buffer.from(`tree ${old.tree}\njunk`).toString('base64'))).status, 400)

  const place = await mkdtemp(join(tmpdir(), 'clone-'))
  world.git('clone', '--quiet', world.root, join(place, 'clone'))
  await rm(place, { recursive: true })
})

test('empty folders and permissions are restored, losses listed [report: secrets in snapshots]', async () => {
  const bringBack = (extras: unknown) =>
    world.agentd.call<{ lost: string[] }>('PUT', '/v1/repository/extras', { json: extras, epoch: 1 })
  const modeOf = async (path: string) => ((await stat(join(world.root, path))).mode & 0o777).toString(8)
  await world.put('.gitignore', 'build/\n')
  await world.put('a/b', 'b')
  await world.put('a/run', 'run')
  for (const path of ['empty/deep', 'a/none', 'build', 'secrets'])
    await mkdir(join(world.root, path), { recursive: true })
  await world.put('secrets/x', 'x')
  await chmod(join(world.root, 'a/b'), 0o600)
  await chmod(join(world.root, 'a/run'), 0o755)
  await chmod(join(world.root, 'a'), 0o700)
  const older = (await world.commit()).commit
  world.git('branch', 'side')
  await world.put('c', 'c')
  const { commit, extras } = await world.commit()
  world.git('branch', 'same')
  const { folders, modes } = extras
  assert.deepEqual(folders.sort(), ['a/none', 'empty/deep'])
  assert.deepEqual(
    modes.sort((a, b) => a.path.localeCompare(b.path)),
    [
      { path: 'a', mode: 0o700 },
      { path: 'a/b', mode: 0o600 },
    ],
  )
  const now: Extras = (await world.commit()).extras
  assert.deepEqual(now.refs, [
    { commit, ref: 'refs/heads/main' },
    { commit, ref: 'refs/heads/same' },
    { commit: older, ref: 'refs/heads/side' },
  ])

  await world.anew()
  await world.put('a/b', 'b')
  await world.put('c', 'c')
  const { commit: restored } = await world.commit()
  const moved = {
    ...now,
    refs: now.refs.map(({ ref, commit: id }) => ({ ref, commit: id === commit ? restored : id })),
  }
  const { status, body } = await bringBack({ ...moved, modes: [...now.modes, { path: 'gone', mode: 0o600 }] })
  assert.equal(status, 200)
  assert.deepEqual(body.lost, [
    'the permissions 600 of gone: path: there is nothing there',
    `the branch side at ${older.slice(0, 10)}: a snapshot only has the files of ${restored.slice(0, 10)}`,
  ])
  assert.deepEqual(await Promise.all(['a', 'a/b', 'empty/deep', 'a/none'].map(modeOf)), [
    '700',
    '600',
    '755',
    '755',
  ])
  assert.equal(world.git('rev-parse', 'same'), restored)
  for (const bad of [
    null,
    {},
    { ...now, folders: ['../x'] },
    { ...now, modes: [{ path: 'a', mode: 0o4755 }] },
  ])
    assert.equal((await bringBack(bad)).status, 400)
})
