/** Installs plugins, with a stand-in for the engine's command. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { Log } from './logs.ts'
import { agentPaths, type Paths } from './paths.ts'
import { installPlugins, type PluginFailure } from './plugins.ts'
import type { AgentdConfig } from './protocol.ts'

/** Installs any plugin except `slow`, which never ends, and `bad`. */
const ENGINE = `
import { mkdirSync, writeFileSync } from 'node:fs'
const spec = process.argv.at(-1)
const [name, version] = spec.split('@')
if (name === 'slow') {
  console.log('downloading')
  process.on('SIGTERM', () => {
    console.log('npm error: the operation was canceled')
    process.exit(1)
  })
  setInterval(() => {}, 60_000)
} else if (name === 'bad') {
  console.log('npm error: 404')
  process.exit(1)
} else {
  const folder = 'npm/projects/' + name + '/node_modules/' + name
  mkdirSync(folder, { recursive: true })
  writeFileSync(folder + '/package.json', JSON.stringify({ name, version }))
}
`

describe('installing plugins', () => {
  let folder: string
  let paths: Paths
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'plugins-'))
    paths = agentPaths(join(folder, 'home'), folder)
    await mkdir(paths.state, { recursive: true })
    const program = join(folder, 'node_modules', 'openclaw')
    await mkdir(program, { recursive: true })
    await writeFile(join(program, 'openclaw.mjs'), ENGINE)
  })
  after(() => rm(folder, { recursive: true, force: true }))

  const install = (specs: string[], limitMs: number, signal?: AbortSignal): Promise<PluginFailure[]> =>
    installPlugins(specs, {
      config: { engineDir: folder } as AgentdConfig,
      paths,
      log: new Log(),
      env: {},
      limitMs,
      signal: signal ?? new AbortController().signal,
    })

  it('a slow plugin fails with that reason, and the next one is tried [report: plugins]', async () => {
    assert.deepEqual(await install(['slow@1.0.0', 'quick@1.0.0'], 8000), [
      { id: 'slow', reason: 'plugin slow@1.0.0 could not be installed: not done after 4 s' },
    ])
    assert.deepEqual(await install(['quick@1.0.0'], 0), [], 'it is installed, and needs no time')
  })
  it("a plugin that fails reports the reason in the engine's words [report: plugins]", async () => {
    assert.deepEqual(await install(['bad@1.0.0'], 60_000), [
      { id: 'bad', reason: 'plugin bad@1.0.0 could not be installed: npm error: 404' },
    ])
  })
  it('no plugin is installed after the start was cancelled [report: plugins]', async () => {
    assert.deepEqual(await install(['late@1.0.0'], 60_000, AbortSignal.abort()), [])
  })
})
