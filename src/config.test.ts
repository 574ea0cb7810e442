import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { loadAgentProxyKey, loadConfig, REPLACED } from './config.ts'
import { ConfigError } from './errors.ts'
import { settings } from './settings.ts'

describe('configuration', () => {
  it('configuration needs no settings', () => {
    const config = loadConfig({})
    assert.equal(config.PORT, 3000)
    assert.equal(config.HOST, '127.0.0.1')
    assert.equal(config.BERTH_PINS.stallSeconds, 120)
  })

  const wrong: Record<string, string> = {
    PORT: '70000',
    DATABASE_URL: 'mysql://localhost',
    DATABASE_DIRECT_URL: 'postgres://localhost/berth',
    REDIS_URL: 'localhost:6379',
    IPFS_API_URL: '/ip4/127.0.0.1/tcp/5001',
    IPFS_API_URL_PREVIOUS: '127.0.0.1:5001',
    IPFS_CLUSTER_API_URL: 'http://127.0.0.1:9094',
    IPFS_CLUSTER_REPLICATION: '3-2',
    JWT_KEY: 'short',
    LOG_LEVEL: 'loud',
    BERTH_CONCURRENCY: 'pins=0',
    BERTH_PINS: 'stallSeconds=soon',
    BERTH_ALLOW_PRIVATE_HOST_NODES: 'perhaps',
    BERTH_ENGINE_IMAGE: 'registry.example.org/{version}/openclaw',
    BERTH_EGRESS_REFUSE: '192.0.2.0/24, 192.0.2.0/33',
    BERTH_KUBERNETES_NAMESPACE: 'Agents',
    BERTH_KUBERNETES_POD: 'hostNetwork: true',
    BERTH_KUBERNETES_PROXY: 'networks: [10.0.0.4]',
    BERTH_RETENTION: 'analytics=',
    BERTH_TLS_ASK: 'fe80::1',
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

  it('configuration reports a database URL with several hosts', () => {
    assert.throws(
      () => loadConfig({ DATABASE_URL: 'postgres://berth@one,two/berth?target_session_attrs=read-write' }),
      new ConfigError('DATABASE_URL: must name one host: a proxy that leads to the primary of several'),
    )
  })

  it('configuration names the part of a setting that is invalid', () => {
    assert.throws(
      () => loadConfig({ BERTH_PINS: 'stallSeconds=0', BERTH_IMAGES: 'pixels=5' }),
      new ConfigError('BERTH_PINS: stallSeconds must be at least 0.1\nBERTH_IMAGES: has no pixels'),
    )
  })

  it('configuration takes a number without a name for the main part of a setting', () => {
    const cacheOf = (value: string) => loadConfig({ BERTH_BLOCKS_CACHE_MB: value }).BERTH_BLOCKS_CACHE_MB
    assert.deepEqual(cacheOf('100'), { memory: 100, disk: 1024 })
    assert.deepEqual(cacheOf('100,disk=0'), { memory: 100, disk: 0 })
    assert.throws(() => cacheOf('disk=-1'), new ConfigError('BERTH_BLOCKS_CACHE_MB: disk must be at least 0'))
    assert.throws(() => loadConfig({ BERTH_PINS: '5' }), /^ConfigError: BERTH_PINS: must be like/)
  })

  it('configuration keeps the defaults of the parts that a setting does not name', () => {
    const { BERTH_PINS, BERTH_KUBERNETES_POD } = loadConfig({
      BERTH_PINS: 'active=3, retrySeconds=5',
      BERTH_KUBERNETES_POD: 'nodeSelector: { disk: fast }',
    })
    assert.deepEqual(BERTH_PINS, { stallSeconds: 120, retrySeconds: 5, expirySeconds: 86_400, active: 3 })
    assert.deepEqual(BERTH_KUBERNETES_POD, {
      serviceAccountName: 'berth-agent',
      nodeSelector: { disk: 'fast' },
    })
  })

  it('configuration rejects each former setting and names what replaces it', () => {
    for (const [former, replacement] of Object.entries(REPLACED)) {
      const name = replacement.slice(0, replacement.indexOf('=')).replace(/_FILE$/, '')
      assert.ok((replacement === '' || name in settings.shape) && !(former in settings.shape), former)
      assert.throws(
        () => loadConfig({ [former]: 'x' }),
        new ConfigError(`${former}: is no longer a setting${replacement && `, use ${replacement}`}`),
      )
      assert.deepEqual(loadConfig({ [former]: '' }), loadConfig({}))
    }
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
    const config = loadConfig({ DATABASE_URL: '', HOST: '', PORT: '', BERTH_CONCURRENCY: '' })
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
