/** A spare with the real engine gets its owner's settings while it runs. */
import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { defaultConfig, ownedConfig } from '../../src/openclaw/config.ts'
import { modelEnvironment } from '../../src/openclaw/models.ts'
import { TestAgentd, TOKEN } from '../integration/agentd/agentd.ts'
import { ENGINE_VERSION, ensureEngines } from '../support/engines.ts'
import { MODEL_KEY, startModel } from '../support/model.ts'
import { GATEWAY_TOKEN, whenReady } from './engine.ts'

const READY_MS = 240_000
const NAMES = ['ANTHROPIC_API_KEY', 'MY_TOOL_KEY']

/** A model gateway: the operator's model, and providers that refuse each call. */
async function startGateway() {
  const model = await startModel()
  const calls: string[] = []
  const server = createServer((req, res) => {
    const { method, url, headers } = req
    if (url?.startsWith('/berth/')) {
      const onward = request(new URL(url, model.url), { method, headers }, (answer) => {
        res.writeHead(answer.statusCode ?? 500, answer.headers)
        answer.pipe(res)
      })
      req.pipe(onward.on('error', () => res.destroy()))
      return
    }
    calls.push(`${url} ${headers['x-api-key']}`)
    res.writeHead(400, { 'content-type': 'application/json' }).end('{"error":{"message":"no such model"}}')
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = async () => {
    server.closeAllConnections()
    server.close()
    await model.stop()
  }
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, model, calls, close }
}

test('a running spare of the real engine uses its owner’s variables, keys and model', {
  timeout: 3 * READY_MS,
}, async (t) => {
  const gateway = await startGateway()
  t.after(() => gateway.close())
  const agentd = await TestAgentd.start({ engineDir: join(await ensureEngines(), ENGINE_VERSION) })
  t.after(() => agentd.close())

  /** @returns the gateway's process once it is ready. */
  async function start(run: string, secrets: Record<string, string>): Promise<number | null> {
    const access = { url: gateway.url, key: MODEL_KEY }
    const config = { BERTH_MODEL_URL: gateway.model.url, BERTH_MODEL_CONTEXT: 128_000 }
    const options = { config, secrets, localModel: null }
    const agent = { gatewayToken: GATEWAY_TOKEN }
    await agentd.start({
      run,
      spare: run === 'spare',
      secretNames: Object.keys(secrets).filter((name) => name !== 'ANTHROPIC_API_KEY'),
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
  async function chat(content: string, model?: string): Promise<string> {
    const headers = {
      authorization: `Bearer ${TOKEN}`,
      'content-type': 'application/json',
      ...(model && { 'x-openclaw-model': model }),
    }
    const body = JSON.stringify({ model: 'openclaw', messages: [{ role: 'user', content }] })
    const url = agentd.url('/v1/gateway/v1/chat/completions')
    const reply = await whenReady(async () => {
      const response = await fetch(url, { method: 'POST', headers, body })
      return { status: response.status, body: (await response.json()) as object }
    })
    return JSON.stringify(reply.body)
  }

  const pid = await start('spare', {})
  assert.equal(await start('owner', Object.fromEntries(NAMES.map((name) => [name, `value of ${name}`]))), pid)
  assert.match(
    await chat('run: echo "it is $MY_TOOL_KEY"', 'berth/default'),
    /ran: it is value of MY_TOOL_KEY/,
  )
  await chat('hello')
  assert.deepEqual(gateway.calls[0], `/anthropic/v1/messages ${MODEL_KEY}`)
})
