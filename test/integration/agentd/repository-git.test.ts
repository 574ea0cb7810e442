/** The git client against a real agentd: clones, fetches and pushes. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { type GitClient, gitClient } from '../../support/git-client.ts'
import { TOKEN } from './agentd.ts'
import { useRepository } from './repository.ts'

const world = await useRepository()
let place: string
let git: GitClient
beforeEach(async () => {
  place = await mkdtemp(join(tmpdir(), 'clones-'))
  await writeFile(join(place, '.gitconfig'), `[http]\n\textraHeader = Authorization: Bearer ${TOKEN}\n`)
  git = gitClient(place)
})
afterEach(() => rm(place, { recursive: true, force: true }))

/** Runs git in a folder of `place`, like the owner of a clone. */
const client = (folder: string, ...args: string[]) => git.git(join(place, folder), ...args)
const ok = async (folder: string, ...args: string[]) => (await git.done(join(place, folder), ...args)).trim()

const clone = (name: string, ...args: string[]) =>
  ok('', 'clone', '-q', ...args, world.agentd.url('/v1/git'), name)

/** Commits files in a clone. */
async function change(folder: string, files: Record<string, string>): Promise<string> {
  for (const [path, text] of Object.entries(files)) {
    const file = join(place, folder, path)
    await mkdir(dirname(file), { recursive: true })
    await writeFile(file, text)
  }
  await ok(folder, 'add', '-A', '-f')
  await ok(folder, 'commit', '-qm', 'change')
  return ok(folder, 'rev-parse', 'HEAD')
}

test('a clone has the commit that agentd still makes', async () => {
  await world.put('a', 'a')
  const json = { message: 'begin', later: true }
  const { status } = await world.agentd.call('POST', '/v1/repository/commit', { json, epoch: 1 })
  assert.equal(status, 202)
  await clone('c')
  assert.equal(await ok('c', 'log', '--format=%s'), 'begin')
})

const atAgent = (path: string) => readFile(join(world.root, path), 'utf8')

test('clone, push and fetch work', async () => {
  await world.put('a', 'a')
  const first = await world.commit()
  await clone('c')
  assert.equal(await ok('c', 'rev-parse', 'HEAD'), first.commit)
  assert.equal(await ok('c', 'branch', '--show-current'), 'main')

  const pushed = await change('c', { b: 'b', 'folder/c': 'c' })
  await ok('c', 'push', '-q')
  assert.equal(await atAgent('folder/c'), 'c')
  assert.equal(world.git('status', '--porcelain'), '')
  assert.deepEqual(await world.status(), { head: pushed, dirty: false, pushed })
  const taken = await world.agentd.call('DELETE', `/v1/repository/pushed?commit=${pushed}`, { epoch: 1 })
  assert.equal(taken.status, 200)
  assert.equal((await world.status()).pushed, null)

  await world.put('d', 'd')
  const second = await world.commit()
  await ok('c', 'pull', '-q')
  assert.equal(await ok('c', 'rev-parse', 'HEAD'), second.commit)
  // Clients may push and remove other branches and tags freely.
  await ok('c', 'push', '-q', 'origin', 'HEAD:refs/heads/other', 'HEAD:refs/tags/v1')
  await ok('c', 'push', '-q', 'origin', ':other')
  assert.doesNotMatch(await ok('c', 'ls-remote'), /berth|other/)
  for (const version of ['0', '1', '2']) await ok('c', '-c', `protocol.version=${version}`, 'fetch', '-q')
  await clone('shallow', '--depth=1')
  await change('shallow', { e: 'e' })
  await ok('shallow', 'push', '-q')
  assert.equal(await atAgent('e'), 'e')
  await clone('partial', '--filter=blob:none', '--no-checkout')
})

