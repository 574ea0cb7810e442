import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DEFAULT_MODEL, defaultConfig, modelEnvironment, ownedConfig } from './config.ts'

const agent = { gatewayToken: 'the-token' }
const none = {
  BERTH_MODEL_URL: undefined,
  BERTH_MODEL: 'default',
  BERTH_MODEL_KEY: undefined,
  BERTH_MODEL_CONTEXT: 4096,
}
const local = { ...none, BERTH_MODEL_URL: 'http://localhost:11434/v1', BERTH_MODEL: 'small-1' }

/** Tests reach into a configuration at any depth. */
type Loose = any

test('the gateway listens on loopback, with the token of the agent', () => {
  const { gateway }: Loose = ownedConfig({ config: none, runtime: 'docker', agent, channels: {} })
  assert.equal(gateway.bind, 'loopback')
  assert.equal(gateway.auth.mode, 'token')
  assert.equal(gateway.auth.token, 'the-token')
  assert.deepEqual(gateway.trustedProxies, [])
})

test("the operator's model is called by the server's own name, whatever agents call it", () => {
  const { models, agents }: Loose = ownedConfig({ config: local, runtime: 'process', agent, channels: {} })
  const { berth } = models.providers
  assert.equal(`berth/${berth.models[0].id}`, DEFAULT_MODEL)
  assert.equal(agents.defaults.models[DEFAULT_MODEL].params.extra_body.model, 'small-1')
  assert.equal(berth.models[0].contextWindow, 4096)
  assert.ok(berth.models[0].maxTokens <= 4096)
  const { agents: chosen }: Loose = defaultConfig({ config: local })
  assert.equal(chosen.defaults.model.primary, DEFAULT_MODEL)
})

test('a model on this machine or at a private address has another name in containers', () => {
  const urlIn = (runtime: 'docker' | 'kubernetes' | 'process', config = local) => {
    const { models }: Loose = ownedConfig({ config, runtime, agent, channels: {} })
    return models.providers.berth.baseUrl
  }
  assert.equal(urlIn('process'), 'http://localhost:11434/v1')
  assert.equal(urlIn('docker'), 'http://host.docker.internal:11434/v1')
  const nearby = { ...local, BERTH_MODEL_URL: 'http://192.168.1.20:11434/v1' }
  assert.equal(urlIn('process', nearby), 'http://192.168.1.20:11434/v1')
  for (const runtime of ['docker', 'kubernetes'] as const)
    assert.equal(urlIn(runtime, nearby), 'http://model.berth.internal:11434/v1')
})

test("the operator's key is in the environment, not in the file", () => {
  const config = { ...local, BERTH_MODEL_KEY: 'the-key' }
  const owned = ownedConfig({ config, runtime: 'docker', agent, channels: {} })
  assert.ok(!JSON.stringify(owned).includes('the-key'))
  const env = modelEnvironment(config)
  assert.deepEqual(Object.values(env), ['the-key'])
  const { models }: Loose = owned
  // After a refusal the engine would block an `api-key`.
  assert.equal(models.providers.berth.auth, 'token')
  assert.equal(models.providers.berth.apiKey, `\${${Object.keys(env)[0]}}`)
})

test("without an operator's model, the provider is removed and no model is chosen", () => {
  const { models }: Loose = ownedConfig({ config: none, runtime: 'docker', agent, channels: {} })
  assert.equal(models.providers.berth, null)
  const { agents }: Loose = defaultConfig({ config: none })
  assert.equal(agents.defaults.model, undefined)
  assert.deepEqual(modelEnvironment(none), {})
})

test('an agent uses the provider whose key it has [report: no model]', () => {
  const primary = (env: Record<string, string>, config: typeof none | typeof local = none) => {
    const { agents }: Loose = defaultConfig({ config, env })
    return agents.defaults.model?.primary
  }
  assert.equal(primary({ ANTHROPIC_API_KEY: 'k' }), 'anthropic/claude-opus-5')
  // Undefined leaves the engine's own default.
  assert.equal(primary({ ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' }), undefined)
  assert.equal(primary({ TELEGRAM_TOKEN: 'k' }), undefined)
  assert.equal(primary({ ANTHROPIC_API_KEY: 'k' }, local), DEFAULT_MODEL)
})

test('a local model that the owner chose goes before any other, and the owner may change it', () => {
  const localModel = { server: 'ollama', model: 'qwen/qwen3:8b' } as const
  for (const config of [none, local]) {
    const { models, agents }: Loose = defaultConfig({ config, env: { ANTHROPIC_API_KEY: 'k' }, localModel })
    assert.equal(agents.defaults.model.primary, 'local/qwen/qwen3:8b')
    assert.equal(models.providers.local.baseUrl, 'http://127.0.0.1:11434/v1')
    assert.equal(models.providers.local.models[0].id, 'qwen/qwen3:8b')
    assert.equal(models.providers.local.models[0].contextWindow, 4096)
    const owned: Loose = ownedConfig({ config, runtime: 'process', agent, channels: {} })
    assert.equal(owned.models.providers.local, undefined)
  }
  assert.equal(defaultConfig({ config: local }).models, undefined)
})

test('channels are added to the owned keys', () => {
  const channels = {
    channels: { telegram: { enabled: true } },
    plugins: { entries: { telegram: { enabled: true } } },
  }
  const owned: Loose = ownedConfig({ config: none, runtime: 'docker', agent, channels })
  assert.deepEqual(owned.channels, channels.channels)
  assert.deepEqual(Object.keys(owned.plugins.entries).sort(), ['admin-http-rpc', 'telegram'])
})
