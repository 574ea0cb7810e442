import assert from 'node:assert/strict'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { execService } from '../../../agentd/exec.ts'
import type { ExecEvent, ExecRequest, ExecResult } from '../../../agentd/protocol.ts'
import { readAll, type ServedAgentd, serveAgentd } from '../../support/agentd-services.ts'
import { untilStill } from '../../support/processes.ts'

let agentd: ServedAgentd

before(async () => {
  agentd = await serveAgentd([execService], {
    env: { PATH: process.env.PATH ?? '', API_KEY: 'from the worker' },
  })
})
after(() => agentd.close())

const limits = { timeoutMs: 120_000, outputBytes: 100_000 }

async function exec(command: string, options: Partial<ExecRequest> = {}): Promise<ExecResult> {
  const { status, body } = await agentd.json('POST', '/v1/exec', { command, ...limits, ...options })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

async function refused(request: unknown): Promise<string> {
  const { status, body } = await agentd.json('POST', '/v1/exec', request)
  return `${status} ${body.error}: ${body.message}`
}

async function until<T>(read: () => Promise<T>, good: (value: T) => boolean): Promise<T> {
  const deadline = Date.now() + 30_000
  for (;;) {
    const value = await read()
    if (good(value) || Date.now() > deadline) return value
    await sleep(10)
  }
}

const isGone = (pid: string) =>
  readFile(`/proc/${pid}/stat`, 'utf8').then(
    (stat) => / Z /.test(stat),
    () => true,
  )

test('a command returns its output and exit code', async () => {
  assert.deepEqual(await exec('echo out; echo err >&2; exit 3'), {
    stdout: 'out\n',
    stderr: 'err\n',
    exitCode: 3,
    truncated: false,
    timedOut: false,
  })
  assert.equal((await exec('kill -TERM $$')).exitCode, 143)
  assert.equal((await exec('cat')).stdout, '', 'there is no input to wait for')
})

test('a command runs in the root folder with the gateway’s environment', async () => {
  assert.equal((await exec('pwd; echo $API_KEY')).stdout, `${agentd.agent.paths.root}\nfrom the worker\n`)
})

test('cwd accepts folders as the API names them', async () => {
  const { home, root } = agentd.agent.paths
  await mkdir(join(root, 'workspace/ä b'), { recursive: true })
  await writeFile(join(root, 'file'), '')
  const pwd = async (cwd: string) => (await exec('pwd', { cwd })).stdout.trim()
  assert.equal(await pwd('workspace/ä b'), join(root, 'workspace/ä b'))
  assert.equal(await pwd('/home/node/clawd/workspace'), join(root, 'workspace'))
  assert.equal(await pwd('/home/node'), home)
  assert.equal(await pwd('/'), '/')
  assert.match(await refused({ command: 'pwd', ...limits, cwd: 'nowhere' }), /^404 not_found: cwd/)
  assert.match(await refused({ command: 'pwd', ...limits, cwd: 'file' }), /^400 bad_request: cwd/)
  assert.match(await refused({ command: 'pwd', ...limits, cwd: 'file/x' }), /^404 not_found: cwd/)
  assert.match(await refused({ command: 'pwd', ...limits, cwd: 'a\0b' }), /^400 bad_request: cwd/)
  assert.match(await refused({ command: 'pwd', ...limits, cwd: 'x'.repeat(5000) }), /^400 bad_request: cwd/)
  assert.match(await refused({ command: 'pwd', ...limits, cwd: 7 }), /^400 bad_request: cwd/)
})

test('an invalid command is rejected', async () => {
  for (const command of [undefined, '', '  ', 5, 'a\0b', ['ls']])
    assert.match(await refused({ command, ...limits }), /^400 bad_request: command/)
  for (const timeoutMs of [0, -1, 1.5, '5', 1e12])
    assert.match(await refused({ command: 'ls', ...limits, timeoutMs }), /^400 bad_request: timeoutMs/)
  for (const outputBytes of [-1, 1e12, null])
    assert.match(await refused({ command: 'ls', ...limits, outputBytes }), /^400 bad_request: outputBytes/)
  assert.match(await refused(null), /^400 bad_request/)
  assert.match(
    await refused({ command: `: ${'x'.repeat(200_000)}`, ...limits }),
    /^400 bad_request: command: too long/,
  )
})

test('output beyond the limit is dropped, and the command keeps running', async () => {
  const result = await exec('head -c 5000000 /dev/zero | tr "\\0" a; echo done >&2; echo end > ended', {
    outputBytes: 1000,
  })
  assert.equal(result.stdout, 'a'.repeat(1000))
  assert.deepEqual([result.truncated, result.exitCode], [true, 0])
  assert.equal((await exec('cat ended')).stdout, 'end\n')
  assert.deepEqual(
    await exec('printf 12345', { outputBytes: 5 }).then(({ stdout, truncated }) => [stdout, truncated]),
    ['12345', false],
  )
  assert.equal((await exec('echo x', { outputBytes: 0 })).truncated, true)
})

test('characters stay whole wherever chunks and the limit split them', async () => {
  const slowly = "for b in '\\342' '\\202' '\\254'; do printf $b; sleep 0.02; done"
  assert.equal((await exec(slowly)).stdout, '€')
  assert.equal((await exec('printf a€b', { outputBytes: 3 })).stdout, 'a', 'cut by us: left out')
  assert.equal((await exec("printf 'a\\342\\202'")).stdout, 'a\uFFFD', 'cut by the command: shown')
  const text = '€'.repeat(60_000)
  await writeFile(join(agentd.agent.paths.root, 'euros'), text)
  assert.equal((await exec('cat euros', { outputBytes: 1e6 })).stdout, text)
})

test('a command that times out is killed with all its child processes', async () => {
  const result = await exec('sleep 980 & echo $!; setsid sleep 970 & echo $!; sleep 990', { timeoutMs: 2000 })
  assert.deepEqual([result.timedOut, result.exitCode], [true, 137])
  for (const child of result.stdout.trim().split('\n'))
    assert.equal(
      await until(
        () => isGone(child),
        (gone) => gone,
      ),
      true,
    )
})

test('nohup dies with its command, and setsid survives [report: background commands]', async () => {
  // The second process has left the group once it is `sleep`.
  const hasLeft = 'until grep -q sleep /proc/$!/comm; do sleep 0.05; done'
  const result = await exec(`nohup sleep 300 & echo $!; setsid sleep 310 & echo $!; ${hasLeft}`)
  assert.deepEqual([result.timedOut, result.exitCode], [false, 0])
  const [child = '', detached = ''] = result.stdout.trim().split('\n')
  assert.equal(
    await until(
      () => isGone(child),
      (gone) => gone,
    ),
    true,
  )
  assert.equal(await isGone(detached), false)
  process.kill(Number(detached))
})

test('a command is killed when its client disconnects', async () => {
  const sent = await agentd.send('POST', '/v1/exec', {
    body: JSON.stringify({ command: 'echo $$; sleep 100', ...limits }),
    headers: { accept: 'application/x-ndjson' },
  })
  const [first] = (await firstLine(sent)).split('\n')
  const pid = JSON.parse(first ?? '').text.trim()
  assert.equal(await isGone(pid), false)
  sent.destroy()
  assert.equal(
    await until(
      () => isGone(pid),
      (gone) => gone,
    ),
    true,
  )
})

/** The text up to the chunk that ends the first line: a chunk may end anywhere. */
const firstLine = (stream: NodeJS.ReadableStream) =>
  new Promise<string>((resolve) => {
    let text = ''
    stream.on('data', function read(chunk) {
      text += chunk
      if (!text.includes('\n')) return
      // Without the pause, bytes that arrive before the next reader attaches would be lost.
      stream.off('data', read).pause()
      resolve(text)
    })
  })

test('output is streamed as NDJSON while it is written', async () => {
  const command = 'echo one; until [ -e read ]; do sleep 0.05; done; echo two >&2; exit 4'
  const response = await agentd.send('POST', '/v1/exec', {
    body: JSON.stringify({ command, ...limits }),
    headers: { accept: 'application/x-ndjson' },
  })
  assert.equal(response.headers['content-type'], 'application/x-ndjson')
  const first = await firstLine(response)
  assert.deepEqual(JSON.parse(first), { stream: 'stdout', text: 'one\n' })
  await writeFile(join(agentd.agent.paths.root, 'read'), '')
  const rest = (await readAll(response)).toString().trim().split('\n')
  assert.deepEqual(
    rest.map((line) => JSON.parse(line) as ExecEvent),
    [{ stream: 'stderr', text: 'two\n' }, { exit: { exitCode: 4, truncated: false, timedOut: false } }],
  )
})

test('a slow reader blocks the command and loses nothing', async () => {
  const response = await agentd.send('POST', '/v1/exec', {
    body: JSON.stringify({
      command: 'seq 1 400000; echo written > written',
      ...limits,
      outputBytes: 10_000_000,
    }),
    headers: { accept: 'application/x-ndjson' },
  })
  response.pause()
  await untilStill('received bytes', () => response.socket.bytesRead)
  const lines = (await readAll(response)).toString().trim().split('\n')
  const events = lines.map((line) => JSON.parse(line))
  assert.deepEqual(events.pop(), { exit: { exitCode: 0, truncated: false, timedOut: false } })
  const text = events.map((event) => event.text).join('')
  assert.equal(text.split('\n').length, 400_001)
  assert.ok(text.endsWith('399999\n400000\n'))
})

test('a command beyond the limit of concurrent commands returns 429', async () => {
  const refused: unknown[] = []
  const command = 'until [ -e refused ]; do sleep 0.1; done'
  const asked = Array.from({ length: 20 }, async () => {
    const answer = await agentd.json('POST', '/v1/exec', { command, ...limits })
    if (answer.status === 429) refused.push(answer)
    return answer
  })
  await until(
    async () => refused.length,
    (count) => count >= 4,
  )
  await writeFile(join(agentd.agent.paths.root, 'refused'), '')
  const answers = await Promise.all(asked)
  const statuses = answers.map(({ status }) => status)
  assert.equal(statuses.filter((status) => status === 200).length, 16)
  assert.equal(statuses.filter((status) => status === 429).length, 4)
  assert.equal(answers.find(({ status }) => status === 429)?.body.error, 'busy')
  assert.equal((await exec('echo again')).stdout, 'again\n')
})
