import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { mkdir, mkdtemp, readdir, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, test } from 'node:test'
import { installEngine, installedEngines, removeInstalledEngine } from '../../../src/openclaw/install.ts'
import { inPidNamespace, NO_PID_NAMESPACES } from '../../support/pid-namespace.ts'
import { type Running, run, until } from '../../support/processes.ts'
import { NATIVE, type Registry, startRegistry, VERSION } from './registry.ts'

const PROGRAM = join(import.meta.dirname, 'install.program.ts')

let registry: Registry
let base: string
let dir: string
const running: Running[] = []

beforeEach(async () => {
  registry = await startRegistry()
  base = await mkdtemp(join(tmpdir(), 'berth-engines-'))
  dir = join(base, 'engines')
  // npm reads its settings from the environment, as it does for users.
  process.env.npm_config_registry = registry.url
  process.env.npm_config_cache = join(base, 'cache')
  process.env.npm_config_fetch_retries = '0'
})

afterEach(async () => {
  await Promise.all(running.splice(0).map((one) => one.end('SIGKILL')))
  await registry.stop()
  await rm(base, { recursive: true, force: true, maxRetries: 5 })
})

/** Another process that installs. */
function another(command: [string, string[]] = [process.execPath, [PROGRAM, dir]]): Running {
  const started = run(...command)
  running.push(started)
  return started
}

/** Entries of the engines folder, except locks. */
const entries = async () => (await readdir(dir)).filter((name) => !name.includes('.lock'))

test('an installation has exactly what the engine needs to run', async () => {
  const folder = await installEngine({ version: VERSION, dir })
  const engine = join(folder, 'node_modules/openclaw')
  for (const kept of ['openclaw.mjs', 'dist/entry.js', 'dist/hooks/HOOK.md', 'skills/mail/SKILL.md'])
    assert.ok(existsSync(join(engine, kept)), kept)
  for (const gone of ['docs', 'README.md', 'dist/worker', 'dist/entry.js.map', 'dist/entry.d.ts'])
    assert.ok(!existsSync(join(engine, gone)), gone)
  assert.ok(existsSync(join(folder, 'node_modules', NATIVE)))
  assert.deepEqual(await installedEngines(dir), [VERSION])
  await installEngine({ version: VERSION, dir })
  assert.equal(registry.downloads, 1)
  await removeInstalledEngine(dir, VERSION)
  assert.deepEqual(await entries(), [])
})

test('concurrent processes agree on one installation', async () => {
  const others = [another(), another()]
  await installEngine({ version: VERSION, dir })
  for (const other of others) await until('it has ended', () => other.process.exitCode !== null, 180_000)
  assert.deepEqual(
    others.map((other) => other.process.exitCode),
    [0, 0],
    others.map((other) => other.output()).join('\n'),
  )
  assert.equal(registry.downloads, 1)
  assert.deepEqual(await entries(), [VERSION])
})

test('a kill in the middle of an installation leaves nothing half done', async () => {
  let release = () => {}
  registry.hold(
    new Promise<void>((resolve) => {
      release = resolve
    }),
  )
  const killed = another()
  await until('it downloads', () => registry.downloads === 1, 180_000)
  await killed.end('SIGKILL')
  assert.deepEqual(await installedEngines(dir), [])
  release()
  await installEngine({ version: VERSION, dir })
  assert.deepEqual(await entries(), [VERSION])
})

test('a worker in another container waits, and continues when the first is killed', {
  skip: NO_PID_NAMESPACES,
}, async () => {
  let release = () => {}
  registry.hold(
    new Promise<void>((resolve) => {
      release = resolve
    }),
  )
  const inContainer = () => another(inPidNamespace(PROGRAM, dir))
  const first = inContainer()
  await until('it downloads', () => registry.downloads === 1, 180_000)
  const [draft = ''] = (await entries()).filter((name) => name.startsWith(`${VERSION}.new-`))
  const second = inContainer()
  await until('the other waits', () => second.output().includes('Waiting for another process'), 60_000)
  assert.ok(
    existsSync(join(dir, draft, 'package.json')),
    'the folder that the first one is filling is left alone',
  )
  assert.equal(registry.downloads, 1)
  await first.end('SIGKILL')
  release()
  await until('it has ended', () => second.process.exitCode !== null, 180_000)
  assert.equal(second.process.exitCode, 0, second.output())
  assert.equal(registry.downloads, 2)
  assert.deepEqual(await entries(), [VERSION])
})

test('the removal of a version waits for its installation', async () => {
  let release = () => {}
  registry.hold(
    new Promise<void>((resolve) => {
      release = resolve
    }),
  )
  const installing = another()
  await until('it downloads', () => registry.downloads === 1, 180_000)
  const removing = removeInstalledEngine(dir, VERSION)
  release()
  await removing
  await until('it has ended', () => installing.process.exitCode !== null, 180_000)
  assert.equal(installing.process.exitCode, 0, installing.output())
  assert.deepEqual(await entries(), [])
})

test('an abort ends an installation and removes what it began', async () => {
  registry.hold(new Promise(() => {}))
  const stop = new AbortController()
  const installing = installEngine({ version: VERSION, dir, signal: stop.signal })
  await until('it downloads', () => registry.downloads === 1, 180_000)
  stop.abort(new Error('enough'))
  await assert.rejects(installing, /enough/)
  assert.deepEqual(await entries(), [])
})

test('the first launch of an engine that needs another Node is postponed until that is available', async () => {
  // Berth reads the range of an engine once, so that each range has a folder of its own.
  const staysPending = async (node: string) => {
    const engines = join(dir, node.replace(/\W/g, '-'))
    const engine = join(engines, VERSION, 'node_modules/openclaw')
    await mkdir(engine, { recursive: true })
    await writeFile(join(engine, 'package.json'), JSON.stringify({ engines: { node } }))
    const pending = join(engine, '.openclaw-lifecycle-pending')
    await writeFile(pending, '')
    const program = `import { rmSync } from 'node:fs'\nrmSync(${JSON.stringify(pending)})\n`
    await writeFile(join(engine, 'openclaw.mjs'), program)
    assert.equal(await installEngine({ version: VERSION, dir: engines }), join(engines, VERSION))
    const isPending = existsSync(pending)
    await rm(engines, { recursive: true })
    return isPending
  }
  assert.equal(await staysPending('>=99.1.0'), true)
  assert.equal(await staysPending('>=20'), false)
})

test('a failed installation reports the reason', async () => {
  await assert.rejects(installEngine({ version: '2026.1.8', dir }), /does not have this version/)
  registry.loseNative()
  await assert.rejects(installEngine({ version: VERSION, dir }), { code: 'no_image', message: /native-part/ })
  process.env.npm_config_registry = 'http://127.0.0.1:9'
  await assert.rejects(installEngine({ version: '2026.1.9', dir }), { code: 'no_image', message: /registry/ })
  assert.deepEqual(await entries(), [])
})
