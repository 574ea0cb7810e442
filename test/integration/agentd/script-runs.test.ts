import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { Log } from '../../../agentd/logs.ts'
import { agentMark } from '../../../agentd/openclaw.ts'
import { agentPaths } from '../../../agentd/paths.ts'
import { markedProcesses } from '../../../agentd/processes.ts'
import { Scripts } from '../../../agentd/scripts.ts'
import { makeRoot } from '../../../agentd/workspace.ts'

async function newScripts(
  t: TestContext,
  manifest: Record<string, string>,
  { env = {}, ...bound }: { env?: Record<string, string>; buildMs?: number } = {},
) {
  const home = await mkdtemp(join(tmpdir(), 'home-'))
  const paths = agentPaths(home, join(home, 'tmp'))
  await makeRoot(paths)
  await writeFile(join(paths.root, 'manifest.json'), JSON.stringify({ scripts: manifest }))
  const log = new Log()
  const [name, state] = agentMark(paths).split('=') as [string, string]
  const base = { PATH: process.env.PATH as string, [name]: state }
  const scripts = new Scripts({ paths, log, onChange() {}, env: () => ({ ...base, ...env }), ...bound })
  t.after(async () => {
    await scripts.stop()
    assert.deepEqual(await markedProcesses([agentMark(paths)]), [])
    await rm(home, { recursive: true })
  })
  const reach = async (wanted: string) => {
    const deadline = Date.now() + 60_000
    const states = () => `${scripts.status.build.state} ${scripts.status.start.state}`
    while (states() !== wanted) {
      assert.ok(Date.now() < deadline, `${states()} instead of ${wanted}`)
      await sleep(10)
    }
  }
  return { scripts, log, reach }
}

test('a build that takes too long is ended with all its child processes', async (t) => {
  const manifest = { build: 'trap "" TERM; sleep 300 & wait', start: 'true' }
  const { scripts, log, reach } = await newScripts(t, manifest, { buildMs: 500 })
  scripts.run('build')
  await reach('running pending')
  await reach('failed failed')
  assert.ok(log.lines(100).some(({ message }) => message === 'build was ended: it took longer than 0.5 s'))
})

test('a script whose environment is too large fails and the log says so', async (t) => {
  const env = { BIG: 'x'.repeat(200_000) }
  const { scripts, log, reach } = await newScripts(t, { start: 'true' }, { env })
  scripts.run('start')
  await reach('not_configured failed')
  assert.match(log.lines(1)[0]?.message ?? '', /E2BIG/)
})

test('the later of two concurrent runs wins', async (t) => {
  const { scripts, reach } = await newScripts(t, { build: 'true', start: 'sleep 300' })
  for (let i = 0; i < 5; i++) scripts.run('build')
  await reach('success running')
  await scripts.stop()
  assert.equal(scripts.status.start.state, 'failed')
})
