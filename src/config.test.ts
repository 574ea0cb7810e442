import assert from 'node:assert/strict'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadAgentProxyKey, loadConfig } from './config.ts'
import { ConfigError } from './errors.ts'

describe('configuration', () => {
  it('configuration needs no settings', () => {
    const config = loadConfig({})
    assert.equal(config.PORT, 3000)
    assert.equal(config.HOST, '127.0.0.1')
    assert.equal(config.BERTH_PIN_STALL_SECONDS, 120)
  })

  const wrong: Record<string, string> = {
    PORT: '70000',
    DATABASE_URL: 'mysql://localhost',
    REDIS_URL: 'localhost:6379',
    IPFS_API_URL: '/ip4/127.0.0.1/tcp/5001',
    JWT_KEY: 'short',
    LOG_LEVEL: 'loud',
    BERTH_PIN_CONCURRENCY: '0',
    BERTH_PIN_STALL_SECONDS: 'soon',
    BERTH_ALLOW_PRIVATE_HOST_NODES: 'perhaps',
    BERTH_ENGINE_IMAGE: 'registry.example.org/{version}/openclaw',
    BERTH_EGRESS_REFUSE: '192.0.2.0/24, 192.0.2.0/33',
    BERTH_KUBERNETES_NAMESPACE: 'Agents',
    BERTH_KUBERNETES_NODE_SELECTOR: 'fast',
    BERTH_KUBERNETES_TOLERATIONS: 'agents:Never',
    BERTH_KUBERNETES_PROXY_NETWORKS: '10.0.0.4',
    BERTH_OIDC_ISSUER: 'http://id.example.com',
    BERTH_OIDC_JOIN: 'example.com:owner:default',
  }
  for (const [name, value] of Object.entries(wrong)) {
    it(`configuration reports an invalid ${name}`, () => {
      assert.throws(
        () => loadConfig({ [name]: value }),
        (error) => error instanceof ConfigError && error.message.startsWith(`${name}: `),
      )
    })
  }

  it('configuration rejects former setting names from the changelog and names the current ones', () => {
    const changelog = readFileSync(new URL('../CHANGELOG.md', import.meta.url), 'utf8')
    const renamed = [...changelog.matchAll(/^ {2}\| `(\w+)` \| `(\w+)` \|$/gm)]
    assert.equal(renamed.length, 6)
    for (const [, was = '', is] of renamed)
      assert.throws(() => loadConfig({ [was]: 'x' }), new ConfigError(`${was}: is called ${is} now`))
  })

  it('configuration rejects a former setting name and names the current one', () => {
    const env = { HOST_KEY_FILE: '/run/secrets/host_key', BERTH_HOST_PORT: '3130', BERTH_HOST_URL: '' }
    assert.throws(
      () => loadConfig(env),
      new ConfigError(
        'HOST_KEY_FILE: is called AGENT_PROXY_KEY_FILE now\nBERTH_HOST_PORT: is called BERTH_AGENT_PROXY_PORT now',
      ),
    )
  })

  it('configuration rejects BERTH_INSTANCE, which only an upgrade from 0.1.0 needed', () => {
    const message = 'BERTH_INSTANCE: is in the database now: remove the setting'
    assert.throws(() => loadConfig({ BERTH_INSTANCE: 'berth' }), new ConfigError(message))
  })

  it('configuration takes over the agent proxy key that 0.2.0 created', (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-config-'))
    t.after(() => rmSync(dir, { recursive: true }))
    const config = loadConfig({ BERTH_DATA_DIR: dir })
    writeFileSync(join(dir, 'host.key'), 'made-by-0.2.0\n')
    assert.equal(loadAgentProxyKey(config), 'made-by-0.2.0')
    rmSync(join(dir, 'host.key'))
    assert.equal(loadAgentProxyKey(config), 'made-by-0.2.0')
  })

  it('configuration creates an agent proxy key if there is none', (t) => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-config-'))
    t.after(() => rmSync(dir, { recursive: true }))
    const config = loadConfig({ BERTH_DATA_DIR: dir })
    const key = loadAgentProxyKey(config)
    assert.match(key, /^[\w-]{43}$/)
    assert.equal(loadAgentProxyKey(config), key)
  })

  it('configuration reports every invalid setting, not only the first', () => {
    assert.throws(() => loadConfig({ PORT: 'x', LOG_LEVEL: 'y' }), /PORT: [\s\S]*LOG_LEVEL: /)
  })

  it('configuration treats an empty setting as not set', () => {
    const config = loadConfig({ DATABASE_URL: '', HOST: '', PORT: '', BERTH_PIN_CONCURRENCY: '' })
    assert.deepEqual(config, loadConfig({}))
    assert.equal(loadConfig({ BERTH_IPFS_ROUTING_URL: '' }).BERTH_IPFS_ROUTING_URL, '')
  })

  it('configuration reports a setting that does not exist', () => {
    assert.throws(
      () => loadConfig({ BERTH_PIN_CONCURENCY: '4', PORT: 'x' }),
      /^ConfigError: BERTH_PIN_CONCURENCY: [\s\S]*PORT: /,
    )
  })

  it('configuration ignores a variable that only looks like a setting', () => {
    const others = [
      'BERTH_KEY',
      'BERTH_TEST_STACK',
      'BERTH_SERVICE_HOST',
      'BERTH_WEB_PORT_3000_TCP_ADDR',
      'XBERTH_A',
    ]
    for (const name of others) assert.deepEqual(loadConfig({ [name]: 'x' }), loadConfig({}))
  })

  it('configuration reads a secret from a file, but not from two places', () => {
    const dir = mkdtempSync(join(tmpdir(), 'berth-config-'))
    try {
      const path = join(dir, 'url')
      writeFileSync(path, 'postgres://db/berth\n')
      assert.equal(loadConfig({ DATABASE_URL_FILE: path }).DATABASE_URL, 'postgres://db/berth')
      assert.equal(loadConfig({ BERTH_MODEL_KEY_FILE: path }).BERTH_MODEL_KEY, 'postgres://db/berth')
      assert.throws(
        () => loadConfig({ DATABASE_URL_FILE: path, DATABASE_URL: 'postgres://x' }),
        /DATABASE_URL_FILE/,
      )
      assert.throws(() => loadConfig({ JWT_KEY_FILE: join(dir, 'none') }), /JWT_KEY_FILE: cannot be read/)
    } finally {
      rmSync(dir, { recursive: true })
    }
  })
})
