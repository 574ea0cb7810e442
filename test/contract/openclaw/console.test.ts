/** Commands in an agent (contract 4.3, 7.2). */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { sharedStandIn } from './context.ts'

const context = await openContext()
const { shared } = context
const agent = await sharedStandIn(context)

const exec = (command: unknown, more: object = {}, client = shared) =>
  client.post(`${agent.path}/console/exec`, { command, ...more })
const run = async (command: string, more: object = {}) => {
  const { status, body } = await exec(command, more)
  assert.equal(status, 200, JSON.stringify(body))
  return body
}
const detail = (reply: { headers: Headers }) => reply.headers.get('error-detail')

/** The events of a running command; `onText` may close the connection. */
async function stream(command: string, signal?: AbortSignal): Promise<{ event: string; data: any }[]> {
  const response = await fetch(`${context.url}${agent.path}/console/exec`, {
    method: 'POST',
    body: JSON.stringify({ command }),
    headers: { authorization: `Bearer ${shared.key}`, accept: 'text/event-stream' },
    signal: signal ?? AbortSignal.timeout(60_000),
  })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const blocks = (await response.text()).split('\n\n').filter((block) => block.startsWith('event: '))
  return blocks.map((block) => {
    const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
    return { event, data: JSON.parse(data) }
  })
}

describe('a command', () => {
  it('a command returns its output and its exit code', async () => {
    const body = await run('echo out; echo err >&2; exit 3')
    const { timestamp, ...rest } = body
    assert.deepEqual(rest, {
      stdout: 'out\n',
      stderr: 'err\n',
      exitCode: 3,
      truncated: false,
      timedOut: false,
      command: 'echo out; echo err >&2; exit 3',
    })
    assert.ok(Math.abs(Date.parse(timestamp) - Date.now()) < 60_000)
  })
  it("a command runs in the agent's root by default, or in the given folder", async () => {
    assert.equal((await run('git rev-parse --show-prefix')).stdout, '\n')
    assert.equal((await run('basename "$PWD"', { cwd: 'workspace' })).stdout, 'workspace\n')
    assert.equal((await run('basename "$PWD"', { cwd: '/home/node/clawd/workspace' })).stdout, 'workspace\n')
  })
  it('the output of a command is truncated at 1 MiB', async () => {
    const body = await run('head -c 3000000 /dev/zero | tr "\\0" a')
    assert.equal(body.truncated, true)
    assert.equal(body.stdout.length, 1_048_576)
  })
  for (const [what, command] of [
    ['nothing', undefined],
    ['an empty string', ''],
    ['spaces', ' \n'],
  ]) {
    it(`a command is refused if it is ${what}`, async () => {
      const reply = await exec(command)
      assertError(reply, 400, 'Invalid command')
      assert.match(detail(reply) ?? '', /^command: /)
    })
  }
  it('a command is refused if its body is missing or not a JSON object', async () => {
    for (const body of ['{', '[]', undefined]) {
      const reply = await shared.request(
        'POST',
        `${agent.path}/console/exec`,
        body === undefined ? {} : { body },
      )
      assertError(reply, 400, 'Invalid command')
      assert.match(detail(reply) ?? '', /^body: /)
    }
  })
  for (const [what, cwd, why] of [
    ['does not exist', '/home/node/clawd/nowhere', 'there is no such folder'],
    ['is a file', '/home/node/clawd/.gitignore', 'not a folder'],
  ]) {
    it(`a command is refused if its folder ${what}`, async () => {
      const reply = await exec('true', { cwd })
      assertError(reply, 400, 'Invalid command')
      assert.equal(detail(reply), `cwd: ${why}`)
    })
  }
})

describe('streamed commands', () => {
  it('a streamed command sends its output as it is written', async () => {
    const events = await stream('echo one; sleep 0.3; echo two >&2; exit 4')
    const { timestamp, ...end } = events.at(-1)?.data ?? {}
    assert.deepEqual(events.slice(0, -1), [
      { event: 'stdout', data: { text: 'one\n' } },
      { event: 'stderr', data: { text: 'two\n' } },
    ])
    assert.equal(events.at(-1)?.event, 'exit')
    assert.deepEqual(end, { exitCode: 4, truncated: false, timedOut: false })
    assert.ok(Date.parse(timestamp))
  })
  it('a streamed command that is refused before it starts gets an error status', async () => {
    const headers = { accept: 'text/event-stream' }
    const reply = await shared.post(
      `${agent.path}/console/exec`,
      { command: 'true', cwd: '/nowhere' },
      headers,
    )
    assertError(reply, 400, 'Invalid command')
  })
  it('a command is killed when its client disconnects, streamed or not', async () => {
    for (const accept of ['text/event-stream', 'application/json']) {
      const file = `/tmp/${randomUUID()}`
      const gone = new AbortController()
      const asked = fetch(`${context.url}${agent.path}/console/exec`, {
        method: 'POST',
        body: JSON.stringify({ command: `echo $$ > ${file}; exec sleep 300` }),
        headers: { authorization: `Bearer ${shared.key}`, accept },
        signal: gone.signal,
      }).then((response) => response.text())
      const ended = assert.rejects(asked)
      const isRunning = async () => (await run(`kill -0 $(cat ${file})`)).exitCode === 0
      await until('the command runs', isRunning)
      gone.abort()
      await ended
      await until('the command is killed', async () => !(await isRunning()))
    }
  })
})
