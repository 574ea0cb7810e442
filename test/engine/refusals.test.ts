/** The words in which the model gateway refuses, as each version of the engine shows them. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, test } from 'node:test'
import type { Refusal } from '../../src/agent-proxy/model/protocol.ts'
import { endOf, type Limit } from '../../src/models/limits.ts'
import { budgetExceeded, PAUSED } from '../../src/models/refusals.ts'
import { TOKEN } from '../integration/agentd/agentd.ts'
import { compiledEngine, ENGINE_VERSION, OLDER_ENGINE_VERSION } from '../support/engines.ts'
import { type EngineTest, startWith } from './engine.ts'
import { type DialectModel, startDialectModel } from './model-dialects.ts'

const SECRETS = { OPENAI_API_KEY: 'x', ANTHROPIC_API_KEY: 'x', GEMINI_API_KEY: 'x' }
const DEFAULT = 'berth/default'
const MODELS = [DEFAULT, 'openai/gpt-5.5', 'anthropic/claude-opus-5', 'google/gemini-3.1-pro-preview']
const TURN_MS = 120_000

const usd = (amount: number) => BigInt(amount * 1e12)
const MONTH: Limit = {
  ...{ workspaceId: 'w', agentId: 'a', scope: 'agent', period: 'month', unit: 'usd' },
  ...{ limit: usd(5), spent: usd(5), held: 0n, idle: 0n, resetsAt: endOf('month', new Date()) },
}
const DAY: Limit = { ...MONTH, scope: 'workspace', period: 'day', unit: 'tokens', limit: usd(6) }
const SPENT = budgetExceeded(MONTH, 1n)
const REFUSALS: [name: string, refusal: Refusal, models: string[]][] = [
  ['a spent budget', SPENT, MODELS],
  ['a budget with too little left', budgetExceeded(DAY, usd(2)), [DEFAULT]],
  ['a pause', PAUSED, MODELS],
]

for (const version of [ENGINE_VERSION, OLDER_ENGINE_VERSION])
  describe(`engine ${version}`, { timeout: 900_000 }, () => {
    let engine: EngineTest<DialectModel>
    let model: DialectModel
    before(async () => {
      const engineDir = await compiledEngine(version)
      // An empty list lets requests choose any model.
      const defaults = { model: { primary: DEFAULT }, modelPolicy: { allow: [] } }
      model = await startDialectModel()
      engine = await startWith(model, SECRETS, { engineDir, config: { agents: { defaults } } })
      await turn(DEFAULT)
    })
    after(() => engine.close())

    async function ask(path: string, json: object, headers = {}): Promise<Response> {
      return await fetch(engine.agentd.url(path), {
        method: 'POST',
        headers: { authorization: `Bearer ${TOKEN}`, 'content-type': 'application/json', ...headers },
        body: JSON.stringify(json),
        signal: AbortSignal.timeout(TURN_MS),
      })
    }

    /** A turn over HTTP, and how often the engine called the model for it. */
    async function turn(name: string) {
      const before = model.requests
      const question = { model: 'openclaw/default', messages: [{ role: 'user', content: 'how are you' }] }
      const answer = await ask('/v1/gateway/v1/chat/completions', question, { 'x-openclaw-model': name })
      const { error, choices } = (await answer.json()) as any
      const text = error?.message ?? choices[0].message.content
      return { status: answer.status, text, tries: model.requests - before }
    }

    for (const [name, refusal, models] of REFUSALS)
      for (const of of models)
        test(`${name} costs ${of} one try, shows its reason, and the next turn passes [${version}]`, async () => {
          model.refusal = refusal
          const refused = await turn(of)
          model.refusal = undefined
          assert.deepEqual([refused.status, refused.tries], [429, 1], refused.text)
          assert.ok(refused.text.includes(refusal.message), refused.text)
          assert.deepEqual(await turn(of), { status: 200, text: 'pong', tries: 1 })
        })

    test(`a conversation shows why a budget ended its turn [${version}]`, async () => {
      model.refusal = SPENT
      const message = { sessionKey: `agent:main:berth:${randomUUID()}`, message: 'hello' }
      const events = (await (await ask('/v1/chat', message)).text()).trim().split('\n')
      model.refusal = undefined
      const { state, error } = JSON.parse(events.at(-1) ?? '')
      assert.equal(state, 'failed')
      assert.ok(error.includes(SPENT.message), error)
    })
  })
