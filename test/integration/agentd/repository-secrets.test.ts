/** Secrets stay out of the agent's commits, and each omitted file is named. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { test } from 'node:test'
import { useRepository } from './repository.ts'

const world = await useRepository()
const { root, git, put, commit, status: repository, files } = world

test('secrets stay out of commits whatever .gitignore says, tracked or not', async () => {
  await world.tellSecrets({ API_KEY: 'value-of-the-key', SHORT: 'short', AGENT_NAME: 'Name of the agent' })
  await put('.gitignore', '!.env\n!*.pem\n')
  for (const name of ['.env', '.env.local', 'sub/my.key', 'a.pem', 'secrets.json', 'secrets/x', 'sub/.env/x'])
    await put(name, 'secret')
  for (const name of ['.env.example', 'keys', 'my.key.md', 'environment'])
    await put(name, 'short Name of the agent')
  await put('notes.md', 'before value-of-the-key after')
  await put('big', `${'x'.repeat(65_530)}value-of-the-key${'x'.repeat(1_000_000)}`)
  const kept = ['.env.example', '.gitignore', 'environment', 'keys', 'my.key.md']
  const first = await commit()
  assert.deepEqual(files(first.commit), kept)
  const named = ['.env', '.env.local', 'a.pem', 'secrets.json', 'secrets/x', 'sub/.env/x', 'sub/my.key']
  assert.deepEqual(first.leftOut.sort(), [...named, 'big', 'notes.md'].sort())
  assert.equal((await repository()).dirty, false)
  assert.equal((await commit()).isNew, false)

  // The agent commits them itself.
  git('add', '-A', '-f')
  git('commit', '-qm', 'all')
  const second = await commit()
  assert.deepEqual(files(second.commit), kept)
  assert.equal(await readFile(join(root, '.env'), 'utf8'), 'secret')

  // A file that gains a secret keeps its last committed content, and is committed again once the secret is gone.
  await put('keys', 'value-of-the-key')
  await put('new', 'new')
  const third = await commit()
  assert.equal(git('show', `${third.commit}:keys`), 'short Name of the agent')
  assert.deepEqual(third.leftOut.sort(), [...named, 'big', 'keys', 'notes.md'].sort())
  await put('notes.md', 'clean')
  assert.equal((await repository()).dirty, true)
  assert.deepEqual((await commit()).leftOut.sort(), [...named, 'big', 'keys'].sort())

  // Another secret, whose value is in a file that was committed earlier.
  await put('log', 'clean and more')
  const open = await commit()
  assert.ok(files(open.commit).includes('log'))
  await world.tellSecrets({ OTHER: 'clean and more' })
  const closed = await commit()
  assert.ok(closed.leftOut.includes('log'))
  assert.ok(!files(closed.commit).includes('log'))
})

test('keys stay out of a commit, which names what it lacks [report: secrets in snapshots]', async () => {
  const key = `-----BEGIN ${'OPENSSH'} PRIVATE KEY-----\nb3BlbnNzaC1rZXk\n`
  const ignore = '*.log\nbuild/\ndist/\n'
  await put('.gitignore', ignore)
  await put('workspace/id_rsa', 'x')
  await put('workspace/.ENV', 'x')
  await put('workspace/deploy.txt', key)
  await put('workspace/big', `${'x'.repeat(65_520)}${key}${'x'.repeat(200_000)}`)
  for (const path of ['workspace/secretsanta.md', 'build/x', 'workspace/dist/a/b', 'a.log', 'b.log'])
    await put(path, 'x')
  const first = await commit()
  assert.deepEqual(files(first.commit), ['.gitignore', 'workspace/secretsanta.md'])
  const reasons = Object.fromEntries(first.leftOut.map((path, i) => [path, first.reasons[i]]))
  const byName = 'files of this name usually hold secrets; the line !/workspace/'
  assert.deepEqual(reasons, {
    'workspace/.ENV': `${byName}.ENV in .gitignore lets it in`,
    'workspace/big': 'it has a private key; the line !/workspace/big in .gitignore lets it in',
    'workspace/deploy.txt': 'it has a private key; the line !/workspace/deploy.txt in .gitignore lets it in',
    'workspace/id_rsa': `${byName}id_rsa in .gitignore lets it in`,
  })
  assert.deepEqual(
    [first.more, first.ignored],
    [
      0,
      [
        { rule: '*.log of .gitignore', path: 'a.log', count: 2 },
        { rule: 'build/ of .gitignore', path: 'build/', count: 1 },
        { rule: 'dist/ of .gitignore', path: 'workspace/dist/', count: 1 },
      ],
    ],
  )
  assert.equal((await repository()).dirty, false)

  // The owner's exceptions are included, and dropped again once the exceptions are removed.
  await put('.gitignore', `${ignore}!/workspace/id_rsa\n!/workspace/deploy.txt\n`)
  const second = await commit()
  assert.ok(['workspace/id_rsa', 'workspace/deploy.txt'].every((path) => files(second.commit).includes(path)))
  assert.deepEqual(second.leftOut, ['workspace/.ENV', 'workspace/big'])
  await put('.gitignore', ignore)
  assert.deepEqual(files((await commit()).commit), ['.gitignore', 'workspace/secretsanta.md'])
})
