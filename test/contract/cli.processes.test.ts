/** `npx berth` next to a running Berth, and what `npm start` prints before it starts. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { existsSync } from 'node:fs'
import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { postgresUrl } from '../../src/standalone/postgres.ts'
import { useFolder } from '../support/folder.ts'
import { until } from '../support/processes.ts'
import { runCli, startOnce } from '../support/stack.ts'
import { openContext } from './context.ts'

const { anonymous, berth, env, url, workspace } = await openContext()
const { id: workspaceId, name: ws } = await workspace()
const dir = await useFolder('berth-cli-')

const json = async (...args: string[]) => JSON.parse(await berth(...args, '--json'))
/** Runs a command that must fail, and returns its output. */
async function fails(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await runCli(env, ...args)
  assert.notEqual(code, 0)
  assert.equal(stdout, '')
  assert.doesNotMatch(stderr, /\n {4}at /, 'no stack trace')
  return stderr
}

describe('berth keys', () => {
  it('berth keys create prints the bare token', async () => {
    const token = await berth('keys', 'create', '-w', ws)
    assert.match(token, /^[\w-]+\.[\w-]+\.[\w-]+$/)
    assert.equal((await anonymous.as(token).get('/v3/files/public')).status, 200)
  })
  it('berth keys create --json prints id, token, name, scopes and expires_at', async () => {
    const args = ['--name', 'a name', '--scopes', 'org:files:read, org:groups:read', '--expires', '1h']
    const made = await json('keys', 'create', '--workspace', workspaceId, ...args)
    assert.deepEqual(Object.keys(made), ['id', 'token', 'name', 'scopes', 'expires_at'])
    assert.deepEqual([made.name, made.scopes], ['a name', ['org:files:read', 'org:groups:read']])
    assert.ok(Math.abs(Date.parse(made.expires_at) - Date.now() - 3_600_000) < 60_000)
    assert.equal((await anonymous.as(made.token).get('/v3/groups/public')).status, 200)
    const forever = await json('keys', 'create', '-w', ws)
    assert.deepEqual([forever.scopes, forever.expires_at], [['admin'], null])
    const dated = await json('keys', 'create', '-w', ws, '--expires', '2099-01-31')
    assert.equal(dated.expires_at, '2099-01-31T00:00:00.000Z')
  })
  it('berth keys list shows created and revoked keys', async () => {
    const { id } = await json('keys', 'create', '-w', ws, '--name', 'listed')
    assert.equal(await berth('keys', 'revoke', id), 'revoked')
    const row = (await json('keys', 'list', '-w', ws)).find((key: { id: string }) => key.id === id)
    assert.deepEqual(Object.keys(row), [
      ...['id', 'name', 'scopes', 'created_at', 'last_used_at', 'expires_at', 'revoked_at'],
    ])
    assert.ok(Date.parse(row.revoked_at) <= Date.now())
    assert.match(
      await berth('keys', 'list', '-w', ws),
      new RegExp(`^id +name +scopes.*\n(.*\n)*${id} +listed`),
    )
  })
  const bad: [string, string[], RegExp][] = [
    ['an unknown workspace', ['create', '-w', 'nobody'], /no workspace is named nobody/],
    ['an unknown scope', ['create', '-s', 'org:all'], /unknown: org:all/],
    ['no scope at all', ['create', '-s', ','], /name at least one/],
    ['an unknown time', ['create', '-e', 'soon'], /neither a date nor a time/],
    ['a time in the past', ['create', '-e', '2020-01-31'], /2020-01-31T00:00:00\.000Z is over/],
    ['an unknown user', ['create', '-w', ws, '--user', 'nobody'], /no user named nobody/],
    ['an unknown key', ['revoke', randomUUID()], /no key has the id/],
    ['no key', ['revoke'], /missing required argument 'id'/],
    ['an unknown option', ['create', '--forever'], /unknown option '--forever'/],
  ]
  for (const [what, args, message] of bad)
    it(`berth keys fails for ${what}`, async () => assert.match(await fails('keys', ...args), message))
})

