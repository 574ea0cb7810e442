import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { LocalModel } from '../lib/net/local-models.ts'
import { defaultConfig, ownedConfig } from './config.ts'
import { DEFAULT_MODEL, modelEnvironment } from './models.ts'

const agent = { gatewayToken: 'the-token' }
const none = { BERTH_MODEL_URL: undefined, BERTH_MODEL_CONTEXT: 4096 }
const local = { ...none, BERTH_MODEL_URL: 'http://localhost:11434/v1' }
const access = { url: 'http://gateway', key: 'virtual' }

interface Options {
  config?: typeof none | typeof local
  secrets?: Record<string, string>
  localModel?: LocalModel
  channels?: Record<string, unknown>
}
const full = ({ config = none, secrets = {}, localModel, channels = {} }: Options) => {
  return { config, secrets, localModel: localModel ?? null, agent, access, channels }
}
const owned = (options: Options) => ownedConfig(full(options))
const primaryOf = (options: Options): string | undefined => {
  const { agents }: Loose = defaultConfig(full(options))
  return agents.defaults.model?.primary
}

/** Tests reach into a configuration at any depth. */
type Loose = any

test('the gateway listens on loopback, with the token of the agent', () => {
  const { gateway }: Loose = owned({})
  assert.equal(gateway.bind, 'loopback')
  assert.equal(gateway.auth.mode, 'token')
  assert.equal(gateway.auth.token, 'the-token')
  assert.deepEqual(gateway.trustedProxies, [])
})

test("the operator's model leads to the gateway, under a name that never changes", () => {
  const { models }: Loose = owned({ config: local })
  const { berth } = models.providers
  assert.equal(berth.baseUrl, 'http://gateway/berth/v1')
  assert.equal(`berth/${berth.models[0].id}`, DEFAULT_MODEL)
  assert.equal(berth.models[0].contextWindow, 4096)
  assert.ok(berth.models[0].maxTokens <= 4096)
  assert.equal(primaryOf({ config: local }), DEFAULT_MODEL)
})

test('local servers get the limit of a reply in the field that they understand', () => {
  const fieldOf = (config: object) => {
    const { models }: Loose = owned({ config: { ...none, ...config } })
    return models.providers.berth.models[0].compat.maxTokensField
  }
  assert.equal(fieldOf(local), 'max_tokens')
  assert.equal(fieldOf({ BERTH_MODEL_URL: 'https://api.openai.com/v1' }), undefined)
  assert.equal(fieldOf({ ...local, BERTH_MODEL_FALLBACK_URL: 'https://api.openai.com/v1' }), undefined)
  const { models }: Loose = defaultConfig(full({ localModel: { server: 'ollama', model: 'm' } }))
  assert.equal(models.providers.local.models[0].compat.maxTokensField, 'max_tokens')
})

test('the virtual key is in the environment, not in the file', () => {
  const config = owned({ config: local, secrets: { OPENAI_API_KEY: 'real' } })
  assert.doesNotMatch(JSON.stringify(config), /real|virtual/)
  const { models }: Loose = config
  // After a refusal the engine would block an `api-key`.
  assert.equal(models.providers.berth.auth, 'token')
  // biome-ignore lint/suspicious/noTemplateCurlyInString: the engine reads the variable
  assert.equal(models.providers.berth.apiKey, '${BERTH_MODEL_KEY}')
})

test("without an operator's model, the provider is removed and no model is chosen", () => {
  const { models }: Loose = owned({})
  assert.equal(models.providers.berth, null)
  assert.equal(primaryOf({}), undefined)
})

test('an agent uses the provider whose key it has, through the gateway [report: no model]', () => {
  assert.equal(primaryOf({ secrets: { ANTHROPIC_API_KEY: 'k' } }), 'anthropic/claude-opus-5')
  // Undefined leaves the engine's own default.
  assert.equal(primaryOf({ secrets: { ANTHROPIC_API_KEY: 'k', OPENAI_API_KEY: 'k' } }), undefined)
  assert.equal(primaryOf({ secrets: { TELEGRAM_TOKEN: 'k' } }), undefined)
  // The owner's choice for this agent goes before the operator's for all.
  assert.equal(primaryOf({ config: local, secrets: { ANTHROPIC_API_KEY: 'k' } }), 'anthropic/claude-opus-5')
  assert.equal(primaryOf({ config: local, secrets: { OPENAI_API_KEY: 'k' } }), undefined)
  const { models }: Loose = owned({ secrets: { ANTHROPIC_API_KEY: 'k', GOOGLE_API_KEY: 'k', OTHER: 'k' } })
  const { berth: _, ...providers } = models.providers
  assert.deepEqual(
    Object.entries<Loose>(providers).map(([id, { baseUrl, api }]) => [id, baseUrl, api]),
    [
      ['anthropic', 'http://gateway/anthropic', undefined],
      ['google', 'http://gateway/google/v1beta', 'google-generative-ai'],
    ],
  )
})

test("a provider's key becomes the virtual key, and its libraries find the gateway", () => {
  const secrets = {
    OPENAI_API_KEY: 'real',
    ANTHROPIC_API_KEY: 'real',
    ANTHROPIC_BASE_URL: 'mine',
    OTHER: 'x',
  }
  assert.deepEqual(modelEnvironment(full({ config: local, secrets })), {
    BERTH_MODEL_KEY: 'virtual',
    BERTH_MODEL_URL: 'http://gateway/berth/v1',
    OPENAI_API_KEY: 'virtual',
    OPENAI_BASE_URL: 'http://gateway/openai/v1',
    ANTHROPIC_API_KEY: 'virtual',
  })
})

test('a local model that the owner chose goes before any other, and the owner may change it', () => {
  const localModel = { server: 'ollama', model: 'qwen/qwen3:8b' } as const
  for (const config of [none, local]) {
    const options = { config, secrets: { ANTHROPIC_API_KEY: 'k' }, localModel }
    const { models }: Loose = defaultConfig(options)
    assert.equal(primaryOf(options), 'local/qwen/qwen3:8b')
    assert.equal(models.providers.local.models[0].id, 'qwen/qwen3:8b')
    assert.equal(models.providers.local.models[0].contextWindow, 4096)
    const { models: fixed }: Loose = owned(options)
    assert.equal(fixed.providers.local.baseUrl, 'http://gateway/local/v1')
    assert.equal(fixed.providers.local.models, undefined)
  }
})

test('channels are added to the owned keys', () => {
  const channels = {
    channels: { telegram: { enabled: true } },
    plugins: { entries: { telegram: { enabled: true } } },
  }
  const config: Loose = owned({ channels })
  assert.deepEqual(config.channels, channels.channels)
  assert.deepEqual(Object.keys(config.plugins.entries).sort(), ['admin-http-rpc', 'telegram'])
})
