import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { useFolder } from '../../test/support/folder.ts'
import { seedFiles } from './seed.ts'

const ada = {
  name: 'Ada "the\nfirst"',
  description: 'Keeps the books.',
  vibe: null,
  emoji: '⚓',
  userName: 'Grace',
  userEmail: null,
}
const textOf = (path: string, agent = ada) => seedFiles(agent).find((file) => file.path === path)?.text ?? ''

test('the manifest repeats what the owner entered, and is valid JSON for any name', () => {
  const manifest = JSON.parse(textOf('manifest.json'))
  assert.equal(manifest.version, 1)
  assert.deepEqual(manifest.agent, { name: ada.name, description: ada.description, emoji: '⚓' })
})

test('values stay on one line', () => {
  assert.match(textOf('workspace/IDENTITY.md'), /^- \*\*Name:\*\* Ada "the first"$/m)
  assert.match(textOf('workspace/USER.md'), /^- \*\*Name:\*\* Grace$/m)
  assert.match(textOf('README.md'), /^# Ada "the first"$/m)
})

test("git keeps the agent's work, without secrets or what tools can recreate", async (t) => {
  const root = await useFolder('berth-seed-', t)
  const git = async (...args: string[]) => (await promisify(execFile)('git', ['-C', root, ...args])).stdout
  const kept = ['workspace/a/b.js', 'workspace/uploads/x.bin', 'skills/mail/SKILL.md']
  const ignored = [
    'other.txt',
    '.openclaw/openclaw.json',
    'workspace/.env',
    'workspace/tls/server.key',
    'workspace/secrets.json',
    'workspace/app/node_modules/m/index.js',
    'workspace/app/dist/out.js',
    'workspace/runs/1/log',
  ]
  const seeds = seedFiles(ada)
  for (const { path, text } of [...seeds, ...[...kept, ...ignored].map((path) => ({ path, text: '' }))]) {
    await mkdir(dirname(join(root, path)), { recursive: true })
    await writeFile(join(root, path), text)
  }
  await git('init', '-q')
  await git('add', '-A')
  const tracked = (await git('ls-files')).trim().split('\n').sort()
  assert.deepEqual(tracked, [...kept, ...seeds.map(({ path }) => path)].sort())
})