describe('berth workspaces', () => {
  it('berth workspaces creates and lists workspaces, and sets plans', async () => {
    const name = `cli-${randomUUID()}`
    assert.match(await berth('workspaces', 'create', name), /^[0-9a-f-]{36}$/)
    const row = (await json('workspaces', 'list')).find((it: { name: string }) => it.name === name)
    assert.deepEqual(row, { id: row.id, name, plan: 'free', users: 1 })
    assert.equal(await berth('workspaces', 'set-plan', row.id, 'pro'), `${row.id} is on plan pro`)
    assert.match(await berth('workspaces', 'list'), new RegExp(`${row.id} +${name} +pro +1`))
  })
  it('berth workspaces creates a workspace with a plan and an owner', async () => {
    const name = `cli-${randomUUID()}`
    const made = await json('workspaces', 'create', name, '--plan', 'unlimited', '--owner', 'ada')
    assert.deepEqual(made, { id: made.id, name, plan: 'unlimited' })
    const [owner] = await json('users', 'list', '-w', name)
    assert.deepEqual([owner.name, owner.role], ['ada', 'owner'])
  })
  const bad: [string, string[], RegExp][] = [
    ['a name that is taken', ['create', ws], /a workspace named .* is there already/],
    ['an unknown plan', ['create', 'x', '--plan', 'gold'], /no plan is named gold: there are .*free.*pro/],
    ['another unknown plan', ['set-plan', ws, 'gold'], /no plan is named gold/],
    ['an unknown workspace', ['set-plan', 'nobody', 'pro'], /no workspace is named nobody/],
  ]
  for (const [what, args, message] of bad)
    it(`berth workspaces fails for ${what}`, async () =>
      assert.match(await fails('workspaces', ...args), message))
})

describe('berth users', () => {
  it('berth users adds, changes, lists and removes users', async () => {
    const added = await json('users', 'add', 'eve', '-w', ws)
    assert.deepEqual([added.name, added.role], ['eve', 'member'])
    assert.equal((await json('users', 'add', 'eve', '-w', ws, '--role', 'viewer')).id, added.id)
    const members = await json('users', 'list', '-w', ws)
    assert.deepEqual(members.find((it: { id: string }) => it.id === added.id).role, 'viewer')
    assert.equal(await berth('users', 'remove', 'eve', '-w', ws), 'removed')
    assert.match(await fails('users', 'remove', 'eve', '-w', ws), /no user named eve/)
  })
  it('berth users fails for an unknown role', async () => {
    assert.match(await fails('users', 'add', 'eve', '-w', ws, '--role', 'king'), /Allowed choices are owner/)
  })
})

describe('berth', () => {
  it('berth migrate finds the schema up to date', async () => {
    assert.equal(await berth('migrate'), 'the schema is up to date')
  })
  it('berth doctor finds every part healthy', async () => {
    // On a machine so busy that a check takes two seconds, the part counts as down.
    await until('every part is healthy', async () => {
      const said = await berth('doctor')
      for (const part of [
        'PostgreSQL',
        'Schema',
        'Workers',
        'Queue',
        'IPFS',
        'IPFS private',
        'Clock',
        'Indexes',
        'Disk',
        'Web',
        'Names',
      ])
        assert.match(said, new RegExp(`✔.* ${part}|✔ ${part}`), said)
      assert.doesNotMatch(said, /✘/)
      return true
    })
  })
  it('berth doctor names what is unhealthy, and what to do about it', async () => {
    const away = { ...env, DATABASE_URL: 'postgres://berth@127.0.0.1:1/berth' }
    const { code, stdout } = await runCli(away, 'doctor')
    assert.equal(code, 1)
    assert.match(stdout, /✘ PostgreSQL[^\n]*\n +Check DATABASE_URL/)
  })
  it('berth --help and --version print the usage and the version', async () => {
    assert.match(await berth('--help'), /Usage: berth/)
    assert.match(await berth('--version'), /^\d+\.\d+\.\d+$/)
  })
  it('berth creates no Berth in an empty folder', async () => {
    const empty = join(dir, 'empty')
    for (const command of ['keys list', 'migrate --check']) {
      const settings = { ...env, BERTH_DATA_DIR: empty, DATABASE_URL: '' }
      const { code, stderr } = await runCli(settings, ...command.split(' '))
      assert.deepEqual([code, existsSync(empty)], [1, false], command)
      assert.match(stderr, new RegExp(`^there is no Berth in ${empty}: `))
    }
  })
  it('berth fails for an unknown command', async () =>
    assert.match(await fails('keyz'), /unknown command 'keyz'/))
})

