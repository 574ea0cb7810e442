/** The models that new agents can have without a key. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { openContext } from '../context.ts'

const context = await openContext()
const own = await context.workspace()
const MODELS = '/v0/agents/models'

describe('models of new agents', () => {
  it('models are listed with whether the operator has set one, wherever a client points', async () => {
    const reader = await own.keyed('org:agents:read')
    const { status, body } = await reader.get(
      `${MODELS}?baseUrl=http://127.0.0.1:1&server=http://example.com`,
    )
    assert.equal(status, 200)
    assert.deepEqual(Object.keys(body.data).sort(), ['hasDefault', 'local'])
    assert.equal(body.data.hasDefault, context.env.BERTH_MODEL_URL !== undefined)
    for (const { server, models } of body.data.local) {
      assert.ok(['ollama', 'lm-studio', 'llama.cpp'].includes(server), server)
      assert.ok(models.length > 0)
    }
  })
  it('a new agent takes a local model by its server and name, and no address', async () => {
    for (const [localModel, message] of [
      [{ server: 'http://127.0.0.1:9999', model: 'small' }, /^localModel\.server: must be one of ollama, /],
      [{ server: 'ollama', model: 'two\nlines' }, /^localModel\.model: /],
      [{ server: 'ollama', model: 'small', baseUrl: 'http://127.0.0.1:9999' }, /baseUrl/],
    ] as const)
      assertError(await own.api.post('/v0/agents', { name: 'Local', localModel }), 400, message)
  })
})
