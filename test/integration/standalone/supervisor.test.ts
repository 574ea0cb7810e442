import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, type TestContext, test } from 'node:test'
import { fileURLToPath } from 'node:url'
import { markedProcesses } from '../../../agentd/processes.ts'
import { processIdentity } from '../../../src/lib/process/process-identity.ts'
import type { Role } from '../../../src/standalone/role-process.ts'
import { endLeftovers, RoleConfigError, Supervisor } from '../../../src/standalone/supervisor.ts'
import { eventually, log, newFolder, runProgram } from './helpers.ts'

const program = fileURLToPath(new URL('./role.program.ts', import.meta.url))
const role = (name: string, kind: string, recordPath: string): Role => ({
  name,
  argv: [program, kind],
  env: { RECORDED_IN: recordPath },
})

/** Starts roles, given as `{ name: kind }` for each group, and collects their log lines. */
async function startRoles(t: TestContext, ...groups: Record<string, string>[]) {
  const recordPath = join(await newFolder(), 'roles.json')
  const lines: { role: string; line: string; at: number }[] = []
  const waits: string[][] = []
  const supervisor = new Supervisor({
    roles: groups.map((group) => Object.entries(group).map(([name, kind]) => role(name, kind, recordPath))),
    recordPath,
    onLine: (role, line) => lines.push({ role, line, at: performance.now() }),
    onWaiting: (what) => waits.push(what),
    log,
  })
  t.after(() => supervisor.stop())
  const pids = (name: string) =>
    lines
      .filter(({ role, line }) => role === name && line.startsWith('pid '))
      .map(({ line }) => Number(line.slice(4)))
  return { supervisor, lines, waits, pids, recordPath }
}

const gone = async (pid: number) => (await processIdentity(pid)) === null

describe('supervisor', { concurrency: true }, () => {
  test('roles become ready and exit in order', async (t) => {
    const { supervisor, lines, pids, recordPath } = await startRoles(
      t,
      { web: 'good' },
      { worker: 'good', 'agent-proxy': 'good' },
    )
    const urls = await supervisor.ready
    assert.deepEqual(Object.keys(urls).sort(), ['agent-proxy', 'web', 'worker'])
    assert.equal(urls.web, `http://127.0.0.1/${pids('web')[0]}`)
    await supervisor.stop()
    assert.equal(await supervisor.ended, null)
    const endings = lines.filter(({ line }) => line === 'ending').map(({ role }) => role)
    assert.equal(endings[0], 'web')
    assert.deepEqual(endings.sort(), ['agent-proxy', 'web', 'worker'])
    for (const name of endings) assert.ok(await gone(pids(name)[0] as number))
    assert.equal(await readFile(recordPath, 'utf8'), '[]')
  })

  test('the supervisor reports what a role waits for, and a hurried stop does not wait', async (t) => {
    const { supervisor, lines, waits } = await startRoles(t, { web: 'patient' }, { worker: 'good' })
    await supervisor.ready
    const stopped = supervisor.stop()
    await eventually(() => waits.length === 1, 'the web role reports what it waits for')
    assert.deepEqual(waits[0], ['1 request'])
    assert.deepEqual(
      lines.filter(({ line }) => line === 'ending'),
      [],
    )
    supervisor.hurry()
    await stopped
    assert.deepEqual(waits.at(-1), [])
    // The role exited when it was asked a second time, and was not killed.
    const endings = lines.filter(({ line }) => line === 'ending').map(({ role }) => role)
    assert.deepEqual(endings.sort(), ['web', 'worker'])
  })

  test('a role that is killed restarts without the others', async (t) => {
    const { supervisor, pids } = await startRoles(t, { web: 'good' }, { worker: 'good' })
    await supervisor.ready
    process.kill(pids('worker')[0] as number, 'SIGKILL')
    await eventually(() => pids('worker').length === 2, 'the worker is running again')
    assert.equal(pids('web').length, 1)
  })

  test('a role that keeps exiting is restarted after growing pauses', async (t) => {
    const { supervisor, lines } = await startRoles(t, { web: 'crashing' })
    await eventually(() => lines.length >= 4, 'four runs')
    await supervisor.stop()
    const times = lines.map(({ at }) => at)
    for (const [run, pause] of [200, 400, 800].entries()) {
      assert.ok((times[run + 1] as number) - (times[run] as number) >= pause)
    }
    await assert.rejects(supervisor.ready, /stopped before every role was ready/)
  })

  test('a configuration error stops the stack with its message', async (t) => {
    const { supervisor, pids } = await startRoles(t, { web: 'good' }, { worker: 'misconfigured' })
    const error = await supervisor.ended
    assert.ok(error instanceof RoleConfigError)
    assert.equal(error.message, 'PORT: must be a number')
    await assert.rejects(supervisor.ready, error)
    assert.equal(pids('worker').length, 1)
    for (const pid of pids('web')) assert.ok(await gone(pid))
  })

  test('a stop just after the start leaves no processes', async (t) => {
    const { supervisor, recordPath } = await startRoles(t, { web: 'deaf' }, { worker: 'good' })
    await supervisor.stop()
    assert.equal(await supervisor.ended, null)
    assert.equal(await readFile(recordPath, 'utf8'), '[]')
    assert.deepEqual(await markedProcesses([`RECORDED_IN=${recordPath}`]), [])
  })

  test('a role that ignores SIGTERM is killed', async (t) => {
    const { supervisor, pids } = await startRoles(t, { web: 'deaf' })
    await supervisor.ready
    await supervisor.stop()
    assert.ok(await gone(pids('web')[0] as number))
  })

  test('no role outlives a killed supervisor, and no other process is hit', async (t) => {
    const recordPath = join(await newFolder(), 'roles.json')
    t.after(() => endLeftovers(recordPath, log))
    const killed = runProgram(t, './supervise.program.ts', [recordPath])
    const urls = (await killed.line) as { good: string; deaf: string }
    const pid = (url: string) => Number(url.split('/').at(-1))
    const recorded = await eventually(async () => {
      const text = await readFile(recordPath, 'utf8').catch(() => '[]')
      const list = JSON.parse(text) as { pid: number; birth: string }[]
      return list.length === 2 && list
    }, 'both roles are recorded')
    killed.child.kill('SIGKILL')
    await eventually(() => gone(pid(urls.good)), 'the good role exits by itself')
    assert.equal(await gone(pid(urls.deaf)), false)

    const stranger = spawn('sleep', ['600'], { stdio: 'ignore' })
    t.after(() => stranger.kill())
    await once(stranger, 'spawn')
    const reused = { pid: stranger.pid, birth: recorded[0]?.birth }
    await writeFile(recordPath, JSON.stringify([...recorded, reused]))
    await endLeftovers(recordPath, log)
    assert.ok(await gone(pid(urls.deaf)))
    assert.equal(await gone(stranger.pid as number), false)
    assert.equal(await readFile(recordPath, 'utf8'), '[]')
  })
})
