import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { lstat, mkdir, readdir, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { useFolder } from '../test/support/folder.ts'
import { ConfigError, fill, onThisMachine, override, writeConfig, writeSettings } from './openclaw-config.ts'
import { agentPaths } from './paths.ts'

async function newHome(t: { after(fn: () => Promise<void>): void }) {
  const home = await useFolder('home-', t)
  const paths = agentPaths(home, join(home, 'tmp'))
  await mkdir(paths.state)
  const write = (owned: Record<string, unknown>, defaults: Record<string, unknown> = {}) =>
    writeConfig(paths, { owned, defaults, engineDir: join(home, 'engine') })
  const read = async () => JSON.parse(await readFile(paths.configFile, 'utf8'))
  return { paths, write, read }
}

test('owned keys replace values leaf by leaf, and null removes them', () => {
  const base = { gateway: { port: 1, mine: true }, list: [1, 2], channels: { slack: { token: 'x' } } }
  const owned = { gateway: { port: 2 }, list: [3], channels: { slack: null, telegram: { on: true } } }
  assert.deepEqual(override(base, owned), {
    gateway: { port: 2, mine: true },
    list: [3],
    channels: { telegram: { on: true } },
  })
  assert.deepEqual(override({ gateway: 'a text' }, { gateway: { port: 2 } }), { gateway: { port: 2 } })
})

test('default values fill only missing keys', () => {
  const base = { a: 0, b: { c: null, d: '' } }
  assert.deepEqual(fill(base, { a: 1, b: { c: 1, d: 1, e: 1 }, f: 1 }), {
    a: 0,
    b: { c: null, d: '', e: 1 },
    f: 1,
  })
  assert.deepEqual(fill({ a: 'a text' }, { a: { b: 1 } }), { a: 'a text' })
})

test('providers lead to the model gateway only as long as a start says so', async (t) => {
  const { write, read } = await newHome(t)
  const headers = { 'berth-gateway': '1' }
  const ours = (id: string) => ({ baseUrl: `http://gateway/${id}`, headers, timeoutSeconds: 600 })
  const theirs = { baseUrl: 'http://mine', apiKey: 'k', models: [] }
  await write(
    { models: { providers: { openai: ours('openai'), xai: ours('xai') } } },
    { models: { providers: { openai: { models: [] }, xai: { models: [{ id: 'own' }] }, mine: theirs } } },
  )
  await write({ models: { providers: { xai: ours('moved') } } })
  const both = (await read()).models.providers
  assert.deepEqual(both, { xai: { models: [{ id: 'own' }], ...ours('moved') }, mine: theirs })
  await write({})
  assert.deepEqual((await read()).models.providers, { xai: { models: [{ id: 'own' }] }, mine: theirs })
})

test('a key that reaches prototypes is left out', () => {
  const bad = JSON.parse(
    '{"__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}}',
  )
  assert.deepEqual(Object.keys(override({}, bad)), [])
  assert.deepEqual(Object.keys(fill({}, bad)), [])
  assert.equal(({} as Record<string, unknown>).polluted, undefined)
})

test('API paths become paths of this machine, anywhere in a value', () => {
  const paths = agentPaths('/srv/agents/x/home', '/srv/agents/x/tmp')
  const config = { a: ['/home/node/clawd', '/home/nodejs'], b: { c: '/tmp/x', d: '/home/node' }, e: 1 }
  assert.deepEqual(onThisMachine(paths, config), {
    a: ['/srv/agents/x/home/clawd', '/home/nodejs'],
    b: { c: '/srv/agents/x/tmp/x', d: '/srv/agents/x/home' },
    e: 1,
  })
})

test('a config file is created only for its owner, and keeps what the owner wrote', async (t) => {
  const { paths, write, read } = await newHome(t)
  await rm(paths.state, { recursive: true })
  await write({ gateway: { port: 1 } }, { theme: 'light' })
  assert.deepEqual(await read(), { theme: 'light', gateway: { port: 1 } })
  assert.equal((await stat(paths.configFile)).mode & 0o777, 0o600)
  assert.equal((await stat(paths.state)).mode & 0o777, 0o700)

  await writeFile(paths.configFile, JSON.stringify({ theme: 'dark', gateway: { port: 9, extra: true } }))
  await write({ gateway: { port: 1 } }, { theme: 'light' })
  assert.deepEqual(await read(), { theme: 'dark', gateway: { port: 1, extra: true } })
  assert.deepEqual(await readdir(paths.state), ['openclaw.json'])
})

test('a config file that is up to date is not rewritten', async (t) => {
  const { paths, write } = await newHome(t)
  await write({ a: 1 })
  const before = await lstat(paths.configFile)
  await write({ a: 1 })
  assert.equal((await lstat(paths.configFile)).ino, before.ino)
})

test('a file that is not a configuration is refused and kept', async (t) => {
  const { paths, write } = await newHome(t)
  for (const text of ['{"a":', '[]', '"text"', '', 'null']) {
    await writeFile(paths.configFile, text)
    await assert.rejects(write({ a: 1 }), ConfigError)
    assert.equal(await readFile(paths.configFile, 'utf8'), text)
  }
})

test('a link, a folder, a FIFO and a huge file are refused', async (t) => {
  const { paths, write } = await newHome(t)
  const target = join(dirname(paths.state), 'elsewhere.json')
  await writeFile(target, '{"secret": 1}')
  const makers = [
    () => symlink(target, paths.configFile),
    () => mkdir(paths.configFile),
    async () => void execFileSync('mkfifo', [paths.configFile]),
    async () => void execFileSync('truncate', ['-s', '1G', paths.configFile]),
  ]
  for (const make of makers) {
    await make()
    await assert.rejects(write({ a: 1 }), ConfigError)
    await rm(paths.configFile, { recursive: true })
  }
  assert.equal(await readFile(target, 'utf8'), '{"secret": 1}')
})

test('the engine retries refused requests only if the owner sets retries [report: no model]', async (t) => {
  const { paths } = await newHome(t)
  const file = join(paths.state, 'agents/main/agent/settings.json')
  const read = async () => JSON.parse(await readFile(file, 'utf8'))
  await writeSettings(paths)
  assert.deepEqual(await read(), { retry: { provider: { maxRetries: 0 } } })
  for (const [before, after] of [
    [{ theme: 'dark' }, { theme: 'dark', retry: { provider: { maxRetries: 0 } } }],
    [{ retry: { provider: { maxRetries: 3 } } }, { retry: { provider: { maxRetries: 3 } } }],
  ]) {
    await writeFile(file, JSON.stringify(before))
    await writeSettings(paths)
    assert.deepEqual(await read(), after)
  }
  await writeFile(file, 'no JSON')
  await writeSettings(paths)
  assert.equal(await readFile(file, 'utf8'), 'no JSON')
})

test('a config of a spare leaves nothing in its owner’s, which then keeps what the owner wrote', async (t) => {
  const { paths, read } = await newHome(t)
  const write = (spare: boolean, owned: Record<string, unknown>, defaults: Record<string, unknown>) =>
    writeConfig(paths, { owned, defaults, engineDir: paths.home, spare })
  await write(true, { a: 1, b: { c: 1 } }, { model: 'none' })
  assert.deepEqual((await write(false, { a: 1 }, {})).sort(), ['b.c', 'model'])
  assert.deepEqual(await read(), { a: 1 })
  await writeFile(paths.configFile, '{"mine": 1}')
  await write(false, { a: 1 }, {})
  assert.deepEqual(await read(), { a: 1, mine: 1 })
  await write(true, { a: 1 }, { model: 'none' })
  assert.deepEqual(await write(false, { a: 1 }, { model: 'none' }), [])
})
