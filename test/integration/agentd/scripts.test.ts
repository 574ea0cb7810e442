/** The agent's own scripts, and what they may do. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, afterEach, before, beforeEach, describe, test } from 'node:test'
import { markedProcesses } from '../../../agentd/processes.ts'
import type { AgentStatus } from '../../../agentd/protocol.ts'
import { processesOf, standInEngine, TestAgentd, until } from './agentd.ts'

let engineDir: string
let agentd: TestAgentd
before(async () => {
  engineDir = await standInEngine()
})
after(() => rm(engineDir, { recursive: true }))

const manifest = () => join(agentd.home, 'clawd/manifest.json')
const say = (scripts: unknown) => writeFile(manifest(), JSON.stringify({ version: 1, scripts }))
const states = ({ scripts }: AgentStatus) => `${scripts.build.state} ${scripts.start.state}`
const reach = (wanted: string, ms = 60_000) =>
  agentd.until(`scripts are ${wanted}`, ms, (status) => states(status) === wanted)
const retry = () => agentd.call('POST', '/v1/scripts', { json: { run: 'build' }, epoch: 1 })
const readLog = (name: string) => readFile(join(agentd.folder, 'tmp', `user-${name}.log`), 'utf8')

describe('scripts', { timeout: 600_000 }, () => {
  beforeEach(async () => {
    agentd = await TestAgentd.start({ engineDir })
  })
  afterEach(async () => {
    await agentd.close()
    const left = await processesOf(agentd)
    for (const pid of left) process.kill(pid, 'SIGKILL')
    assert.deepEqual(left, [])
  })

  test('build runs, then start, in the root with the secrets, and both logs redact them', async () => {
    await say({ build: 'pwd; echo $API_KEY; echo to stderr >&2', start: 'echo up $API_KEY; sleep 300' })
    await agentd.start({ scripts: 'build', env: { API_KEY: 'sk-0123456789' } })
    const { scripts } = await reach('success running')
    assert.equal(scripts.build.exitCode, 0)
    assert.ok(scripts.build.startedAt && scripts.build.finishedAt)
    assert.equal(await readLog('build'), `${agentd.home}/clawd\n[redacted]\nto stderr\n`)
    await until('the line of start', 60_000, async () => (await readLog('start')) === 'up [redacted]\n')
    const lines = (await agentd.logs()).filter(({ source }) => source.startsWith('script/'))
    assert.deepEqual(lines.map(({ source, message }) => `${source}: ${message}`).slice(1), [
      'script/build: [redacted]',
      'script/build: to stderr',
      'script/start: up [redacted]',
    ])
  })

  test('the script start does not run after a failed build; a retry runs both', async () => {
    await say({ build: 'exit 3', start: 'sleep 300' })
    assert.equal((await retry()).status, 503)
    await agentd.start({ scripts: 'build' })
    const { scripts, gateway } = await reach('failed failed')
    assert.deepEqual([scripts.build.exitCode, scripts.start.exitCode], [3, null])
    assert.equal(gateway.state, 'ready')
    await say({ build: 'true', start: 'sleep 300' })
    assert.equal((await retry()).status, 202)
    await reach('success running')
    await say({ start: 'exit 0' })
    await retry()
    await reach('not_configured success')
  })

  test('a restart runs only the script start, with the new environment, and ends the old one', async () => {
    await say({ build: 'touch built-$RUN', start: 'echo $RUN > started; sleep 300' })
    await agentd.start({ run: 'one', scripts: 'build', env: { RUN: 'one' } })
    await reach('success running')
    await agentd.start({ run: 'two', scripts: 'start', env: { RUN: 'two' } })
    const started = () => readFile(join(agentd.home, 'clawd/started'), 'utf8').catch(() => '')
    await until('the second start', 60_000, async () => (await started()) === 'two\n')
    const old = [`OPENCLAW_STATE_DIR=${join(agentd.home, '.openclaw')}`, 'RUN=one']
    await until('the old processes to be gone', 60_000, async () => (await markedProcesses(old)).length === 0)
    await assert.rejects(readFile(join(agentd.home, 'clawd/built-two')))
  })

  test('the script start keeps running when the gateway dies', async () => {
    await say({ start: 'echo $$; exec sleep 300' })
    await agentd.start({ scripts: 'build' })
    const { gateway } = await reach('not_configured running')
    process.kill(gateway.pid as number, 'SIGKILL')
    await agentd.until(
      'ready again',
      60_000,
      ({ gateway }) => gateway.state === 'ready' && gateway.restarts === 1,
    )
    assert.equal(states(await agentd.status()), 'not_configured running')
    process.kill(Number(await readLog('start')), 0)
  })

  test('a script that ignores SIGTERM and one that left its group are ended', async () => {
    await say({
      start:
        'trap "" TERM; setsid sleep 300 & setsid sh -c "sleep 301 & sleep 302" & while :; do sleep 1; done',
    })
    await agentd.start({ scripts: 'start' })
    await until('all of them', 60_000, async () => (await processesOf(agentd)).length >= 6)
    await agentd.call('DELETE', '/v1/gateway', { epoch: 1 })
    assert.deepEqual(await processesOf(agentd), [])
    assert.equal((await agentd.status()).scripts.start.state, 'failed')
  })

  test('a fork bomb is ended', async () => {
    // Separate sessions, each of which forks without a pause. Only a few, because the kernel may give each session as
    // much of the test machine as all the tests together.
    await say({
      start: 'for i in $(seq 6); do setsid sh -c "while :; do sh -c :; done" & done; wait',
    })
    await agentd.start({ scripts: 'start' })
    await until('a crowd', 60_000, async () => (await processesOf(agentd)).length > 6)
    await agentd.call('DELETE', '/v1/gateway', { epoch: 1 })
    assert.deepEqual(await processesOf(agentd), [])
  })

  test('endless output of a script keeps agentd and its log file small', async () => {
    await say({ build: 'yes "a line of a flood" | head -c 300000000', start: 'sleep 300' })
    await agentd.start({ scripts: 'build' })
    await reach('success running', 120_000)
    assert.ok((await readLog('build')).length <= 4_194_304)
    const peak = /VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${agentd.pid}/status`, 'utf8'))?.[1]
    assert.ok(Number(peak) < 250_000, `${peak} kB`)
  })

  test('a malformed manifest runs no scripts, and the log gives the reason', async () => {
    const elsewhere = join(agentd.folder, 'elsewhere.json')
    await writeFile(elsewhere, JSON.stringify({ scripts: { build: 'true' } }))
    const makers: [string, () => unknown][] = [
      ['it is not valid JSON', () => writeFile(manifest(), '{"scripts":')],
      ['it is not a plain file', () => mkdir(manifest())],
      ['it is not a plain file', () => symlink(elsewhere, manifest())],
      ['it is not a plain file', () => execFileSync('mkfifo', [manifest()])],
      ['it is too large', () => execFileSync('truncate', ['-s', '1G', manifest()])],
      ['', () => writeFile(manifest(), '{"scripts": {"build": ["true"], "start": 1}}')],
      ['', () => writeFile(manifest(), 'null')],
      ['', () => undefined],
    ]
    for (const [index, [problem, make]] of makers.entries()) {
      await make()
      await agentd.start({ run: `run ${index}`, scripts: 'build' })
      await agentd.until(
        'ready',
        60_000,
        ({ gateway }) => gateway.state === 'ready' && gateway.run === `run ${index}`,
      )
      if (problem)
        await until(problem, 60_000, async () =>
          (await agentd.logs(5)).some(
            ({ message }) => message === `manifest.json: ${problem}; no scripts are run`,
          ),
        )
      await reach('not_configured not_configured')
      await rm(manifest(), { recursive: true, force: true })
    }
  })

  test('a manifest may begin with a byte order mark, as pushes allow', async () => {
    await writeFile(manifest(), `\uFEFF${JSON.stringify({ version: 1, scripts: { build: 'true' } })}`)
    await agentd.start({ scripts: 'build' })
    await reach('success not_configured')
  })

  test('a log file that the agent replaced by a link is not followed', async () => {
    const target = join(agentd.home, 'precious')
    await writeFile(target, 'precious')
    await symlink(target, join(agentd.folder, 'tmp/user-build.log'))
    await say({ build: 'echo hello' })
    await agentd.start({ scripts: 'build' })
    await reach('success not_configured')
    assert.equal(await readFile(target, 'utf8'), 'precious')
    assert.equal(await readLog('build'), 'hello\n')
  })
})
