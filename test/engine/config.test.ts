/** The engine's configuration through agentd: what is shown, what is accepted, what lasts. */
import assert from 'node:assert/strict'
import { readdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { REDACTED } from '../../agentd/config-redaction.ts'
import type { ConfigCheck } from '../../agentd/protocol.ts'
import { until } from '../integration/agentd/agentd.ts'
import { type EngineTest, GATEWAY_TOKEN, startEngine, whenReady } from './engine.ts'

const SECRET = 'a-secret-of-the-workspace'
let engine: EngineTest

before(async () => {
  engine = await startEngine({ SERVICE_KEY: SECRET })
})
after(() => engine.close())

const path = () => join(engine.agentd.home, '.openclaw/openclaw.json')
const stored = async () => JSON.parse(await readFile(path(), 'utf8'))

async function read(): Promise<any> {
  const { status, body } = await engine.agentd.call<{ text: string }>('GET', '/v1/config')
  assert.equal(status, 200, JSON.stringify(body))
  return JSON.parse(body.text)
}

async function write(config: unknown): Promise<ConfigCheck & { error?: string; message?: string }> {
  const text = typeof config === 'string' ? config : JSON.stringify(config)
  return (await engine.agentd.call<ConfigCheck>('PUT', '/v1/config', { json: { text } })).body
}

async function validate(json: object): Promise<ConfigCheck> {
  const { status, body } = await engine.agentd.call<ConfigCheck>('POST', '/v1/config/validate', { json })
  assert.equal(status, 200, JSON.stringify(body))
  return body
}

/** The configuration that the running engine uses. */
async function applied(): Promise<any> {
  const json = { method: 'config.get', params: {}, timeoutMs: 20_000 }
  const { body } = await whenReady(() => engine.agentd.call<any>('POST', '/v1/rpc', { json }))
  return body.payload.config
}

test('secrets are hidden, and paths are in the form of the API', async () => {
  const config = await read()
  assert.equal(config.gateway.auth.token, REDACTED)
  assert.equal(config.agents.defaults.workspace, '/home/node/clawd/workspace')
  assert.equal(config.models.providers.berth.apiKey, `\${BERTH_MODEL_KEY}`, 'a reference is not a secret')
  assert.equal((await stored()).gateway.auth.token, GATEWAY_TOKEN)
})

test('a config can be read, changed and written without losing or restarting anything', async () => {
  const before = await engine.agentd.status()
  const config = await read()
  config.agents.defaults.thinkingDefault = 'low'
  config.models.providers.mine = {
    baseUrl: 'http://127.0.0.1:9/v1',
    apiKey: 'a key of my own',
    api: 'openai-completions',
    models: config.models.providers.berth.models,
  }
  config.messages = { responsePrefix: `x ${SECRET} y` }
  assert.equal((await write(config)).valid, true)
  const now = await stored()
  assert.equal(now.gateway.auth.token, GATEWAY_TOKEN)
  assert.equal(now.agents.defaults.workspace, join(engine.agentd.home, 'clawd/workspace'))
  assert.equal((await applied()).agents.defaults.thinkingDefault, 'low')

  const again = await read()
  assert.equal(again.models.providers.mine.apiKey, REDACTED)
  assert.equal(again.messages.responsePrefix, REDACTED)
  assert.equal((await write(again)).valid, true)
  assert.equal((await stored()).models.providers.mine.apiKey, 'a key of my own')
  assert.equal((await stored()).messages.responsePrefix, `x ${SECRET} y`)
  const { gateway } = await engine.agentd.status()
  const { pid, restarts } = before.gateway
  assert.deepEqual([gateway.pid, gateway.restarts, gateway.state], [pid, restarts, 'ready'])
})

test('keys that the operator owns cannot be overridden, and are restored if omitted', async () => {
  const refused = async (change: (config: any) => void) => {
    const config = await read()
    change(config)
    const { error, message } = await write(config)
    assert.equal(error, 'bad_request')
    return message?.split(':')[0]
  }
  const before = await stored()
  assert.equal(
    await refused((config) => Object.assign(config.gateway.auth, { token: 'mine' })),
    'gateway.auth.token',
  )
  assert.equal(await refused((config) => Object.assign(config.gateway, { bind: 'lan' })), 'gateway.bind')
  assert.equal(await refused((config) => Object.assign(config, { gateway: null })), 'gateway')
  assert.equal(await refused((config) => Object.assign(config, { gateway: [] })), 'gateway')
  assert.equal(
    await refused((config) => config.gateway.trustedProxies.push('10.0.0.1')),
    'gateway.trustedProxies',
  )
  assert.deepEqual(await stored(), before)

  const config = await read()
  delete config.gateway
  delete config.update
  assert.equal((await write(config)).valid, true)
  assert.equal((await stored()).gateway.auth.token, GATEWAY_TOKEN)
  assert.equal((await stored()).update.checkOnStart, false)
})

test('a redacted value is accepted only where the config has one', async () => {
  const refused = async (change: (config: any) => void) => {
    const config = await read()
    change(config)
    return (await write(config)).message
  }
  const config = { baseUrl: 'http://127.0.0.1:9/v1', apiKey: REDACTED, models: [] }
  assert.match(
    (await refused((all) => (all.models.providers.new = config))) ?? '',
    /^models\.providers\.new\.apiKey: /,
  )
  assert.match(
    (await refused((all) => (all.messages = { responsePrefix: `a ${REDACTED}` }))) ?? '',
    /^messages/,
  )
  assert.match((await refused((all) => (all.models.providers[REDACTED] = {}))) ?? '', /^models\.providers: /)
  assert.ok(!(await readFile(path(), 'utf8')).includes(REDACTED))
})

test('a config that the engine rejects changes nothing, and the engine’s reason is returned', async () => {
  const before = await readFile(path(), 'utf8')
  const config = await read()
  const check = await write({ ...config, gatway: {} })
  assert.equal(check.valid, false)
  assert.match(check.output, /^<root>: .*gatway/)
  for (const text of ['', '{', '{a: 1}', '[]', 'null', '"x"', '{"a":1} x'])
    assert.equal((await write(text)).error, 'bad_request', text)
  assert.match((await write('['.repeat(100_000) + ']'.repeat(100_000))).error ?? '', /bad_request/)
  assert.equal(await readFile(path(), 'utf8'), before)
  const left = (await readdir(join(engine.agentd.home, '.openclaw'))).filter((name) => name.endsWith('.part'))
  assert.deepEqual(left, [])
})

test('checking a config changes nothing', async () => {
  const before = await readFile(path(), 'utf8')
  assert.deepEqual(await validate({}), { valid: true, output: '' })
  assert.deepEqual(await validate({ text: JSON.stringify(await read()) }), { valid: true, output: '' })
  const wrong = await validate({ text: '{"agents":{"defaults":{"model":7}}}' })
  assert.equal(wrong.valid, false)
  assert.match(wrong.output, /^agents\.defaults\.model: /m)
  assert.match((await validate({ text: '{"gateway":{"port":1}}' })).output, /^gateway\.port: /)
  assert.match((await validate({ text: '{no json' })).output, /^not valid JSON/)
  assert.equal(await readFile(path(), 'utf8'), before)
})

test('a written config survives a restart, even if the file became much shorter', async () => {
  const config = await read()
  delete config.models.providers.mine
  delete config.messages
  config.messages = { responsePrefix: 'berth' }
  assert.equal((await write(config)).valid, true)
  await until(
    'the engine has applied it',
    60_000,
    async () => (await applied()).messages.responsePrefix === 'berth',
  )
  await engine.run()
  const now = await read()
  assert.deepEqual([now.messages.responsePrefix, now.agents.defaults.thinkingDefault], ['berth', 'low'])
  assert.equal((await applied()).messages.responsePrefix, 'berth')
})

test('a broken config can be read and repaired while the gateway is down', async () => {
  const good = await read()
  await engine.agentd.call('DELETE', '/v1/gateway', { epoch: 1 })
  await writeFile(path(), `{ broken, "token": "${GATEWAY_TOKEN}"`)
  const { body } = await engine.agentd.call<{ text: string }>('GET', '/v1/config')
  assert.match(body.text, /^\{ broken/)
  assert.ok(!body.text.includes(GATEWAY_TOKEN))
  assert.equal((await validate({})).valid, false)
  assert.equal((await write({ ...good, nonsense: 1 })).valid, false)
  assert.equal((await write(good)).valid, true)
  await engine.run()
  assert.equal((await validate({})).valid, true)
})
