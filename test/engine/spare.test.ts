/** A spare with the real engine gets its owner's settings while it runs, and is then like any other agent. */
import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import type { AddressInfo } from 'node:net'
import { dirname } from 'node:path'
import { type TestContext, test } from 'node:test'
import type { RpcResponse } from '../../agentd/protocol.ts'
import { defaultConfig, ownedConfig } from '../../src/openclaw/config.ts'
import { modelEnvironment } from '../../src/openclaw/models.ts'
import { TestAgentd, TOKEN } from '../integration/agentd/agentd.ts'
import { compiledEngine } from '../support/engines.ts'
import { MODEL, MODEL_KEY, startModel } from '../support/model.ts'
import { GATEWAY_TOKEN, whenReady } from './engine.ts'
import { startDialectModel } from './model-dialects.ts'

const READY_MS = 240_000
/** A provider whose dialect is its own, and a tool's key. */
const SECRETS = { ANTHROPIC_API_KEY: MODEL_KEY, MY_TOOL_KEY: 'my value' }
const LOCAL = { server: 'ollama', model: MODEL } as const
/** Methods that show what the engine knows. */
const METHODS = ['config.get', 'models.list', 'models.authStatus', 'channels.status', 'commands.list']
METHODS.push('agents.list', 'skills.status', 'tools.catalog', 'plugins.list', 'cron.list')

/** The model, and in front of the paths of Anthropic one that speaks its dialect. */
async function startModels(t: TestContext): Promise<string> {
  const [model, dialects] = await Promise.all([startModel(), startDialectModel()])
  const server = createServer((req, res) => {
    const { url = '', method, headers } = req
    const bare = `${model.url.replace(/\/v1$/, '')}${url.replace(/^\/local/, '')}`
    const to = url.startsWith('/anthropic') ? `${dialects.url}${url}` : bare
    const sent = request(to, { method, headers }, (answer) => {
      res.writeHead(answer.statusCode ?? 502, answer.headers)
      answer.pipe(res)
    })
    req.pipe(sent)
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  t.after(async () => {
    server.closeAllConnections()
    server.close()
    await Promise.all([model.stop(), dialects.stop()])
  })
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`
}

class Agent {
  readonly #agentd: TestAgentd
  readonly #url: string

  private constructor(agentd: TestAgentd, url: string) {
    this.#agentd = agentd
    this.#url = url
  }

  static async start(t: TestContext, url: string): Promise<Agent> {
    const agentd = await TestAgentd.start({ engineDir: await compiledEngine() })
    t.after(() => agentd.close())
    return new Agent(agentd, url)
  }

  /** @returns the gateway's process once it is ready. */
  async run(run: 'spare' | 'owner'): Promise<number | null> {
    const access = { url: this.#url, key: MODEL_KEY }
    const config = { BERTH_MODEL_URL: `${this.#url}/v1`, BERTH_MODEL_CONTEXT: 128_000 }
    const secrets: Record<string, string> = run === 'owner' ? SECRETS : {}
    const options = { config, secrets, localModel: run === 'owner' ? LOCAL : null }
    const agent = { gatewayToken: GATEWAY_TOKEN }
    // An empty list lets requests choose any model.
    const more = { agents: { defaults: { modelPolicy: { allow: [] } } } }
    await this.#agentd.start({
      run,
      spare: run === 'spare',
      secretNames: run === 'owner' ? ['MY_TOOL_KEY'] : [],
      env: { ...secrets, ...modelEnvironment({ config, access, secrets }) },
      gatewayToken: GATEWAY_TOKEN,
      ownedConfig: ownedConfig({ ...options, access, agent, channels: more }),
      defaultConfig: defaultConfig(options),
      readyMs: READY_MS,
    })
    const { gateway } = await this.#agentd.until('ready', READY_MS, ({ gateway: { state, run: of } }) => {
      if (state === 'failed') throw new Error('the gateway has failed')
      return state === 'ready' && of === run
    })
    return gateway.pid
  }

  /** A turn. @param model another one than the agent's. */
  async chat(content: string, model?: string): Promise<string> {
    const headers = {
      ...{ authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json' },
      ...(model && { 'x-openclaw-model': model }),
    }
    const body = JSON.stringify({ model: 'openclaw', messages: [{ role: 'user', content }] })
    const url = this.#agentd.url('/v1/gateway/v1/chat/completions')
    const reply = await whenReady(async () => {
      const response = await fetch(url, { method: 'POST', headers, body })
      return { status: response.status, body: (await response.json()) as object }
    })
    return JSON.stringify(reply.body)
  }

  /** Everything that its owner can see of the engine, without what differs between any two agents. */
  async seen(): Promise<unknown> {
    const answers: Record<string, unknown> = {}
    for (const method of METHODS) {
      const json = { method, params: {}, timeoutMs: 30_000 }
      const { body } = await whenReady(() => this.#agentd.call<RpcResponse>('POST', '/v1/rpc', { json }))
      assert.ok(body.ok, `${method}: ${JSON.stringify(body)}`)
      answers[method] = body.payload
    }
    const command = 'cd ~ && find . -type f | sort; cat .openclaw/openclaw.json; env | sort'
    const json = { command, timeoutMs: 10_000, outputBytes: 100_000 }
    const { body } = await this.#agentd.call<{ stdout: string }>('POST', '/v1/exec', { json })
    answers.sandbox = body.stdout.split('\n').filter((line) => !OWN_FILES.test(line))
    const { home, config } = this.#agentd
    const text = JSON.stringify(answers)
      .replaceAll(dirname(home), '')
      .replaceAll(`${config.gatewayPort}`, '1')
      .replaceAll(/[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, 'id')
    return JSON.parse(text, (key, value) => (CHANGING.test(key) ? undefined : value))
  }
}

/** Ids, times, loads, and how often the engine has read its plugins or asked providers. */
const CHANGING = /^(ts|eventLoop|generation|pendingProviders|anchorMs)$|[hH]ash$|AtMs$|Revision$/
/** The engine's logs, locks and copies. */
const OWN_FILES = /^\.\/\.(npm|cache|openclaw\/(logs|tmp))\/|\.last-good$/

test('a running spare of the real engine becomes an agent like any other', {
  timeout: 4 * READY_MS,
}, async (t) => {
  const url = await startModels(t)
  const adopted = await Agent.start(t, url)
  const pid = await adopted.run('spare')
  assert.equal(await adopted.run('owner'), pid)
  const cold = await Agent.start(t, url)
  await cold.run('owner')
  assert.deepEqual(await adopted.seen(), await cold.seen())
  assert.match(await adopted.chat('run: echo "it is $MY_TOOL_KEY"'), /ran: it is my value/)
  // With its variables after its config, the engine spoke OpenAI's dialect to it.
  assert.match(await adopted.chat('hello', 'anthropic/claude-opus-5'), /"content":"pong"/)
})
