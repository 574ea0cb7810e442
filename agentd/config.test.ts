/** The config of an agent whose gateway is down, with a stand-in for the engine's check. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, beforeEach, describe, it } from 'node:test'
import { configService } from './config.ts'
import { Log } from './logs.ts'
import { agentPaths, type Paths } from './paths.ts'
import type { ConfigText, ConfigWritten } from './protocol.ts'
import type { Agent, Call } from './server.ts'

/** Accepts every config without a key `bad`. */
const ENGINE = `
import { readFileSync } from 'node:fs'
const valid = !readFileSync(process.env.OPENCLAW_CONFIG_PATH, 'utf8').includes('"bad"')
console.log(JSON.stringify({ valid, issues: valid ? [] : [{ path: 'bad', message: 'is not known' }] }))
`

describe('config versions', () => {
  let folder: string
  let paths: Paths
  let service: ReturnType<typeof configService>
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'config-'))
    paths = agentPaths(join(folder, 'home'), folder)
    const program = join(folder, 'node_modules', 'openclaw')
    for (const made of [paths.state, program]) await mkdir(made, { recursive: true })
    await writeFile(join(program, 'openclaw.mjs'), ENGINE)
    const ownedConfig = { gateway: { auth: { token: 'owned' }, trustedProxies: ['127.0.0.1'] } }
    const gateway = { state: 'stopped', env: {}, ownedConfig }
    service = configService({
      config: { engineDir: folder },
      paths,
      log: new Log(),
      gateway,
    } as unknown as Agent)
  })
  after(() => rm(folder, { recursive: true, force: true }))
  beforeEach(() => writeFile(paths.configFile, '{"a": 1}'))

  async function ask<T>(method: 'GET' | 'PUT', json?: object): Promise<T> {
    const found = service.routes?.find((route) => route.method === method && route.path === '/v1/config')
    const answer = await found?.handle({ json: async () => json } as unknown as Call)
    return (answer as { body: T }).body
  }
  const read = () => ask<ConfigText>('GET')
  const write = (value: object, version?: string) =>
    ask<ConfigWritten>('PUT', { text: JSON.stringify(value), ...(version && { version }) })
  const stored = async () => JSON.parse(await readFile(paths.configFile, 'utf8'))

  it('a config is written over the version that its writer saw [report: config edits]', async () => {
    const { version } = await read()
    assert.match(version, /^"[\w-]{43}"$/)
    assert.equal((await read()).version, version)
    const written = await write({ a: 2 }, version)
    assert.deepEqual([written.valid, (await stored()).a], [true, 2])
    assert.equal((await read()).version, written.version)
  })
  it('a write with an outdated version does not overwrite the config [report: config edits]', async () => {
    const { version } = await read()
    await writeFile(paths.configFile, '{"a": 3}')
    await assert.rejects(write({ a: 2 }, version), { code: 'conflict' })
    assert.deepEqual(await stored(), { a: 3 })
    assert.equal((await write({ a: 4 })).valid, true, 'any version will do if none is given')
  })
  it('one of two writers who saw the same version gets an error [report: config edits]', async () => {
    const { version } = await read()
    const both = await Promise.allSettled([write({ a: 5 }, version), write({ a: 6 }, version)])
    assert.deepEqual(both.map(({ status }) => status).sort(), ['fulfilled', 'rejected'])
  })
  it('a config refused by the engine gets no version, and the old one stays [report: config edits]', async () => {
    const { version } = await read()
    assert.deepEqual(await write({ bad: 1 }, version), { valid: false, output: 'bad: is not known' })
    assert.equal((await read()).version, version)
    assert.ok(!(await readdir(paths.state)).some((name) => name.endsWith('.part')))
  })
  it("the operator's keys are refused in any form, and restored if a write leaves them out", async () => {
    assert.equal((await write({ a: 1 })).valid, true)
    const whole = await stored()
    assert.equal(whole.gateway.auth.token, 'owned')
    for (const [key, gateway] of [
      ['gateway.auth.token', { auth: { token: 'mine' } }],
      ['gateway.trustedProxies', { trustedProxies: ['127.0.0.1', '10.0.0.1'] }],
      ['gateway', null],
      ['gateway', []],
    ] as const)
      await assert.rejects(write({ gateway }), { code: 'bad_request', message: new RegExp(`^${key}: `) })
    assert.deepEqual(await stored(), whole)
  })
})
