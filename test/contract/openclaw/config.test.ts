/** The engine's own config (contract 4.3, 7.2), and what a manifest requests from the engine. */
import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import { after, before, describe, it } from 'node:test'
import { insertAgentRow } from '../../support/agent-row.ts'
import { assertError, type Reply } from '../../support/client.ts'
import { useDatabase } from '../../support/database.ts'
import { useFolder } from '../../support/folder.ts'
import { until } from '../../support/processes.ts'
import { cli } from '../../support/stack.ts'
import { files, manifest, templateMaker } from '../agents/templates.ts'
import { openContext } from '../context.ts'
import { startWebProcess } from '../web-process.ts'
import { newAgent, patientHost } from './context.ts'
import { openRepository } from './repository.ts'

const INVALID = 'Invalid JSON or invalid config'
const REDACTED = '__OPENCLAW_REDACTED__'

const context = await openContext()
const COUNT = { name: 'Count', prompt: 'Count the books.', schedule: '0 5 * * *', enabled: false }
const template = await templateMaker(context)
await template.snapshot(files(manifest({ tasks: [COUNT] })))
const { slug: templateId } = await template.make()
const { workspace } = template
const elsewhere = await startElsewhere()
// These tests change the configuration, so other files must not share the agent.
const secret = await workspace.api.post('/v0/secrets', { name: 'OTHER_BERTH_KEY', value: elsewhere.key })
const agent = await newAgent(workspace.api, { templateId, secretIds: [secret.body.secret.id] })
const { api } = agent
const CONFIG = `${agent.path}/config`

type Json = Record<string, any>

const text = async (): Promise<string> => {
  const { status, body } = await api.get(CONFIG)
  assert.equal(status, 200, JSON.stringify(body))
  assert.deepEqual(Object.keys(body), ['config'])
  return body.config
}
const config = async (): Promise<Json> => JSON.parse(await text())
const write = async (change: (config: Json) => void) => {
  const changed = await config()
  change(changed)
  const { status, body } = await api.put(CONFIG, { config: changed })
  assert.equal(status, 200, JSON.stringify(body))
}
const exec = async (command: string): Promise<Json> =>
  (await api.post(`${agent.path}/console/exec`, { command })).body
/** openclaw.json on disk. */
const onDisk = async (): Promise<Json> => JSON.parse((await exec('cat ../.openclaw/openclaw.json')).stdout)
const restart = async () => {
  const reply = await api.post(`${agent.path}/restart`, {}, { prefer: 'respond-async' })
  const operation = `/v0/operations/${reply.headers.get('operation-id')}`
  const isDone = async () => (await api.get(operation, { wait: '30' })).body.data.state === 'succeeded'
  await until('the agent has restarted', isDone, 180_000)
}

describe('manifests', async () => {
  const { clone, commit, manifest, push, synced, takenOver } = await openRepository(context, agent)
  const tasks = async (): Promise<[name: string, enabled: boolean, expr: string][]> => {
    const { jobs } = (await api.get(`${agent.path}/tasks`, { includeDisabled: 'true' })).body
    return jobs.map(({ name, enabled, schedule }: Json) => [name, enabled, schedule.expr]).sort()
  }
  /** Pushes a manifest with other parts; resolves to the applied parts. */
  const pushManifest = async (more: Json): Promise<string[]> => {
    await synced()
    const dir = await clone()
    await commit(dir, { 'manifest.json': await manifest(dir, more) })
    const { applied, problems } = await takenOver(await push(dir))
    assert.deepEqual(problems, [])
    return applied
  }
  const daily = (schedule: string) => ({ name: 'daily', schedule, prompt: 'Look around' })

  it('the manifest of a template gives the engine its tasks', async () => {
    assert.deepEqual(await tasks(), [['Count', false, '0 5 * * *']])
  })
  it('a pushed manifest gives the engine its tasks and its model', async () => {
    const applied = await pushManifest({
      tasks: [COUNT, daily('0 9 * * *')],
      model: 'anthropic/claude-sonnet-4-6',
    })
    for (const part of ['tasks', 'model']) assert.ok(applied.includes(part), part)
    assert.deepEqual((await config()).agents.defaults.model, {
      primary: 'anthropic/claude-sonnet-4-6',
      fallbacks: ['berth/default'],
    })
    assert.deepEqual(await tasks(), [
      ['Count', false, '0 5 * * *'],
      ['daily', true, '0 9 * * *'],
    ])
  })
  it('a manifest that is pushed again creates no duplicate task', async () => {
    assert.ok((await pushManifest({ tasks: [COUNT, daily('0 10 * * *')] })).includes('tasks'))
    assert.deepEqual(await tasks(), [
      ['Count', false, '0 5 * * *'],
      ['daily', true, '0 10 * * *'],
    ])
  })
})

