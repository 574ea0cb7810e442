/** `berth` against a Berth, as a user runs it elsewhere. Commands of running agents are in `openclaw/`. */
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, readFile, stat, writeFile } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { after, describe, it } from 'node:test'
import { promisify, stripVTControlCharacters } from 'node:util'
import { Webhook } from 'standardwebhooks'
import operator from '../../bin/operator-commands.json' with { type: 'json' }
import root from '../../package.json' with { type: 'json' }
import { BUNDLE, berthOf, runBundle } from '../support/command-line.ts'
import { useFolder } from '../support/folder.ts'
import { until } from '../support/processes.ts'
import { runCli } from '../support/stack.ts'
import { insertAgent } from './agents/rows.ts'
import { inlineCid, missingCid, openContext } from './context.ts'

const { url, workspace, anonymous, sql } = await openContext()
const own = await workspace()
const dir = await useFolder('berth-command-line-')
const env = { BERTH_URL: url, BERTH_KEY: String(own.api.key), XDG_CONFIG_HOME: dir }
const berth = (...args: string[]) => berthOf({ env, cwd: dir }, ...args)
const json = async (...args: string[]) => JSON.parse(await berth(...args, '--json'))

describe('berth login', () => {
  const home = { XDG_CONFIG_HOME: join(dir, 'home') }
  it('berth login reads the key from stdin, checks it, and stores it for its user only', async () => {
    const stdin = `${own.api.key}\n`
    const said = await berthOf({ env: home, stdin }, 'login', url, '--name', 'test')
    assert.match(said, new RegExp(`^signed in as owner, workspace ${own.name} \\(profile test\\)$`))
    const path = join(home.XDG_CONFIG_HOME, 'berth/profiles.json')
    assert.equal((await stat(path)).mode & 0o777, 0o600)
    assert.match(await berthOf({ env: home }, 'whoami'), new RegExp(`^workspace +${own.name}$`, 'm'))
    assert.equal(await berthOf({ env: home }, 'logout'), 'removed profile test')
    assert.doesNotMatch(await readFile(path, 'utf8'), /"key"/)
  })
  it('berth login stores no key that Berth refuses', async () => {
    const { code, stderr } = await runBundle(['login', url], { env: home, stdin: 'a.b.c' })
    assert.deepEqual([code, /does not accept this key/.test(stderr)], [3, true])
    assert.equal((await runBundle(['whoami'], { env: home })).code, 3)
  })
})

describe('berth files', () => {
  it('a file is added, shown, linked, printed and deleted', async () => {
    await writeFile(join(dir, 'note.txt'), 'a note')
    const cid = await berth('files', 'add', 'note.txt', '--public', '--keyvalue', 'by=ada')
    const [listed] = await json('files', 'ls')
    assert.deepEqual([listed.name, listed.cid, listed.keyvalues], ['note.txt', cid, { by: 'ada' }])
    assert.match(await berth('files', 'show', cid), /^name +note\.txt$/m)
    assert.match(await berth('files', 'link', cid), new RegExp(`^http://.*/ipfs/${cid}$`))
    assert.equal(await berth('files', 'get', cid, '-'), 'a note')
    assert.equal(await berth('files', 'rm', cid), `deleted ${cid}`)
    assert.equal((await runBundle(['files', 'show', cid], { env })).code, 5)
  })
  it('a folder is added without its hidden files, and downloaded again', async () => {
    await mkdir(join(dir, 'site/img'), { recursive: true })
    await writeFile(join(dir, 'site/index.html'), '<h1>Hello</h1>')
    await writeFile(join(dir, 'site/img/a b.svg'), '<svg/>')
    await writeFile(join(dir, 'site/.env'), 'SECRET=1')
    const [added] = await json('files', 'add', 'site')
    assert.deepEqual([added.network, added.number_of_files, added.mime_type], ['private', 2, 'directory'])
    assert.equal(await berth('files', 'get', added.id, 'copy'), 'copy')
    assert.equal(await readFile(join(dir, 'copy/img/a b.svg'), 'utf8'), '<svg/>')
    const [whole] = await json('files', 'add', 'site', '--hidden')
    assert.equal(whole.number_of_files, 3)
  })
  it('a resumable upload of a large file arrives whole', async () => {
    const content = Buffer.alloc(17 * 1024 * 1024, 'large file ')
    await writeFile(join(dir, 'large.bin'), content)
    const [{ id, size }] = await json('files', 'add', 'large.bin')
    assert.equal(size, content.length)
    await berth('files', 'get', id, 'large.copy')
    assert.ok(content.equals(await readFile(join(dir, 'large.copy'))))
  })
  it('a terminal shows the progress of an upload, and then its CID and a link', async () => {
    const inTerminal = promisify(execFile)(
      'script',
      ['-qec', 'node "$BERTH" files add large.bin', '/dev/null'],
      {
        env: { ...env, BERTH: BUNDLE, PATH: process.env.PATH, TERM: 'xterm' },
        cwd: dir,
      },
    )
    const shown = stripVTControlCharacters((await inTerminal).stdout)
    assert.match(shown, /[░█]{24} +\d+% large\.bin {2}[\d.]+ \w+ of 17\.0 MiB/)
    assert.match(shown, /\rbaf\w+\r\nhttp:.*\/files\/baf/)
  })
  it('stdin is added under a name', async () => {
    const cid = await berthOf({ env, stdin: 'from a pipe' }, 'files', 'add', '-', '--name', 'piped')
    assert.equal(await berth('files', 'get', cid, '-'), 'from a pipe')
  })
  it('a CID is pinned, waits for its end, and may be in a group', async () => {
    const group = await berth('groups', 'create', 'papers')
    const cid = `${inlineCid('pinned by a command')}`
    assert.equal(await berth('files', 'pin', cid, '--group', group), `pinned ${cid}`)
    assert.match(await berth('files', 'ls', '--group', group), new RegExp(cid))
    assert.equal(await berth('groups', 'rm', group), `deleted ${group}`)
  })
  it('a pending pin is listed and withdrawn, and its operation ends', async () => {
    const cid = `${await missingCid()}`
    const { id, operation } = await json('files', 'pin', cid, '--no-wait')
    assert.ok((await json('pins', 'ls')).some((pin: { id: string }) => pin.id === id))
    assert.equal(await berth('pins', 'rm', id), `withdrew ${id}`)
    const { code, stderr } = await runBundle(['operations', 'wait', operation], { env })
    assert.equal(code, 1)
    assert.match(stderr, /^error: pin\.add: /)
  })
})

