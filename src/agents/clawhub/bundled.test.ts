/** The programs in the bundled skills. */
import assert from 'node:assert/strict'
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { freePort } from '../../../test/support/processes.ts'
import { bundledSkills } from './folders.ts'

const BERTH = join(import.meta.dirname, 'bundled/berth')

describe('bundled skills', () => {
  it('the bundled skills are all valid, each with its files', async () => {
    const skills = await bundledSkills()
    const slugs = skills.map(({ slug }) => slug)
    assert.deepEqual(slugs, ['@berth/handover', '@berth/journal', '@berth/platform', '@berth/web-page'])
    for (const { version, slug } of skills) assert.match(version ?? '', /^\d+\.\d+\.\d+$/, slug)
  })
})

describe('berth.mjs', () => {
  const run = (env: Record<string, string>, ...args: string[]) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((resolve) => {
      execFile(
        process.execPath,
        [join(BERTH, 'platform/berth.mjs'), ...args],
        { env },
        (error, stdout, stderr) => resolve({ code: error?.code ?? 0, stdout, stderr }),
      )
    })
  const env = {
    AGENTS_API_URL: 'http://127.0.0.1:1',
    AGENT_ID: 'x0000001',
    OPENCLAW_GATEWAY_TOKEN: 'the-token',
  }

  it('berth.mjs reports missing variables, and never the token', async () => {
    assert.deepEqual(await run({}, 'whoami'), {
      code: 1,
      stdout: '',
      stderr: 'AGENTS_API_URL is not set: this runs in an agent only\n',
    })
    for (const args of [[], ['constructor'], ['nothing'], ['detach'], ['whoami']]) {
      const { code, stdout, stderr } = await run(env, ...args)
      assert.deepEqual([code, stdout], [1, ''], args[0])
      assert.ok(stderr !== '' && !stderr.includes('the-token'), stderr)
    }
  })
})

describe('serve.mjs', () => {
  let folder: string
  let child: ChildProcess
  let port: number
  before(async () => {
    folder = await mkdtemp(join(tmpdir(), 'berth-site-'))
    await mkdir(join(folder, 'site/sub'), { recursive: true })
    await mkdir(join(folder, 'site-2'))
    for (const [path, text] of Object.entries({
      'site/index.html': 'home',
      'site/sub/index.html': 'sub',
      'site/a b.txt': 'spaced',
      'site/.env': 'SECRET',
      'outside.txt': 'outside',
      'site-2/x.txt': 'outside',
    }))
      await writeFile(join(folder, path), text)
    await symlink('../outside.txt', join(folder, 'site/link.txt'))
    await symlink('../site-2', join(folder, 'site/linked'))
    port = await freePort()
    child = spawn(process.execPath, [join(BERTH, 'web-page/serve.mjs'), join(folder, 'site'), `${port}`])
    await once(child.stdout as NonNullable<typeof child.stdout>, 'data')
  })
  after(async () => {
    child.kill()
    await rm(folder, { recursive: true })
  })

  const ask = (path: string, method = 'GET') =>
    new Promise<{ status: number | undefined; headers: Record<string, unknown>; text: string }>(
      (resolve, reject) => {
        const sent = request({ port, host: '127.0.0.1', path, method, agent: false })
        sent.once('error', reject).once('response', async (response) => {
          const text = Buffer.concat(await response.toArray()).toString()
          resolve({ status: response.statusCode, headers: response.headers, text })
        })
        sent.end()
      },
    )

  it('serve.mjs serves the files of its folder', async () => {
    const home = await ask('/')
    assert.deepEqual(
      [home.status, home.text, home.headers['content-type']],
      [200, 'home', 'text/html; charset=utf-8'],
    )
    assert.equal((await ask('/sub/')).text, 'sub')
    assert.equal((await ask('/a%20b.txt?x=1')).text, 'spaced')
    const head = await ask('/', 'HEAD')
    assert.deepEqual([head.status, head.headers['content-length'], head.text], [200, '4', ''])
    const moved = await ask('/sub')
    assert.deepEqual([moved.status, moved.headers.location], [308, 'sub/'])
  })
  it('serve.mjs serves nothing else', async () => {
    const outside = [
      '/../outside.txt',
      '/%2e%2e/outside.txt',
      '/..%2foutside.txt',
      '/link.txt',
      '/linked/x.txt',
    ]
    for (const path of [...outside, '/.env', '/nothing', '/%', '/%00', '//x', '/../site-2/x.txt']) {
      const { status, text } = await ask(path)
      assert.deepEqual([status, text], [404, 'Not found\n'], path)
    }
    assert.equal((await ask('/', 'POST')).status, 404)
  })
})
