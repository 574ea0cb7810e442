/** agentd as its clients see it, without an engine: tokens, epochs, status, log, workspace. */
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { chmod, mkdir, readFile, rm, symlink, writeFile } from 'node:fs/promises'
import { type IncomingMessage, request } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { type AgentStatus, EPOCH_HEADER, type LogLine } from '../../../agentd/protocol.ts'
import { standInEngine, TestAgentd, TOKEN, until } from './agentd.ts'

let agentd: TestAgentd
before(async () => {
  agentd = await TestAgentd.start({ engineDir: await standInEngine() })
})
after(async () => {
  await agentd.close()
  await rm(agentd.config.engineDir, { recursive: true })
})

/** Sends a request with the given headers; resolves to the status and the body. */
function raw(
  method: string,
  path: string,
  options: { headers?: Record<string, string>; body?: string | Buffer } = {},
): Promise<{ status: number; body: string }> {
  return new Promise((resolve, reject) => {
    const sent = request(agentd.url(''), { method, path, headers: options.headers, agent: false })
    const read = async (response: IncomingMessage) => {
      let body = ''
      for await (const chunk of response) body += chunk
      resolve({ status: response.statusCode as number, body })
    }
    sent.once('response', (response) => read(response).catch(reject))
    sent.once('upgrade', (_response, socket) => socket.destroy(new Error('upgraded')))
    sent.once('error', reject)
    sent.end(options.body)
  })
}

const authorized = { authorization: `Bearer ${TOKEN}` }

test('every path returns 401 without the right token, even unknown paths', async () => {
  const headers = [
    '',
    'Bearer',
    'Bearer ',
    'Bearer x',
    `Basic ${TOKEN}`,
    `Bearer ${TOKEN} `,
    `Bearer ${TOKEN}x`,
  ]
  for (const authorization of headers.slice(0, -2)) {
    for (const path of ['/v1/status', '/nothing', '//']) {
      const { status, body } = await raw('GET', path, { headers: { authorization } })
      assert.equal(status, 401, authorization)
      assert.deepEqual(JSON.parse(body), { error: 'unauthorized', message: 'the token is wrong' })
    }
  }
  const upgrade = await raw('GET', '/v1/gateway/', {
    headers: { connection: 'Upgrade', upgrade: 'websocket' },
  })
  assert.equal(upgrade.status, 401)
})

test('an unknown or invalid call is rejected', async () => {
  const wrong: [string, string, Record<string, string>, string | undefined, number][] = [
    ['GET', '/v1/nothing', {}, undefined, 404],
    ['POST', '/v1/status', {}, undefined, 404],
    ['GET', '//v1/status', {}, undefined, 404],
    ['GET', '/v1/status?wait=x', {}, undefined, 400],
    ['GET', '/v1/logs?lines=-1', {}, undefined, 400],
    ['GET', '/v1/nothing', { connection: 'Upgrade', upgrade: 'websocket' }, undefined, 404],
    ['PUT', '/v1/gateway', { [EPOCH_HEADER]: '1' }, '{"run', 400],
    ['PUT', '/v1/gateway', { [EPOCH_HEADER]: '1' }, 'null', 400],
    ['PUT', '/v1/gateway', { [EPOCH_HEADER]: '1' }, '{"run":"x","env":{"A B":"1"}}', 400],
    ['PUT', '/v1/workspace', { [EPOCH_HEADER]: '1' }, 'x'.repeat(9_000_000), 413],
  ]
  for (const [method, path, headers, body, status] of wrong) {
    const answer = await raw(method, path, { headers: { ...authorized, ...headers }, ...(body && { body }) })
    assert.equal(answer.status, status, `${method} ${path}: ${answer.body}`)
  }
})

