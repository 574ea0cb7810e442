/** Runs git itself against the repository of an agent. */
import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { startShared } from '../contract/context.ts'
import { sharedAgent, type TestAgent } from '../contract/openclaw/context.ts'
import { Client } from '../support/client.ts'
import { gitClient } from '../support/git-client.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { until } from '../support/processes.ts'
import type { Stack } from '../support/stack.ts'
import { Calls, reportRun } from './report.ts'

const TAKEN_OVER_MS = 60_000
const calls = new Calls()
const home = await mkdtemp(join(tmpdir(), 'berth-git-'))
const { git, done } = gitClient(home)
let stack: Stack
let agent: TestAgent
/** The URL of the agent's repository, and two clones of it. */
let address: string
const [ours, theirs] = [join(home, 'ours'), join(home, 'theirs')]

before(async () => {
  stack = await startShared({}, 'of the run')
  const { url } = stack
  const api = new Client(url, await DocumentCheck.load(url), await stack.createKey())
  agent = await sharedAgent({ shared: api })
  address = `${url.replace('//', `//git:${agent.record.gatewayToken}@`)}/v0/agents/${agent.agentId}/git`
})
after(async () => {
  await stack?.stop()
  await rm(home, { recursive: true, force: true })
})

const remote = (cwd: string, ...args: string[]) => calls.make(() => done(cwd, ...args))
const refused = (cwd: string, message: RegExp, ...args: string[]) =>
  calls.make(async () => {
    const { code, stderr } = await git(cwd, ...args)
    assert.notEqual(code, 0)
    assert.match(stderr, message)
  })

async function commit(dir: string, name: string, text: string): Promise<string> {
  await writeFile(join(dir, 'workspace', name), text)
  await done(dir, 'add', '--all')
  await done(dir, 'commit', '--quiet', '--message', name)
  return (await done(dir, 'rev-parse', 'HEAD')).trim()
}

test('git clones the repository of an agent, in full and shallow, and lists its refs', async () => {
  await remote(home, 'clone', '--quiet', address, ours)
  await remote(home, 'clone', '--quiet', '--depth', '1', address, theirs)
  assert.match(await remote(home, 'ls-remote', address), /\trefs\/heads\/main$/m)
  assert.equal(JSON.parse(await readFile(join(ours, 'manifest.json'), 'utf8')).version, 1)
})
test('git pushes to an agent, which gets the files, and another clone fetches and pulls them', async () => {
  const head = await commit(ours, 'pushed.txt', 'pushed')
  await remote(ours, 'push', '--quiet', 'origin', 'main')
  await until(
    'the agent has the file',
    async () => {
      const path = `${agent.path}/files?path=workspace/pushed.txt`
      const response = await fetch(`${stack.url}${path}`, {
        headers: { authorization: `Bearer ${agent.api.key}` },
      })
      return (await response.text()) === 'pushed'
    },
    TAKEN_OVER_MS,
  )
  await remote(theirs, 'fetch', '--quiet', 'origin')
  await done(theirs, 'merge-base', '--is-ancestor', head, 'origin/main')
  await remote(theirs, 'pull', '--quiet', '--rebase', 'origin', 'main')
  assert.equal(await readFile(join(theirs, 'workspace/pushed.txt'), 'utf8'), 'pushed')
})
test('git is refused old, forced and wrongly authorized pushes, and the removal of main', async () => {
  await done(ours, 'reset', '--quiet', '--hard', 'HEAD~1')
  await commit(ours, 'diverged.txt', 'diverged')
  await refused(ours, /rejected/, 'push', 'origin', 'main')
  await refused(ours, /rejected/, 'push', '--force', 'origin', 'main')
  await refused(ours, /rejected/, 'push', 'origin', ':main')
  const stranger = address.replace(agent.record.gatewayToken, 'x')
  await refused(home, /Authentication failed/, 'clone', stranger, join(home, 'stranger'))
})
test('git pushes and removes another branch, and pushes rebased commits', async () => {
  await remote(ours, 'push', '--quiet', 'origin', 'main:other')
  await remote(ours, 'push', '--quiet', 'origin', ':other')
  await remote(ours, 'pull', '--quiet', '--rebase', 'origin', 'main')
  await remote(ours, 'push', '--quiet', 'origin', 'main')
})
test('docs/clients.md shows the run of git', async () => {
  const { calls: made, passed } = calls
  await reportRun({ client: 'git', version: 'of the machine', calls: made, passed })
})