describe('settings', () => {
  const own = { ...env, BERTH_DATA_DIR: dir, DATABASE_URL: '' }

  it('wrong settings are named, each with its rule', async () => {
    const wrong = {
      PORT: '70000',
      DATABASE_URL: 'mysql://x',
      REDIS_URL: 'http://x',
      IPFS_API_URL: 'localhost:5001',
      JWT_KEY: 'short',
      LOG_LEVEL: 'loud',
      BERTH_PINS: 'stallSeconds=soon',
      BERTH_ALLOW_PRIVATE_HOST_NODES: 'perhaps',
      BERTH_BACKUP_KEEP: '7d,3d',
    }
    const { code, output } = await startOnce({ ...own, ...wrong })
    assert.equal(code, 78)
    for (const name of Object.keys(wrong)) assert.match(output, new RegExp(`^${name}: .+`, 'm'))
    assert.doesNotMatch(output, /\n {4}at /, 'no stack trace')
  })
  it('settings are read from files as well', async () => {
    const file = join(dir, 'url')
    await writeFile(file, `${env.DATABASE_URL || (await postgresUrl(env.BERTH_DATA_DIR ?? ''))}\n`)
    const { code, stdout } = await runCli({ ...own, DATABASE_URL_FILE: file }, 'workspaces', 'list')
    assert.equal(code, 0)
    assert.match(stdout, new RegExp(ws))
  })
  it('settings with a missing file or two values are named', async () => {
    const missing = await startOnce({ ...own, JWT_KEY_FILE: join(dir, 'nothing') })
    assert.equal(missing.code, 78)
    assert.match(missing.output, /^JWT_KEY_FILE: cannot be read: /m)
    const twice = await startOnce({ ...own, REDIS_URL: 'redis://x', REDIS_URL_FILE: join(dir, 'nothing') })
    assert.equal(twice.code, 78)
    assert.match(twice.output, /^REDIS_URL_FILE: REDIS_URL is set as well/m)
  })
})

describe('npm start', () => {
  it('npm start on a folder in use names the running Berth and exits', async () => {
    const { code, output } = await startOnce(env)
    assert.equal(code, 78)
    assert.match(
      output,
      new RegExp(`^Berth already runs on ${env.BERTH_DATA_DIR}: process \\d+, http://`, 'm'),
    )
    await until('the first one keeps running', async () => (await fetch(`${url}/readyz`)).status === 200)
  })
  it('npm start and berth login-link print the same host, whatever PORT the command sees', async () => {
    const output = (await startOnce(env)).output
    const [, announced] = /process \d+, (http:\/\/localhost:\d+)/.exec(output) ?? []
    const { stdout } = await runCli({ ...env, PORT: '0' }, 'login-link', '-w', ws)
    assert.equal(new URL(stdout).origin, announced)
  })
  it('npm start on a port in use names the variable', async () => {
    const taken = {
      ...env,
      BERTH_DATA_DIR: join(dir, 'taken'),
      DATABASE_URL: env.DATABASE_URL || (await postgresUrl(env.BERTH_DATA_DIR ?? '')) || undefined,
      PORT: new URL(url).port,
      BERTH_METRICS_PORT: '',
    }
    const { code, output } = await startOnce(taken)
    assert.equal(code, 78)
    assert.match(output, new RegExp(`^PORT: ${new URL(url).port} is in use`, 'm'))
  })
})