test('a worker with an older epoch can change nothing', async () => {
  const json = { files: [] }
  assert.equal((await agentd.call('PUT', '/v1/workspace', { json })).status, 400)
  assert.equal((await agentd.call('PUT', '/v1/workspace', { json, epoch: 7 })).status, 200)
  assert.equal((await agentd.call('PUT', '/v1/workspace', { json, epoch: 7 })).status, 200)
  for (const [method, path] of [
    ['PUT', '/v1/workspace'],
    ['PUT', '/v1/gateway'],
    ['DELETE', '/v1/gateway'],
    ['POST', '/v1/scripts'],
  ] as const) {
    const { status, body } = await agentd.call<{ error: string }>(method, path, { json: {}, epoch: 6 })
    assert.deepEqual([status, body.error], [409, 'stale_epoch'])
  }
  assert.equal((await agentd.status()).epoch, 7)
})

test('the status waits a limited time for another version', async () => {
  // From time to time, a change of the free disk space creates another version.
  const [version, took] = await until('a wait with nothing new', 60_000, async () => {
    const { version } = await agentd.status()
    const started = Date.now()
    const same = await agentd.call<AgentStatus>('GET', `/v1/status?wait=300&version=${version}`)
    return same.body.version === version ? [version, Date.now() - started] : undefined
  })
  assert.ok(took >= 290, `${took} ms`)
  const waiting = agentd.call<AgentStatus>('GET', `/v1/status?wait=30000&version=${version}`)
  await agentd.start({ env: { AGENT_READY_AFTER_MS: '60000' } }, 8)
  const { body } = await waiting
  assert.ok(body.version > version)
  assert.equal(body.gateway.state, 'starting')
  await agentd.call('DELETE', '/v1/gateway', { epoch: 8 })
})

test('seeded files appear once, and existing files of the agent stay', async () => {
  const root = join(agentd.home, 'clawd')
  const outside = join(agentd.folder, 'outside')
  await mkdir(outside)
  await writeFile(join(root, 'mine.md'), 'mine')
  await symlink(outside, join(root, 'out'))
  await symlink(join(outside, 'new'), join(root, 'link.md'))
  const seed = (path: string) =>
    agentd.call('PUT', '/v1/workspace', { json: { files: [{ path, text: 'seed' }] }, epoch: 9 })

  for (const path of ['mine.md', 'workspace/a/AGENTS.md', 'link.md'])
    assert.equal((await seed(path)).status, 200)
  assert.equal(await readFile(join(root, 'mine.md'), 'utf8'), 'mine')
  assert.equal(await readFile(join(root, 'workspace/a/AGENTS.md'), 'utf8'), 'seed')
  for (const path of ['', '.', '../x', '/x', 'a/../../x', 'a\0b'])
    assert.equal((await seed(path)).status, 400, path)
  assert.equal((await seed('out/x')).status, 403)
  assert.equal((await seed('mine.md/x')).status, 400)
  assert.deepEqual(execFileSync('ls', ['-A', outside]).toString(), '')
  const branch = execFileSync('git', ['-C', root, 'symbolic-ref', '--short', 'HEAD'])
  assert.equal(branch.toString().trim(), 'main')
})

test('the log can be followed; a stalled reader costs no memory and learns what it missed', async () => {
  const lines: LogLine[] = []
  const follow = async (): Promise<IncomingMessage> => {
    const sent = request(agentd.url('/v1/logs/stream?lines=2'), { headers: authorized, agent: false })
    sent.end()
    const [response] = await once(sent, 'response')
    return response
  }
  const quick = await follow()
  let rest = ''
  quick.on('data', (chunk) => {
    rest += chunk
    const parts = rest.split('\n')
    rest = parts.pop() as string
    // Empty lines keep the stream open.
    for (const part of parts) if (part) lines.push(JSON.parse(part))
  })
  const slow = await follow()
  slow.pause()
  await agentd.start({ env: { AGENT_FLOOD_BYTES: '100000000' } }, 10)
  await until('the end of the flood', 60_000, async () =>
    lines.some(({ message }) => message === 'the flood is over'),
  )
  const peak = /VmHWM:\s+(\d+)/.exec(await readFile(`/proc/${agentd.pid}/status`, 'utf8'))?.[1]
  assert.ok(Number(peak) < 250_000, `${peak} kB`)
  let text = ''
  slow.on('data', (chunk) => {
    text += chunk
  })
  slow.resume()
  await until('what the slow reader missed', 60_000, async () =>
    /lines were left out: the reader is too slow/.test(text),
  )
  quick.destroy()
  slow.destroy()
  await agentd.call('DELETE', '/v1/gateway', { epoch: 10 })
})

