/** An agent's repository, used with git itself (contract 5.4). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { insertAgent } from '../agents/rows.ts'
import { openContext } from '../context.ts'
import { newAgent, useStandIn } from './context.ts'
import { openRepository } from './repository.ts'

const BUILD_MS = 120_000
const PACK_BYTES = 52_428_800

const context = await openContext()
const { anonymous, workspace } = context
const own = await workspace()
await useStandIn(context, own)
const agent = await newAgent(own.api)
const { home, git, done, address, clone, commit, push, manifest, takenOver, synced } = await openRepository(
  context,
  agent,
)

const exec = async (command: string): Promise<string> => {
  const { status, body } = await own.api.post(`${agent.path}/console/exec`, { command })
  assert.equal(status, 200)
  return body.stdout
}
const builtWith = (text: string) =>
  until(
    `build has written ${text}`,
    async () => (await exec('cat workspace/built.txt 2>/dev/null || true')) === text,
    BUILD_MS,
  )

describe('git clone', () => {
  it("git clone gets the agent's files", async () => {
    const dir = await clone()
    const { agent: described } = JSON.parse(await readFile(join(dir, 'manifest.json'), 'utf8'))
    assert.equal(described.name, 'Own')
    assert.equal((await done(dir, 'branch', '--show-current')).trim(), 'main')
  })
  it('git clone accepts a key as the password, even by the longer path', async () => {
    const reader = await own.keyed('org:agents:read')
    const dir = join(home, 'long')
    await done(home, 'clone', '--quiet', address(agent.agentId, reader.key, '/git'), dir)
    const bearer = `http.extraHeader=Authorization: Bearer ${reader.key}`
    await done(home, '-c', bearer, 'ls-remote', address(agent.agentId, undefined))
  })
  it('git clone is refused with a wrong password, and for other workspaces and other agents', async () => {
    const other = await workspace()
    const row = await insertAgent(context, other)
    const unknown = ['nonsense', '11111111-1111-4111-8111-111111111111']
    for (const password of [...unknown, other.api.key, row.gatewayToken]) {
      const { code, stderr } = await git(home, 'ls-remote', address(agent.agentId, password))
      assert.notEqual(code, 0)
      assert.match(stderr, /Authentication failed/)
    }
  })
  it('git clone of a missing agent says so', async () => {
    const { stderr } = await git(home, 'ls-remote', address('x0000000', own.api.key))
    assert.match(stderr, /remote: There is no such agent/)
  })
  it('git clone of a stopped agent says so', async () => {
    const row = await insertAgent(context, own)
    const { stderr } = await git(home, 'ls-remote', address(row.agentId, own.api.key))
    assert.match(stderr, /remote: The agent is not running/)
    const reply = await own.api.get(`${row.path}/git/info/refs`, { service: 'git-upload-pack' })
    assertError(reply, 503, 'The agent is not running')
    assert.ok(reply.headers.get('retry-after'))
  })
})

describe('git routes', () => {
  const REFS = `${agent.path}/git/info/refs`
  it('git routes support only the smart protocol', async () => {
    assertError(await own.api.get(REFS), 400, /^service: must be git-upload-pack or git-receive-pack/)
    assertError(await own.api.get(REFS, { service: 'git-evil' }), 400, /^service: /)
  })
  it('git routes ask for a password', async () => {
    const reply = await anonymous.get(REFS, { service: 'git-upload-pack' })
    assert.equal(reply.status, 401)
    assert.equal(reply.headers.get('www-authenticate'), 'Basic realm="Berth", charset="UTF-8"')
  })
  it('other routes accept no password', async () => {
    const basic = `Basic ${Buffer.from(`x:${own.api.key}`).toString('base64')}`
    assert.equal((await anonymous.get('/v0/agents', undefined, { authorization: basic })).status, 401)
  })
  it('git routes refuse a push with read access only', async () => {
    const reader = await own.keyed('org:agents:read')
    assert.equal((await reader.get(REFS, { service: 'git-upload-pack' })).status, 200)
    assertError(await reader.get(REFS, { service: 'git-receive-pack' }), 403, /^Missing scope: /)
    assertError(await reader.post(`${agent.path}/git/git-receive-pack`, {}), 403, /^Missing scope: /)
  })
  it("git routes respond with git's types, which browsers do not display", async () => {
    const { headers, body } = await own.api.get(REFS, { service: 'git-upload-pack' })
    assert.equal(headers.get('content-type'), 'application/x-git-upload-pack-advertisement')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.match(body, /^001e# service=git-upload-pack\n0000/)
  })
})

describe('git push', () => {
  it('git push changes the agent, applies the manifest and builds', async () => {
    const dir = await clone()
    await commit(dir, {
      'workspace/notes/pushed.md': 'from outside\n',
      'manifest.json': await manifest(dir, {
        agent: { name: 'Pushed', vibe: 'calm' },
        scripts: { build: 'printf %s first > workspace/built.txt', start: 'true' },
        routes: [{ port: 3000, path: '/app' }],
        skills: [{ clawhub_slug: '@berth/journal' }],
        secrets: [{ name: 'NOT_THERE' }, { name: 'NOT_NEEDED', required: false }],
        channels: { telegram: { botToken: 'env:NOT_THERE' } },
      }),
    })
    const { applied, problems } = await takenOver(await push(dir))
    assert.deepEqual(problems, [
      'secrets: NOT_THERE is not attached to the agent',
      // The agent may push too, so a push installs nothing from the hub.
      'skills[0]: There is no such skill in the library: @berth/journal',
      'channels.telegram: botToken: the secret NOT_THERE is not attached to the agent',
    ])
    for (const part of ['agent', 'routes']) assert.ok(applied.includes(part), part)
    await builtWith('first')
    assert.equal(await exec('cat workspace/notes/pushed.md'), 'from outside\n')
    const { body } = await own.api.get(agent.path)
    assert.deepEqual([body.agent.name, body.agent.vibe], ['Pushed', 'calm'])
    const { mappings } = (await own.api.get(`${agent.path}/port-forwarding`)).body
    assert.deepEqual(mappings, [{ port: 3000, pathPrefix: '/app', protected: true }])
  })

  it('a second git push keeps what was changed elsewhere', async () => {
    await own.api.put(`${agent.path}/port-forwarding`, { mappings: [] })
    await synced()
    const dir = await clone()
    await commit(dir, { 'manifest.json': await manifest(dir, { agent: { name: 'Pushed', vibe: 'brisk' } }) })
    // The manifest lists the current skills of the agent: none.
    assert.deepEqual((await takenOver(await push(dir))).applied, ['agent', 'skills'])
    assert.equal((await own.api.get(agent.path)).body.agent.vibe, 'brisk')
    assert.deepEqual((await own.api.get(`${agent.path}/port-forwarding`)).body.mappings, [])
  })

  it('git push accepts a large pack', async () => {
    const dir = await clone()
    await commit(dir, { 'workspace/large.bin': randomBytes(PACK_BYTES) })
    const sha = await push(dir)
    assert.equal((await exec('wc -c < workspace/large.bin')).trim(), String(PACK_BYTES))
    await takenOver(sha)
    const again = await clone()
    assert.equal((await readFile(join(again, 'workspace/large.bin'))).length, PACK_BYTES)
  })
})

describe('the gateway token after a rotation', () => {
  it('the previous gateway token is no longer a valid password', async () => {
    const old = agent.record.gatewayToken
    const dir = await clone(old)
    await commit(dir, { 'workspace/late.txt': 'late' })
    const { body } = await own.api.post(`${agent.path}/gateway-token/rotate`, {})
    const { code, stderr } = await git(dir, 'push', 'origin', 'main')
    assert.notEqual(code, 0)
    assert.match(stderr, /Authentication failed/)
    await done(dir, 'remote', 'set-url', 'origin', address(agent.agentId, body.token))
    await push(dir)
  })
})