describe('the config', () => {
  it('the schema of the config is read level by level', async () => {
    const root = await api.get(`${CONFIG}/schema`)
    assert.equal(root.status, 200, JSON.stringify(root.body))
    assert.ok(root.body.children.some(({ key, hasChildren }: Json) => key === 'agents' && hasChildren))
    const { status, body } = await api.get(`${CONFIG}/schema`, { path: 'agents.defaults' })
    assert.deepEqual([status, body.path], [200, 'agents.defaults'], JSON.stringify(body))
    const thinking = body.children.find(({ key }: Json) => key === 'thinkingDefault')
    assert.deepEqual([thinking.path, thinking.hasChildren], ['agents.defaults.thinkingDefault', false])
    const leaf = (await api.get(`${CONFIG}/schema`, { path: thinking.path })).body
    assert.deepEqual(leaf.children, [])
    assert.ok(JSON.stringify(leaf.schema).includes('"medium"'), JSON.stringify(leaf))
  })
  for (const path of ['nowhere', 'agents.nowhere.at.all', '..'])
    it(`the schema of the config returns 404 at ${path}`, async () =>
      assertError(await api.get(`${CONFIG}/schema`, { path }), 404, 'The config has no such key'))
  it('the config of an agent is returned as text, with its secrets redacted', async () => {
    const { gateway } = await config()
    assert.equal(gateway.auth.token, REDACTED)
    assert.ok(!(await text()).includes(agent.record.gatewayToken))
  })
  it('the config of an agent may be written as text or as an object', async () => {
    const value = await config()
    value.messages = { ackReaction: '👀' }
    const asText = await api.put(CONFIG, { config: JSON.stringify(value) })
    assert.deepEqual([asText.status, asText.body], [200, { success: true, message: 'Config written' }])
    assert.equal((await config()).messages.ackReaction, '👀')
    value.messages.ackReaction = '👍'
    assert.equal((await api.put(CONFIG, { config: value })).status, 200)
    assert.equal((await config()).messages.ackReaction, '👍')
  })
  it('the config of an agent survives a restart', async () => {
    await write((value) => {
      value.messages = { ackReaction: '🎈' }
    })
    await restart()
    assert.equal((await onDisk()).messages.ackReaction, '🎈')
  })
  it("the config of an agent cannot override the operator's keys", async () => {
    for (const take of [
      (value: Json) => {
        value.gateway.auth.token = 'mine-now'
      },
      (value: Json) => {
        value.update.checkOnStart = true
      },
    ]) {
      const value = await config()
      take(value)
      const reply = await api.put(CONFIG, { config: value })
      assertError(reply, 400, INVALID)
      assert.match(reply.headers.get('error-detail') ?? '', /operator/)
    }
    const { gateway, update } = await onDisk()
    assert.deepEqual([gateway.auth.token, update.checkOnStart], [agent.record.gatewayToken, false])
  })
  it("the operator's keys are listed by their paths, without their values", async () => {
    const { status, body } = await api.get(`${CONFIG}/operator-keys`)
    assert.deepEqual([status, Object.keys(body)], [200, ['keys']])
    for (const key of ['gateway.auth.token', 'update.checkOnStart', 'agents.defaults.workspace'])
      assert.ok(body.keys.includes(key), `${key} in ${body.keys}`)
    assert.ok(!body.keys.includes('agents.defaults.model.primary'))
    assert.ok(!JSON.stringify(body).includes(agent.record.gatewayToken))
  })
  for (const [what, bad] of [
    ['not JSON', '{'],
    ['a list', []],
    ['missing', undefined],
    ['unknown to the engine', { nonsense: true }],
    ['unknown to the engine', '{"gateway": {"port": "seven"}}'],
  ] as const)
    it(`the config of an agent is not written if it is ${what}: ${JSON.stringify(bad)}`, async () => {
      const before = await text()
      const reply = await api.put(CONFIG, { config: bad })
      assertError(reply, 400, INVALID)
      assert.ok(reply.headers.get('error-detail'))
      assert.equal(await text(), before)
    })
})

describe('versions of a config', () => {
  const put = (config: unknown, match?: string) =>
    api.request('PUT', CONFIG, {
      json: { config },
      ...(match !== undefined && { headers: { 'if-match': match } }),
    })
  const etag = ({ headers }: Reply) => headers.get('etag') ?? ''

  it('a config is written only over the version that its writer saw [report: config edits]', async () => {
    const read = await api.get(CONFIG)
    const seen = etag(read)
    assert.match(seen, /^"[\w-]+"$/)
    assert.equal(etag(await api.get(CONFIG)), seen, 'reading changes nothing')
    const value = JSON.parse(read.body.config)
    const written = await put({ ...value, logging: { level: 'debug' } }, seen)
    assert.equal(written.status, 200, JSON.stringify(written.body))
    assert.notEqual(etag(written), seen)
    assert.equal(etag(await api.get(CONFIG)), etag(written), 'for the next write by the same writer')
    assertError(await put(value, seen), 412, 'The config was changed in the meantime')
    assert.equal((await config()).logging.level, 'debug')
    const now = etag(await api.get(CONFIG))
    const both = await Promise.all(
      ['info', 'warn'].map((level) => put({ ...value, logging: { level } }, now)),
    )
    assert.deepEqual(both.map(({ status }) => status).sort(), [200, 412], 'one of two concurrent writes')
    assert.equal((await put(value, '*')).status, 200)
    for (const bad of ['W/"a"', 'a', '"a", "b"', ''])
      assertError(await put(value, bad), 400, 'If-Match: must be * or one strong ETag')
  })
})

