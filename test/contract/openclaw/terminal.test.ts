/** The terminal of an agent: statuses, messages, and a shell that people work in. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { stackKind } from '../../support/stack.ts'
import { TerminalClient } from '../../support/terminal.ts'
import { openContext } from '../context.ts'
import { openSession } from '../session-client.ts'
import { proxyOf, startWebProcess } from '../web-process.ts'
import { sharedStandIn } from './context.ts'

const context = await openContext()
const { shared, url, anonymous, sql } = context
const workspace = await context.sharedWorkspace()
const agent = await sharedStandIn(context)
const path = `${agent.path}/console/terminal`

function connect(query: Record<string, unknown>, headers: Record<string, string>, at = url): TerminalClient {
  const terminal = new TerminalClient(at, `${path}?${new URLSearchParams(query as never)}`, { headers })
  after(() => terminal.raw.terminate())
  return terminal
}
const open = (query: Record<string, unknown> = {}, key: unknown = shared.key, at = url) =>
  connect(query, { authorization: `Bearer ${key}` }, at)
/** A terminal with a prompt. */
async function shell(...how: Parameters<typeof open>) {
  const terminal = open(...how)
  await terminal.message('ready')
  await terminal.sees(/[$#] $/)
  return terminal
}
const leave = async (terminal: TerminalClient) => {
  terminal.type('exit\r')
  await terminal.message('exit')
}

describe('a request for a terminal', () => {
  it('a request for a terminal without an upgrade returns 426', async () => {
    const reply = await shared.get(path)
    assertError(reply, 426, 'This is a WebSocket: ask for an upgrade')
    assert.equal(reply.headers.get('upgrade'), 'websocket')
  })
  for (const [query, why] of [
    [{ columns: 0 }, 'columns: must be at least 1'],
    [{ rows: 1001 }, 'rows: must be at most 1000'],
    [{ terminal: 'x' }, 'terminal: must be the id of a terminal'],
    [{ after: -1 }, 'after: must be at least 0'],
  ] as const) {
    it(`a request for a terminal with ${JSON.stringify(query)} returns 400`, async () => {
      assertError(await shared.get(path, query as never), 400, why)
    })
  }
  it('an upgrade without a valid key returns 401', async () => {
    assert.equal(await open({}, 'x').refused, 401)
    assert.equal(await connect({}, {}).refused, 401)
  })
  it('a session opens a terminal only from a page of the dashboard', async () => {
    const { cookie } = await openSession(anonymous, workspace)
    assert.equal(await connect({}, { cookie, origin: 'https://elsewhere.example' }).refused, 403)
    const terminal = connect({}, { cookie, origin: url })
    assert.equal(await terminal.refused, undefined)
    await leave(terminal)
  })
})

describe('a terminal', () => {
  it('a terminal has the environment and the folder of console commands', async () => {
    const names =
      'env | cut -d= -f1 | grep -vxE "_|SHLVL|PWD|OLDPWD|TERM|LC_CTYPE|AGENTD_COMMAND|LS_COLORS" | sort -u'
    const { body } = await shared.post(`${agent.path}/console/exec`, { command: `pwd; ${names}` })
    const [folder = '', ...variables] = body.stdout.trim().split('\n')
    assert.ok(variables.includes('OPENCLAW_STATE_DIR'))
    const terminal = await shell()
    terminal.type(`clear; pwd; ${names}; echo e''nd\r`)
    await terminal.sees(/\r\nend\r\n/)
    const shown = terminal.shown.slice(terminal.shown.lastIndexOf(folder)).split('\r\n')
    assert.deepEqual(shown.slice(0, shown.indexOf('end')), [folder, ...variables])
    await leave(terminal)
  })
  it('a terminal follows its size, and programs learn of it', async () => {
    const terminal = await shell({ columns: 100, rows: 30 })
    terminal.type(
      `stty size; perl -e '$SIG{WINCH} = sub { exec "stty size" }; $| = 1; print "wait" . "ing"; sleep 60'\r`,
    )
    await terminal.sees(/\r30 100\r\nwaiting/)
    terminal.resize(90, 20)
    await terminal.sees('waiting20 90')
    await leave(terminal)
  })
  it('Ctrl-C interrupts a program, Tab completes a name, and the exit code arrives', async () => {
    const terminal = await shell()
    terminal.type('echo wait""ing; sleep 300\r')
    await terminal.sees('waiting')
    terminal.type('\x03')
    await terminal.sees(/\^C.*[$#] $/s)
    terminal.type('mkdir -p long-name-of-a-folder; echo ma""de\r')
    await terminal.sees('made')
    terminal.type('cd long-na\t && echo "at $(basename "$PWD")"; cd ..; rmdir long-na\t\r')
    await terminal.sees('\rat long-name-of-a-folder')
    terminal.type('exit 7\r')
    assert.equal((await terminal.message('exit')).code, 7)
    assert.deepEqual(await terminal.closed, { code: 1000, reason: 'The shell has ended' })
  })
  it('a terminal runs an interactive program that reads keys', async () => {
    const terminal = await shell()
    terminal.type(
      `stty raw -echo; perl -e 'sysread STDIN, $key, 1; printf "key %d\\r\\n", ord $key'; stty sane\r`,
    )
    await terminal.sees('\x1b[?2004l')
    terminal.type('\x1b')
    await terminal.sees('key 27')
    await leave(terminal)
  })
  it('a client that connects again gets the output that it missed, or all of it', async () => {
    const first = await shell()
    first.type('echo be""fore\r')
    await first.sees(/\rbefore\r\n.*[$#] $/s)
    const { terminal, from } = await first.message('ready')
    first.type('sleep 1; echo miss""ed\r')
    await first.sees('sleep 1; echo miss""ed\r\n')
    const after = from + first.bytes
    first.raw.terminate()
    await first.closed
    const second = open({ terminal, after })
    assert.equal((await second.message('ready')).from, after)
    await second.sees('missed\r\n')
    assert.doesNotMatch(second.shown, /before/)
    second.type('echo agai""n\r')
    await second.sees('\ragain')
    const third = open({ terminal })
    assert.deepEqual((await second.closed).code, 1000)
    assert.deepEqual(second.messages.at(-1), { type: 'taken' })
    assert.equal((await third.message('ready')).from, 0)
    await third.sees(/before.*missed.*again/s)
    await leave(third)
  })
  const whyNot = stackKind === 'kubernetes' && 'a web process of this machine reaches no agents in a cluster'
  it('a shell outlives a killed web process, and another one sends what was missed', {
    skip: whyNot,
  }, async (test) => {
    const web = await startWebProcess(context.env, proxyOf(context.env))
    test.after(() => web.running.end('SIGKILL'))
    const first = await shell({}, shared.key, web.url)
    const { terminal, from } = await first.message('ready')
    first.type('kept=be""fore; sleep 1; echo "$kept and af""ter"\r')
    await first.sees('ter"\r\n')
    await web.running.end('SIGKILL')
    assert.equal((await first.closed).code, 1006)
    const after = from + first.bytes
    const second = open({ terminal, after })
    assert.equal((await second.message('ready')).from, after)
    await second.sees('before and after\r\n')
    assert.doesNotMatch(second.shown, /sleep/)
    await leave(second)
  })
  it('a client that connects again after the shell has ended still gets its exit code', async () => {
    const first = await shell()
    const { terminal } = await first.message('ready')
    first.type('echo pid=$$; sleep 0.5; exit 9\r')
    await first.sees(/pid=\d+/)
    first.raw.terminate()
    const command = `kill -0 ${/pid=(\d+)/.exec(first.shown)?.[1]}`
    const isRunning = async () =>
      (await shared.post(`${agent.path}/console/exec`, { command })).body.exitCode === 0
    await until('the shell has ended', async () => !(await isRunning()))
    const second = open({ terminal })
    assert.equal((await second.message('exit')).code, 9)
    const third = open({ terminal })
    assert.deepEqual(await third.message('error'), {
      type: 'error',
      code: 'not_found',
      message: 'There is no such terminal',
    })
    assert.deepEqual(await third.closed, { code: 1000, reason: 'There is no such terminal' })
  })
  it('a terminal is closed with 1008 if a message is not one of a terminal', async () => {
    for (const message of ['x', '{"type":"resize","columns":0,"rows":1}', '{"type":"exit"}']) {
      const terminal = open()
      await terminal.message('ready')
      terminal.raw.send(message)
      assert.deepEqual(await terminal.closed, { code: 1008, reason: 'A message is not one of a terminal' })
    }
  })
  it('a terminal is closed with 1008 when its key is revoked', async () => {
    const permissions = { resources: ['org:agents:write'] }
    const { body } = await shared.post('/v3/pinata/keys', { keyName: 'brief', permissions })
    const terminal = await shell({}, body.JWT)
    await shared.put(`/v3/pinata/keys/${body.pinata_api_key}`)
    assert.deepEqual(await terminal.closed, { code: 1008, reason: 'The token or key is no longer valid' })
  })
  it('the audit has the beginning and the end of a connection, and nothing that was typed', async () => {
    const terminal = await shell()
    terminal.type('echo confidential-word\r')
    await terminal.sees('\rconfidential-word')
    await leave(terminal)
    await terminal.closed
    const rows = await until('both entries', async () => {
      const found = await sql(
        `SELECT action, method, route, resource, status, request_id, via FROM audit
         WHERE workspace_id = $1 AND action IN ('openTerminal', 'closeTerminal') ORDER BY id DESC LIMIT 2`,
        [workspace.id],
      )
      return found[0]?.request_id === found[1]?.request_id && found
    })
    const entry = { method: 'GET', route: '/v0/agents/:agentId/console/terminal', status: 101, via: 'key' }
    const resource = `agents/${agent.agentId}`
    assert.deepEqual(
      rows.map(({ request_id: _, ...row }) => row),
      ['closeTerminal', 'openTerminal'].map((action) => ({ action, ...entry, resource })),
    )
    assert.deepEqual(await sql(`SELECT id FROM audit WHERE audit::text LIKE '%confidential-word%'`), [])
  })
})