test('a worker that stalls in its body can change nothing once a newer worker has connected', async () => {
  const headers = { ...authorized, [EPOCH_HEADER]: '18' }
  const sent = request(agentd.url('/v1/workspace'), { method: 'PUT', headers, agent: false })
  sent.write('{"files": [{"path": "late.txt", ')
  await until('the first worker is seen', 10_000, async () => (await agentd.status()).epoch === 18)
  const followed = await agentd.call('PUT', '/v1/workspace', { json: { files: [] }, epoch: 19 })
  assert.equal(followed.status, 200)
  sent.end('"text": "late"}]}')
  const [response] = (await once(sent, 'response')) as [IncomingMessage]
  const text = Buffer.concat(await response.toArray()).toString()
  assert.deepEqual([response.statusCode, JSON.parse(text).error], [409, 'stale_epoch'])
  await assert.rejects(readFile(join(agentd.home, 'clawd', 'late.txt')), { code: 'ENOENT' })
})

test('agentd is reachable whatever the agent replaced its files with, and reports the fault', async () => {
  const own = await TestAgentd.start({ engineDir: agentd.config.engineDir })
  const closed = join(own.home, '.agentd', 'closed')
  try {
    await own.kill('SIGTERM')
    await rm(join(own.home, 'clawd'), { recursive: true })
    await writeFile(join(own.home, 'clawd'), 'no folder')
    await rm(join(own.home, '.agentd-home'))
    execFileSync('mkfifo', [join(own.home, '.agentd-home')])
    await mkdir(join(closed, 'full'), { recursive: true })
    // Only a normal user cannot remove the folder's content.
    await chmod(closed, 0)
    await own.boot()
    await own.start({})
    const { gateway } = await own.until('it has failed', 30_000, ({ gateway }) => gateway.state === 'failed')
    assert.match(gateway.reason ?? '', /^the gateway cannot be started: .*clawd/)
    const { body } = await own.call<{ exitCode: number }>('POST', '/v1/exec', {
      json: { command: 'rm ~/clawd && mkdir ~/clawd', cwd: '/tmp', timeoutMs: 10_000, outputBytes: 1000 },
    })
    assert.equal(body.exitCode, 0)
    await own.start({})
    await own.until('it is ready', 30_000, ({ gateway }) => gateway.state === 'ready')
  } finally {
    await chmod(closed, 0o700).catch(() => {})
    await own.close()
  }
})

test('the last log lines outlive agentd, without invalid lines [report: broken sandboxes]', async () => {
  const run = (await agentd.logs()).length
  const message = 'said before the restart'
  await agentd.call('POST', '/v1/exec', { json: { command: 'true', timeoutMs: 10_000, outputBytes: 10 } })
  const file = join(agentd.home, '.agentd-log.json')
  const line = { timestamp: new Date().toISOString(), level: 'INFO', source: 'gateway', message }
  await agentd.kill('SIGTERM')
  assert.ok(JSON.parse(await readFile(file, 'utf8')).length >= Math.min(run, 100))
  await writeFile(file, JSON.stringify([{ level: 1 }, null, line, 'x']))
  await agentd.boot()
  assert.deepEqual((await agentd.logs())[0], line)
  await agentd.kill('SIGTERM')
  await rm(file)
  await symlink('/etc/passwd', file)
  await agentd.boot()
  assert.ok(!JSON.stringify(await agentd.logs()).includes('root:'))
})
