/** The engine's configuration through agentd: what is shown, what is accepted, what lasts. */
import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
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