describe('validating a config', () => {
  const validate = (body: unknown) => api.post(`${CONFIG}/validate`, body)

  it('validating a config succeeds for the current one, with and without a body', async () => {
    for (const reply of [
      await api.request('POST', `${CONFIG}/validate`),
      await validate({}),
      await validate({ config: await text() }),
      await validate({ config: await config() }),
    ]) {
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
      assert.equal(reply.body.valid, true, reply.body.output)
    }
  })
  it("validating a config returns the engine's errors, and writes nothing", async () => {
    const before = await text()
    const { status, body } = await validate({ config: { nonsense: true } })
    assert.equal(status, 200)
    assert.equal(body.valid, false)
    assert.match(body.output, /nonsense/)
    assert.equal(await text(), before)
  })
  it('validating a config that is not a JSON object returns 400', async () => {
    for (const bad of ['{', '7', 7, []]) assertError(await validate({ config: bad }), 400, INVALID)
    assertError(await api.request('POST', `${CONFIG}/validate`, { body: '{' }), 400, INVALID)
  })
  it('validating a config that is nested too deep, or too large indented, returns 400 at once', async () => {
    const nested = (depth: number) => `${'{"a":'.repeat(depth)}1${'}'.repeat(depth)}`
    const wide = `{"a":${'['.repeat(30)}${'1,'.repeat(400_000)}1${']'.repeat(30)}}`
    for (const json of [nested(33), nested(100_000), wide]) {
      assertError(
        await api.request('POST', `${CONFIG}/validate`, { body: `{"config":${json}}` }),
        400,
        INVALID,
      )
    }
    assertError(await validate({ config: nested(33) }), 400, INVALID)
    assertError(await api.put(CONFIG, { config: nested(33) }), 400, INVALID)
  })
})

describe('MCP servers in the config', () => {
  it('an agent uses the tools of another Berth with a key of that Berth', async () => {
    const page = await readFile(new URL('../../../docs/mcp.md', import.meta.url), 'utf8')
    const [, snippet = ''] = /\n## From an agent of Berth\n.*?```json\n(.*?)```/s.exec(page) ?? []
    const { mcp } = JSON.parse(snippet.replace('https://berth.example.com', elsewhere.url))
    await write((config) => Object.assign(config, { mcp }))
    const host = patientHost(context.url, agent)
    const message = { role: 'user', content: 'call berth__agents_list: {}' }
    // The gateway may still have the config from before.
    const reply = await until('the tool is called', async () => {
      const { status, body } = await host.post('/v1/chat/completions', {
        model: 'openclaw',
        messages: [message],
      })
      assert.equal(status, 200, JSON.stringify(body))
      return /^ran: .*/s.exec(body.choices[0].message.content)?.[0]
    })
    assert.match(reply, /Far away/)
    assert.ok(!(await text()).includes(elsewhere.key))
    assert.doesNotMatch(elsewhere.output(), /Warning/)
  })
})

describe('an unreadable config', () => {
  before(() => exec('cd ../.openclaw && mv openclaw.json kept && mkdir openclaw.json'))
  after(() => exec('cd ../.openclaw && rmdir openclaw.json && mv kept openclaw.json'))

  it("reading and writing an unreadable config return the contract's errors", async () => {
    assertError(await api.get(CONFIG), 500, 'Failed to read config')
    assertError(await api.put(CONFIG, { config: {} }), 500, 'Failed to write config')
  })
})

/** The web process of another Berth, with an agent and a key that may read it. */
async function startElsewhere() {
  const [database, dir] = [await useDatabase(), await useFolder('berth-elsewhere-')]
  const env = { ...process.env, DATABASE_URL: database.url, BERTH_DATA_DIR: dir }
  const web = await startWebProcess(env)
  after(() => web.running.end('SIGTERM'))
  const berth = cli(env)
  const workspaceId = await berth('workspaces', 'create', 'default')
  const key = await berth('keys', 'create', '--scopes', 'org:agents:read')
  await insertAgentRow(database.pool, { workspaceId, name: 'Far away', status: 'not_running' })
  return { url: web.url, key, output: web.running.output }
}