test('a push first commits what the agent has changed; a diverged push is rejected', async () => {
  await world.put('a', 'a')
  await world.commit()
  await clone('c')
  await world.put('mine', 'of the agent')
  await change('c', { b: 'b' })
  const late = await client('c', 'push', '-q')
  assert.notEqual(late.code, 0)
  assert.match(late.stderr, /fetch first|non-fast-forward/)
  await assert.rejects(atAgent('b'))
  await ok('c', 'pull', '-q', '--rebase')
  await ok('c', 'push', '-q')
  assert.deepEqual([await atAgent('mine'), await atAgent('b')], ['of the agent', 'b'])

  await ok('c', 'reset', '-q', '--hard', 'HEAD~1')
  await change('c', { b: 'other' })
  const forced = await client('c', 'push', '-q', '--force')
  assert.match(forced.stderr, /remote: main has diverged from the agent's: git pull, then push again\./)
  const deleted = await client('c', 'push', '-q', 'origin', ':main')
  assert.match(deleted.stderr, /remote: main cannot be deleted/)
  const hidden = await client('c', 'push', '-q', 'origin', 'HEAD:refs/berth/checked')
  assert.notEqual(hidden.code, 0)
  assert.equal(await atAgent('b'), 'b')
})

test('a push of invalid content is rejected with the reason', async () => {
  await world.put('manifest.json', '{"old": "and not valid"}')
  await world.commit()
  await clone('c')
  // The pusher is not blamed for an existing fault.
  await change('c', { fine: 'fine' })
  await ok('c', 'push', '-q')
  const refused: [Record<string, string>, RegExp][] = [
    [
      { 'manifest.json': '{"version": 2}' },
      /remote: manifest\.json is not valid: *\n[\s\S]*remote: +version must be 1/,
    ],
    [{ 'manifest.json': '{' }, /remote: .*not valid JSON/],
    [{ 'workspace/.env': 'x', 'my.pem': 'x' }, /remote: my\.pem: .*\n(.*\n)*remote: workspace\/\.env: /],
  ]
  for (const [files, reason] of refused) {
    await change('c', files)
    const { code, stderr } = await client('c', 'push', '-q')
    assert.notEqual(code, 0)
    assert.match(stderr, reason)
    await ok('c', 'reset', '-q', '--hard', 'HEAD~1')
  }
  const blob = await ok('c', 'rev-parse', 'HEAD:fine')
  await ok('c', 'update-index', '--add', '--cacheinfo', `100644,${blob},${'z'.repeat(300)}`)
  await ok('c', 'commit', '-q', '-m', 'long')
  assert.match((await client('c', 'push', '-q')).stderr, /remote: zz.*…: the name is too long/)
  await ok('c', 'reset', '-q', '--hard', 'HEAD~1')
  await ok('c', 'init', '-q', 'sub')
  await change('c/sub', { x: 'x' })
  await change('c', {})
  assert.match((await client('c', 'push', '-q')).stderr, /remote: sub: submodules cannot be kept/)
  assert.deepEqual((await world.status()).pushed, world.git('rev-parse', 'main'))
  assert.equal(world.git('status', '--porcelain'), '')
})

const VALUE = 'value-of-the-agents-key'
/** A made-up key in parts, because scanners of repositories would take it for a real one. */
const PEM = `-----BEGIN ${'OPENSSH'} PRIVATE KEY-----\nb3BlbnNzaC1rZXktdjEAAAAA\n`

/** Ways to smuggle in a secret, and the reason for which each is rejected. */
const SMUGGLED: [how: string, steps: (() => Promise<unknown>)[], push: string[], reason: RegExp][] = [
  [
    'a commit whose file a later one removes',
    [
      () => change('c', { 'notes.md': VALUE }),
      () => ok('c', 'rm', '-q', 'notes.md'),
      () => ok('c', 'commit', '-qm', 'removed'),
    ],
    [],
    /remote: notes\.md in commit [0-9a-f]{10}: it has the value of one of the agent’s secrets/,
  ],
  [
    'a name that a later commit removes',
    [
      () => change('c', { 'workspace/.ENV': 'A=b' }),
      () => ok('c', 'rm', '-q', 'workspace/.ENV'),
      () => ok('c', 'commit', '-qm', 'removed'),
    ],
    [],
    /remote: workspace\/\.ENV in commit [0-9a-f]{10}: files of this name/,
  ],
  [
    'another branch',
    [() => change('c', { 'a.md': VALUE })],
    ['HEAD:refs/heads/other'],
    /remote: a\.md in commit/,
  ],
  [
    'a tag',
    [() => change('c', { 'deploy.txt': PEM })],
    ['HEAD:refs/tags/v1'],
    /deploy\.txt.*: it has a private key/,
  ],
  [
    'a merge that adds its own file',
    [
      () => ok('c', 'checkout', '-qb', 'side', 'HEAD'),
      () => change('c', { side: 'side' }),
      () => ok('c', 'checkout', '-q', 'main'),
      () => change('c', { more: 'more' }),
      () => ok('c', 'merge', '-q', '--no-commit', 'side'),
      () => change('c', { 'k/id_rsa': 'x' }),
      () => ok('c', 'rm', '-q', '--cached', 'k/id_rsa'),
      () => ok('c', 'commit', '-qm', 'removed'),
    ],
    [],
    /remote: k\/id_rsa in commit/,
  ],
  [
    'the message of a commit',
    [() => ok('c', 'commit', '-qm', `use ${VALUE}`, '--allow-empty')],
    [],
    /remote: the text of commit [0-9a-f]{10}: it has the value/,
  ],
  [
    'the message of a tag',
    [() => ok('c', 'tag', '-am', VALUE, 'v2')],
    ['v2'],
    /remote: the text of tag v2: it has the value/,
  ],
  [
    'a name',
    [() => change('c', { [`n/${VALUE}`]: '' })],
    ['HEAD:refs/heads/x'],
    /remote: .* its name has the value/,
  ],
  [
    'a tag of a file',
    [
      () => change('c', { d: VALUE }),
      () => ok('c', 'tag', 'file', 'HEAD:d'),
      () => ok('c', 'reset', '-q', '--hard', 'HEAD~1'),
    ],
    ['refs/tags/file'],
    /remote: refs\/tags\/file: only commits can be pushed/,
  ],
]

for (const [how, steps, push, reason] of SMUGGLED)
  test(`a push rejects a secret in ${how} [report: pushed secrets]`, async () => {
    await world.tellSecrets({ API_KEY: VALUE })
    await world.put('a', 'a')
    await world.commit()
    await clone('c')
    for (const step of steps) await step()
    const { code, stderr } = await client('c', 'push', '-q', 'origin', ...push)
    assert.notEqual(code, 0)
    assert.match(stderr, reason)
    assert.doesNotMatch(await ok('c', 'ls-remote'), /refs\/(tags|heads\/(?!main))/)
  })

test('a push accepts old objects, and the exceptions of its .gitignore [report: pushed secrets]', async () => {
  await world.tellSecrets({ API_KEY: VALUE })
  // The agent's own commits are not checked.
  await world.put('a', VALUE)
  world.git('add', '-A')
  world.git('commit', '-qm', 'mine')
  await clone('c')
  await ok('c', 'push', '-q', 'origin', 'HEAD:refs/heads/old', 'HEAD:refs/tags/old')
  await change('c', { 'tests/key.pem': PEM, '.gitignore': '!/tests/*.pem\n!tests/\n!key.pem\n' })
  assert.match(
    (await client('c', 'push', '-q', 'origin', 'HEAD:refs/heads/new')).stderr,
    /tests\/key\.pem in commit/,
  )
  await change('c', { '.gitignore': '!/tests/key.pem\n' })
  await ok('c', 'push', '-q', 'origin', 'HEAD:refs/heads/new')
  // The value of a secret stays out even so.
  await change('c', { 'tests/key.pem': `${PEM}${VALUE}` })
  assert.match((await client('c', 'push', '-q', 'origin', 'HEAD:refs/heads/new')).stderr, /has the value/)
})

test('a push of thousands of files is scanned to the end [report: pushed secrets]', async () => {
  await world.tellSecrets({ API_KEY: VALUE })
  await world.put('a', 'a')
  await world.commit()
  await clone('c')
  const many = Object.fromEntries(Array.from({ length: 1200 }, (_, i) => [`many/${i}`, `${i}`]))
  await change('c', { ...many, 'z/last': `${'x'.repeat(65_530)}${VALUE}${'x'.repeat(500_000)}` })
  await ok('c', 'rm', '-rq', 'many', 'z')
  await ok('c', 'commit', '-qm', 'removed')
  assert.match((await client('c', 'push', '-q')).stderr, /remote: z\/last in commit/)
  await ok('c', 'reset', '-q', '--hard', 'origin/main')
  await change('c', many)
  await ok('c', 'push', '-q')
})

test('a push leaves files alone that the agent is writing', async () => {
  await world.put('log', 'one\n')
  await world.put('a', 'a')
  await world.commit()
  await clone('c')
  let writing = true
  let count = 0
  let attempt = 0
  let lastMs = 0
  const writer = (async () => {
    while (writing) {
      await world.put('log', `${count++}\n`)
      // A push fails if the file has changed since the pull. On a slow machine it needs longer pauses: in the end,
      // twice the duration of a push.
      const rest = Math.max(attempt * 60, Math.min(attempt / 4, 2) * lastMs)
      await new Promise((resolve) => setTimeout(resolve, 1 + rest))
    }
  })()
  let done = false
  for (; attempt < 100 && !done; attempt++) {
    const began = performance.now()
    await ok('c', 'pull', '-q', '--rebase')
    await change('c', { [`b${attempt}`]: 'b' })
    done = (await client('c', 'push', '-q')).code === 0
    lastMs = performance.now() - began
  }
  writing = false
  await writer
  assert.ok(done)
  assert.equal(await atAgent('log'), `${count - 1}\n`)
  // If the agent has written nothing since, the push has already committed it.
  await world.commit()
  assert.equal(world.git('show', 'main:log'), `${count - 1}`)
  assert.equal(world.git('status', '--porcelain'), '')
})
