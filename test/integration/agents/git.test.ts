/** git through Berth, to an agentd that the test controls: how bytes flow, and how they end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { buffer, text } from 'node:stream/consumers'
import { after, before, beforeEach, describe, it } from 'node:test'
import { listen } from '../../support/http-server.ts'
import { until } from '../../support/processes.ts'
import { startWorld, type TestAgent, type World } from '../vhosts/agents/world.ts'

let world: World
let agent: TestAgent
/** Handles the next git request in place of agentd. */
let serve: (req: IncomingMessage, res: ServerResponse) => void
/** The repository status that agentd returns. */
let repository: unknown

const agentd = await listen((req, res) => {
  if (req.url === '/v1/repository') return void res.end(JSON.stringify(repository))
  void serve(req, res)
})
const address = new URL(agentd).host

before(async () => {
  world = await startWorld()
  agent = await world.agent()
  await agent.set('address', address)
})
after(() => world?.stop())
beforeEach(() => {
  repository = { head: null, dirty: false, pushed: null }
  serve = (_req, res) => void res.end()
})

/** A git request for the repository of agent `of`, with its token as a password; the caller sends the body. */
function open(
  path: string,
  options: { headers?: Record<string, string>; method?: string; of?: TestAgent } = {},
) {
  const { headers, method = 'POST', of = agent } = options
  const password = Buffer.from(`x:${of.token}`).toString('base64')
  const sent = request(`${world.url}/v0/agents/${of.agentId}/git${path}`, {
    method,
    agent: false,
    headers: { authorization: `Basic ${password}`, ...headers },
  })
  sent.on('error', () => {})
  return sent
}
const answerOf = async (sent: ClientRequest): Promise<IncomingMessage> => (await once(sent, 'response'))[0]
const pushes = async () =>
  (
    await world.pool.query(`SELECT FROM operation WHERE agent_id = $1 AND kind = 'agent.push'`, [
      agent.agentId,
    ])
  ).rowCount
const areDispatched = async () =>
  (
    await world.pool.query(`SELECT FROM operation WHERE agent_id = $1 AND dispatched_at IS NULL`, [
      agent.agentId,
    ])
  ).rowCount === 0

describe('git through Berth', () => {
  it('git through Berth streams in both directions at once', async () => {
    serve = (req, res) => void req.on('data', (chunk) => res.write(chunk)).on('end', () => res.end())
    const sent = open('/git-receive-pack')
    const answered = answerOf(sent)
    for (const part of ['first', 'second']) {
      sent.write(part)
      const answer = await answered
      if (part === 'first') answer.setEncoding('utf8')
      assert.deepEqual(await once(answer, 'data'), [part])
    }
    sent.end()
    await once(await answered, 'end')
  })
  it('git through Berth passes requests unchanged, without password and cookies', async () => {
    let seen: Record<string, unknown> = {}
    serve = async (req, res) => {
      seen = { ...req.headers, url: req.url, body: await buffer(req) }
      res.setHeader('content-type', 'text/html').setHeader('set-cookie', 'a=b')
      res.end('<script>1</script>')
    }
    const compressed = Buffer.of(0x1f, 0x8b, 0, 255)
    const headers = { 'content-encoding': 'gzip', 'git-protocol': 'version=2', cookie: 'c=d' }
    const answer = await answerOf(open('/git-upload-pack', { headers }).end(compressed))
    assert.equal(await text(answer), '<script>1</script>')
    assert.equal(answer.headers['content-type'], 'application/x-git-upload-pack-result')
    assert.equal(answer.headers['set-cookie'], undefined)
    assert.equal(seen.url, '/v1/git/git-upload-pack')
    assert.deepEqual(seen.body, compressed)
    assert.equal(seen['content-encoding'], 'gzip')
    assert.equal(seen['git-protocol'], 'version=2')
    assert.equal(seen.cookie, undefined)
    assert.ok(!JSON.stringify(seen).includes(agent.token))
  })
  it('git through Berth tells Git LFS clients that LFS is not supported [report: git lfs]', async () => {
    for (const repository of ['/git', '.git', '/git.git'])
      for (const path of ['/objects/batch', '/locks/verify']) {
        const url = `${world.url}/v0/agents/${agent.agentId}${repository}/info/lfs${path}`
        const type = 'application/vnd.git-lfs+json'
        const answer = await fetch(url, { method: 'POST', headers: { 'content-type': type }, body: '{}' })
        assert.equal(answer.status, 501, url)
        assert.match(answer.headers.get('content-type') ?? '', /^application\/vnd\.git-lfs\+json/)
        assert.match(
          ((await answer.json()) as { message: string }).message,
          /^Git LFS is not offered: push the files themselves/,
        )
      }
  })
  it('git through Berth is aborted at the agent when its client leaves', async () => {
    let isOver = false
    serve = (req, res) => {
      res.write('begun')
      req.resume().once('close', () => (isOver = true))
    }
    const sent = open('/git-receive-pack')
    sent.write('part of a pack')
    await answerOf(sent)
    sent.destroy()
    await until('the agent sees the abort', () => isOver)
  })
  it('git through Berth is cut when the token is rotated', async () => {
    const own = await world.agent()
    await own.set('address', address)
    serve = (req, res) => {
      req.resume()
      res.write('begun')
    }
    const sent = open('/git-receive-pack', { of: own })
    sent.write('part of a pack')
    const answer = await answerOf(sent)
    await own.rotate()
    await assert.rejects(text(answer))
  })
  it('git through Berth reports a refusal in plain text to git and in JSON to others', async () => {
    serve = (_req, res) => {
      res.statusCode = 429
      res.end(JSON.stringify({ error: 'busy', message: '8 clients are served already' }))
    }
    const refs = '/info/refs?service=git-upload-pack'
    const headers = { 'user-agent': 'git/2.47.0' }
    const forGit = await answerOf(open(refs, { method: 'GET', headers }).end())
    assert.deepEqual([forGit.statusCode, forGit.headers['retry-after']], [503, '5'])
    assert.match(forGit.headers['content-type'] ?? '', /^text\/plain/)
    assert.equal(await text(forGit), 'The agent is busy: 8 clients are served already\n')
    const other = await answerOf(open(refs, { method: 'GET' }).end())
    assert.equal(await text(other), '{"error":"The agent is busy: 8 clients are served already"}')
  })
})

describe('a push', () => {
  it('a push is applied once, before its client sees the end', async () => {
    assert.equal(await pushes(), 0)
    await text(await answerOf(open('/git-receive-pack').end('refused')))
    assert.equal(await pushes(), 0)
    repository = { head: 'a'.repeat(40), dirty: false, pushed: 'a'.repeat(40) }
    for (const pack of ['first', 'second']) {
      await text(await answerOf(open('/git-receive-pack').end(pack)))
      assert.equal(await pushes(), 1)
      // While the dispatcher holds the operation's row, the operation cannot be reused, and a push enqueues another
      // one.
      await until('it is dispatched', areDispatched)
    }
    await text(await answerOf(open('/git-upload-pack').end('read')))
    assert.equal(await pushes(), 1)
  })
  it('a push succeeds whatever the agent reports about its repository', async () => {
    for (const strange of ['nothing', { pushed: 'x' }, { head: 1 }]) {
      repository = strange
      const answer = await answerOf(open('/git-receive-pack').end('pack'))
      assert.deepEqual([answer.statusCode, await text(answer)], [200, ''])
    }
  })
})
