import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Log } from './logs.ts'
import { explainFailure, lackOfModel } from './model.ts'
import { NO_MODEL } from './protocol.ts'

const knows =
  (...providers: string[]) =>
  async () => ({ providers: providers.map((provider) => ({ provider })) })
const chosen = (model: unknown) => ({ agents: { defaults: { model } } })

test("an agent without a key for its model's provider has no model [report: no model]", async () => {
  assert.equal(await lackOfModel({}, {}, knows()), NO_MODEL)
  assert.equal(await lackOfModel({}, { ANTHROPIC_API_KEY: 'k' }, knows('anthropic')), NO_MODEL)
  assert.equal(await lackOfModel(chosen('berth/default'), { OPENAI_API_KEY: 'k' }, knows('openai')), NO_MODEL)
})

test("an agent has a model through its config, a secret, or its engine's own knowledge", async () => {
  const unasked = () => assert.fail('the engine is asked')
  const own = { ...chosen({ primary: 'mine/large' }), models: { providers: { mine: { baseUrl: 'x' } } } }
  assert.equal(await lackOfModel(own, {}, unasked), null)
  assert.equal(await lackOfModel({}, { OPENAI_API_KEY: 'k' }, unasked), null)
  assert.equal(await lackOfModel(chosen('anthropic/a'), { ANTHROPIC_API_KEY: 'k' }, unasked), null)
  assert.equal(await lackOfModel(chosen('google/a'), { GEMINI_API_KEY: 'k' }, knows('google')), null)
})

test('whether there is a model is unknown if the engine does not respond', async () => {
  for (const answer of [undefined, {}, null])
    assert.equal(await lackOfModel({}, {}, async () => answer), undefined)
  assert.equal(await lackOfModel({}, {}, async () => Promise.reject(new Error('busy'))), undefined)
})

test('a vague failure gets its reason from the log of the same request [report: no model]', async () => {
  const log = new Log()
  const add = (message: string, timestamp: string) =>
    log.add({ level: 'WARN', source: 'gateway/agent/embedded', message, timestamp })
  add('embedded run agent end: 500 of an earlier request', '2026-11-01T00:00:00.000Z')
  add('embedded run agent end: 503 Overloaded', '2026-11-02T00:00:01.000Z')
  add('embedded run failover decision', '2026-11-02T00:00:02.000Z')
  const since = Date.parse('2026-11-02T00:00:00.000Z')
  assert.equal(await explainFailure('internal error', log, since), 'internal error: 503 Overloaded')
  assert.equal(await explainFailure('429 Slow down', log, since), '429 Slow down')
  assert.equal(await explainFailure('internal error', log, since + 10_000), 'internal error')
})