describe('berth webhooks', () => {
  it('berth webhooks listen forwards signed events to a local program', async () => {
    const secret = `whsec_${Buffer.from('a secret of this test').toString('base64')}`
    const got: { type: string; data: { name: string } }[] = []
    const server = createServer(async (request, response) => {
      const body = await text(request)
      got.push(new Webhook(secret).verify(body, request.headers as Record<string, string>) as never)
      response.end()
    })
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    after(() => server.close())
    const target = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const listening = runBundle(['webhooks', 'listen', target, '--type', 'group.*', '--json'], {
      env: { ...env, BERTH_WEBHOOK_SECRET: secret },
      until: '\n',
    })
    await until('an event arrives', async () => {
      await own.api.post('/v3/groups/public', { name: 'heard' })
      return got.length > 0
    })
    const { code, stdout } = await listening
    assert.equal(code, 130)
    assert.deepEqual([got[0]?.type, got[0]?.data.name], ['group.created', 'heard'])
    assert.equal(JSON.parse(stdout.split('\n')[0] ?? '').status, 200)
  })
})

describe('berth agents secrets', () => {
  it('a secret keeps its hosts with a new value, and the list says that agents cannot read it', async () => {
    const { agentId } = await insertAgent({ anonymous, sql }, own)
    const set = (stdin: string, ...more: string[]) =>
      berthOf({ env, stdin }, 'agents', 'secrets', 'set', agentId, 'CATALOGUE_KEY', ...more)
    await set(
      'ck-0123456789',
      '--host',
      'api.example.com',
      '--host',
      '*.example.org',
      '--via',
      'header:X-Api-Key',
    )
    await set('ck-9876543210')
    const [{ hosts, via }] = await json('agents', 'secrets', 'ls', agentId)
    assert.deepEqual(hosts, ['api.example.com', '*.example.org'])
    assert.deepEqual(via, { as: 'header', name: 'X-Api-Key' })
    const listed = await berth('agents', 'secrets', 'ls', agentId)
    assert.match(listed, /^CATALOGUE_KEY .* no +api\.example\.com \*\.example\.org/m)
    const args = ['agents', 'secrets', 'set', agentId, 'CATALOGUE_KEY', '--via', 'header:']
    assert.equal((await runBundle(args, { env, stdin: 'x' })).code, 2)
  })
})

describe('berth', () => {
  it('a command of the repository’s berth calls the Berth of the environment', async () => {
    const { code, stdout } = await runCli({ PATH: process.env.PATH, ...env }, 'whoami', '--json')
    assert.deepEqual([code, JSON.parse(stdout).workspace.name], [0, own.name])
  })
  it('operators’ commands are listed, and named where they cannot run', async () => {
    const help = await berth('--help')
    const source = await readFile(new URL('../../src/cli/main.ts', import.meta.url), 'utf8')
    const names = Array.from(source.matchAll(/\bberth\s*\.command\('([\w-]+)'\)/g), ([, name = '']) => name)
    assert.deepEqual(names.sort(), Object.keys(operator).sort())
    for (const name of names) assert.match(help, new RegExp(`^ {2}${name} `, 'm'))
    const { code, stderr } = await runBundle(['migrate'], { env })
    assert.deepEqual([code, /berth migrate is for operators/.test(stderr)], [2, true])
  })
  it('berth api calls any route, and reports a refusal', async () => {
    assert.equal((await json('api', 'GET', '/v0/me')).data.workspace.name, own.name)
    const { code, stderr } = await runBundle(['api', 'POST', '/v3/groups/public', '-d', '{}'], { env })
    assert.deepEqual([code, /^error: name/.test(stderr)], [1, true])
  })
  it('errors with --json are JSON, with the exit code', async () => {
    const { code, stdout, stderr } = await runBundle(['agents', 'show', 'nobody', '--json'], { env })
    assert.deepEqual([code, stdout, JSON.parse(stderr).exit], [5, '', 5])
  })
  it('berth __complete answers as the scripts for shells ask', async () => {
    assert.match(await berth('__complete', '--', 'agents', 'ex'), /^exec\trun a command/)
  })
  it('the packages have the version of Berth', async () => {
    for (const name of ['cli', 'typescript']) {
      const path = new URL(`../../clients/${name}/package.json`, import.meta.url)
      assert.equal(JSON.parse(await readFile(path, 'utf8')).version, root.version)
    }
    assert.equal(await berth('--version'), root.version)
  })
})
