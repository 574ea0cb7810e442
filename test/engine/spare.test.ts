/** A spare with the real engine gets its owner's settings while it runs. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { defaultConfig, ownedConfig } from '../../src/openclaw/config.ts'
import { modelEnvironment } from '../../src/openclaw/models.ts'
import { TestAgentd, TOKEN } from '../integration/agentd/agentd.ts'
import { ENGINE_VERSION, ensureEngines } from '../support/engines.ts'
import { MODEL_KEY, startModel } from '../support/model.ts'
import { GATEWAY_TOKEN, whenReady } from './engine.ts'

const READY_MS = 240_000
test('a running spare of the real engine uses its owner’s variables and the operator’s model', {
  timeout: 3 * READY_MS,
}, async (t) => {
  const model = await startModel()
  t.after(() => model.stop())
  const agentd = await TestAgentd.start({ engineDir: join(await ensureEngines(), ENGINE_VERSION) })
  t.after(() => agentd.close())

  /** @returns the gateway's process once it is ready. */
  async function start(run: string, secrets: Record<string, string>): Promise<number | null> {
    const access = { url: model.url.replace(/\/v1$/, ''), key: MODEL_KEY }
    const config = { BERTH_MODEL_URL: model.url, BERTH_MODEL_CONTEXT: 128_000 }
    const options = { config, secrets, localModel: null }
    const agent = { gatewayToken: GATEWAY_TOKEN }
    await agentd.start({
      run,
      spare: run === 'spare',
      secretNames: Object.keys(secrets),
      env: { ...secrets, ...modelEnvironment({ config, access, secrets }) },
      gatewayToken: GATEWAY_TOKEN,
      ownedConfig: ownedConfig({ ...options, access, agent, channels: {} }),
      defaultConfig: defaultConfig(options),
      readyMs: READY_MS,
    })
    const { gateway: now } = await agentd.until('ready', READY_MS, ({ gateway: { state, run: of } }) => {
      if (state === 'failed') throw new Error('the gateway has failed')
      return state === 'ready' && of === run
    })
    return now.pid
  }
  const chat = async (content: string) => {
    const headers = { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' }
    const body = JSON.stringify({ model: 'openclaw', messages: [{ role: 'user', content }] })
    const url = agentd.url('/v1/gateway/v1/chat/completions')
    const reply = await whenReady(async () => {
      const response = await fetch(url, { method: 'POST', headers, body })
      return { status: response.status, body: (await response.json()) as object }
    })
    return JSON.stringify(reply.body)
  }

  const pid = await start('spare', {})
  assert.equal(await start('owner', { MY_TOOL_KEY: 'my value' }), pid)
  assert.match(await chat('run: echo "it is $MY_TOOL_KEY"'), /ran: it is my value/)
})
