/** Third-party repositories, on a real git server and on hostile ones. */
import assert from 'node:assert/strict'
import { mkdir, mkdtemp, readdir, rm, utimes } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { GitHosts, type GitHostsOptions } from '../../../src/agents/templates/git/hosts.ts'
import { ApiError } from '../../../src/errors.ts'
import { Bounds } from '../../../src/lib/bounds.ts'
import { createLogger } from '../../../src/log.ts'
import { startGitBackend } from '../../support/git-backend.ts'
import { commitTo, type Files } from '../../support/git-repositories.ts'
import { listen } from '../../support/http-server.ts'
import { until } from '../../support/processes.ts'

const folder = await mkdtemp(join(tmpdir(), 'berth-git-hosts-'))
const root = join(folder, 'served')
const dir = join(folder, 'fetches')
await mkdir(root)
const backend = await startGitBackend(root)
after(async () => {
  await backend.close()
  await rm(folder, { recursive: true, force: true })
})

const log = createLogger('test', 'silent')
const allow = (url: string) => ({ host: '127.0.0.1', port: Number(new URL(url).port) })
const hostsOf = (options: Partial<GitHostsOptions> = {}) =>
  new GitHosts({ dir, allowed: [allow(backend.url)], bounds: new Bounds(), ...options })
const asked = (signal = AbortSignal.timeout(120_000)) => ({ holder: { workspaceId: 'ours' }, log, signal })
const read = (
  name: string,
  {
    ref = null,
    path = '',
    ...options
  }: Partial<GitHostsOptions> & { ref?: string | null; path?: string } = {},
) => hostsOf(options).tree({ url: name.includes(':') ? name : `${backend.url}/${name}`, ref, path }, asked())

/** The status and the message that a client gets, however the read fails. */
const refusal = (work: Promise<unknown>): Promise<[number, string]> =>
  work.then(
    () => assert.fail('the read succeeded'),
    (error) => {
      if (!(error instanceof ApiError)) throw error
      return [error.status, error.message]
    },
  )

const FILES: Files = { 'manifest.json': '{}', 'README.md': '# A', 'workspace/run.sh': 'true\n' }

describe('a repository', () => {
  it('a repository is read without its history, whatever its file formats', async () => {
    const files: Files = { ...FILES, 'workspace/empty': '', 'a/ü\n"x"': 'odd', 'same.txt': '# A' }
    await commitTo(root, 'plain.git', { 'old.txt': 'old' })
    const commit = await commitTo(root, 'plain.git', files)
    const { commitSha, files: found, contents, problems } = await read('plain.git')
    assert.deepEqual([commitSha, problems], [commit, []])
    const texts = Object.fromEntries(found.map(({ path, blob }) => [path, `${contents.get(blob)}`]))
    assert.deepEqual(texts, files)
    const executable = found.filter(({ mode }) => mode === '100755').map(({ path }) => path)
    assert.deepEqual(executable, ['workspace/run.sh'])
  })
  it('a repository is read at a branch, a tag or a commit, and in a folder', async () => {
    const main = await commitTo(root, 'refs.git', FILES)
    const next = await commitTo(root, 'refs.git', { 'a/b/c.txt': 'c' }, { branch: 'team/next', tag: 'v1' })
    assert.equal((await read('refs.git')).commitSha, main)
    for (const ref of ['refs/heads/team/next', 'team/next', 'refs/tags/v1', 'v1', next]) {
      const { commitSha, files } = await read('refs.git', { ref, path: 'a/b' })
      assert.deepEqual([commitSha, files.map(({ path }) => path)], [next, ['c.txt']], ref)
    }
    assert.deepEqual(await hostsOf().refs(`${backend.url}/refs.git`, asked()), {
      branches: ['main', 'team/next'],
      tags: ['v1'],
      defaultBranch: 'main',
    })
  })
  it('a missing repository, branch or path returns 400', async () => {
    await commitTo(root, 'small.git', FILES)
    const none = [400, 'branch: the repository has no such branch, tag or commit']
    for (const ref of ['refs/heads/none', 'none', 'f'.repeat(40)])
      assert.deepEqual(await refusal(read('small.git', { ref })), none, ref)
    const noFolder = [400, 'path: the repository has no such folder']
    for (const path of ['none', 'manifest.json'])
      assert.deepEqual(await refusal(read('small.git', { path })), noFolder, path)
    assert.deepEqual(await refusal(read('none.git')), [400, 'gitUrl: there is no public repository'])
    const page = await listen((_, res) => res.end('<html>hello</html>'))
    const noGit = [400, 'gitUrl: there is no git repository, or it is empty']
    const readers = hostsOf({ allowed: [allow(page)] })
    assert.deepEqual(await refusal(read(`${page}/a`, { allowed: [allow(page)] })), noGit)
    assert.deepEqual(await refusal(readers.refs(`${page}/a`, asked())), noGit)
    const login = await listen((_, res) => res.writeHead(401, { 'WWW-Authenticate': 'Basic' }).end())
    const noRepository = [400, 'gitUrl: there is no public repository']
    assert.deepEqual(await refusal(read(`${login}/a`, { allowed: [allow(login)] })), noRepository)
  })
  it('reading a repository leaves no files, even if the process dies', async () => {
    await commitTo(root, 'left.git', FILES)
    await mkdir(join(dir, 'fetch-dead'), { recursive: true })
    await mkdir(join(dir, 'fetch-alive'))
    await utimes(join(dir, 'fetch-dead'), 1, 1)
    await read('left.git')
    await refusal(read('left.git', { ref: 'none' }))
    assert.deepEqual(await readdir(dir), ['fetch-alive'])
    await rm(join(dir, 'fetch-alive'), { recursive: true })
  })
})

describe('the content of a repository', () => {
  it('the content of a repository has no submodules and no links that lead outside', async () => {
    const files: Files = {
      ...FILES,
      '.gitmodules': `[submodule "lib"]\n\tpath = lib\n\turl = ${backend.url}/secret.git\n`,
      lib: { submodule: 'a'.repeat(40) },
      absolute: { link: '/etc/passwd' },
      'workspace/up': { link: '../../x' },
      'workspace/round': { link: 'up/../x' },
      'workspace/fine': { link: '../README.md' },
      fine: { link: './workspace/fine' },
    }
    await commitTo(root, 'links.git', files)
    const { files: found, problems } = await read('links.git')
    assert.deepEqual(problems.sort(), [
      'absolute: is a link that leads out of the template',
      'lib: is a submodule, which a template cannot have',
      'workspace/round: is a link that leads out of the template',
      'workspace/up: is a link that leads out of the template',
    ])
    assert.ok(!found.some(({ path }) => path === 'lib'))
  })
  it('the content of a repository triggers no filters, hooks or configuration', async () => {
    const made = join(folder, 'made-by-a-stranger')
    const config = `[filter "x"]\n\tsmudge = touch ${made}\n\tclean = touch ${made}\n[core]\n\tfsmonitor = touch ${made}\n`
    const files: Files = {
      ...FILES,
      '.gitattributes': '* filter=x export-subst export-ignore ident\n*.bin filter=lfs\n',
      config,
      HEAD: 'ref: refs/heads/main\n',
      'objects/a': 'a',
      'refs/a': 'a',
      'hooks/post-checkout.sh': `#!/bin/sh\ntouch ${made}\n`,
      'lfs.bin': 'version https://git-lfs.github.com/spec/v1\n',
      'id.txt': '$Id$ $Format:%H$\r\n',
    }
    await commitTo(root, 'hostile.git', files)
    const { files: found, contents } = await read('hostile.git')
    const texts = Object.fromEntries(found.map(({ path, blob }) => [path, `${contents.get(blob)}`]))
    assert.deepEqual(texts, files)
    assert.deepEqual((await readdir(folder)).sort(), ['fetches', 'served'])
  })
  it('the content of a repository is limited in files and bytes', async () => {
    await commitTo(
      root,
      'many.git',
      Object.fromEntries(Array.from({ length: 30 }, (_, i) => [`f${i}`, `${i}`])),
    )
    const many = [400, 'gitUrl: a template has at most 29 files']
    assert.deepEqual(await refusal(read('many.git', { limits: { maxFiles: 29 } })), many)
    await commitTo(root, 'large.git', { a: 'x'.repeat(60_000), b: 'x'.repeat(60_000) })
    const large = [400, 'gitUrl: a template has at most 100000 bytes']
    assert.deepEqual(await refusal(read('large.git', { limits: { maxBytes: 100_000 } })), large)
    const pack = Buffer.from(Array.from({ length: 200_000 }, (_, i) => (i * i * 2_654_435_761) % 251))
    await commitTo(root, 'pack.git', { a: pack })
    const tooLarge = [400, 'gitUrl: the repository is too large, or damaged']
    assert.deepEqual(await refusal(read('pack.git', { limits: { packBytes: 1024 } })), tooLarge)
  })
})

describe('the address of a repository', () => {
  it('the address of a repository is https, except where the operator allows http', async () => {
    const https = [400, 'gitUrl: must be an https address']
    for (const url of [
      'http://example.com/a',
      'http://127.0.0.1:1/a',
      'ssh://127.0.0.1/a',
      'git://127.0.0.1/a',
    ])
      assert.deepEqual(await refusal(read(url)), https, url)
    for (const url of [
      `file://${root}/refs.git`,
      'ext::sh -c true',
      'git@github.com:a/b',
      'https://u:p@a.example/',
    ])
      assert.match((await refusal(read(url)))[1], /^gitUrl: must be /, url)
  })
  it('the address of a repository is parsed the same by the check and by git', async () => {
    const commit = await commitTo(root, 'spelt.git', FILES)
    const { host } = new URL(backend.url)
    for (const url of [
      ` http://${host}/spelt.git\n`,
      `ht\ntp://${host}/spelt.git`,
      `HTTP:${host}/x/../spelt.git`,
    ])
      assert.equal((await read(url)).commitSha, commit, url)
  })
  it('the address of a repository is not on a private network, under any name', async () => {
    const resolve = async () => [
      { address: '93.184.215.14', family: 4 },
      { address: '169.254.169.254', family: 4 },
    ]
    for (const host of ['127.0.0.1', '[::1]', '10.0.0.1', '0x7f.1', 'localhost', 'rebound.example']) {
      const [status, message] = await refusal(read(`https://${host}/a.git`, { resolve }))
      assert.equal(status, 400, host)
      assert.match(message, /^gitUrl: \S+:443 is not on the public internet$/, host)
    }
    const nowhere = async () => Promise.reject(Object.assign(new Error('none'), { code: 'ENOTFOUND' }))
    const [status, message] = await refusal(read('https://nowhere.example/a.git', { resolve: nowhere }))
    assert.deepEqual([status, message], [502, 'gitUrl: nowhere.example:443 cannot be reached: ENOTFOUND'])
  })
  it('the address of a repository is resolved only by the resolver that is checked', async () => {
    const commit = await commitTo(root, 'named.git', FILES)
    const allowed = [{ host: 'git.example', port: allow(backend.url).port }]
    const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
    const url = `http://git.example:${allow(backend.url).port}/named.git`
    assert.equal((await read(url, { allowed, resolve })).commitSha, commit)
  })
  it('the address of a repository may redirect, but not to a private network', async () => {
    const commit = await commitTo(root, 'moved.git', FILES)
    let location = ''
    const url = await listen((req, res) => {
      const rest = (req.url ?? '').replace(/^\/[^/]+/, '')
      res.writeHead(302, { Location: `${location}${rest}` }).end()
    })
    const allowed = [allow(url), allow(backend.url)]
    location = `${backend.url}/moved.git`
    assert.equal((await read(`${url}/a`, { allowed })).commitSha, commit)
    const [status, message] = await refusal(read(`${url}/a`, { allowed: [allow(url)] }))
    assert.deepEqual(
      [status, message],
      [400, `gitUrl: 127.0.0.1:${allow(backend.url).port} is not on the public internet`],
    )
    for (location of [`file://${root}/moved.git`, 'ftp://127.0.0.1/moved.git'])
      assert.equal((await refusal(read(`${url}/a`, { allowed })))[0], 400, location)
  })
})

describe('a git server', () => {
  it('a git server that hangs times out', async () => {
    const url = await listen(() => {})
    const [status, message] = await refusal(
      read(`${url}/a`, { allowed: [allow(url)], limits: { idleMs: 1000 } }),
    )
    assert.deepEqual(
      [status, message.replace(/\d+ was/, 'x was')],
      [504, 'gitUrl: 127.0.0.1:x was silent for 1 s'],
    )
  })
  it('a git server that responds endlessly times out', async () => {
    const url = await listen((_, res) => {
      res.writeHead(200, { 'Content-Type': 'application/x-git-upload-pack-advertisement' })
      res.write('001e# service=git-upload-pack\n0000')
      const line = `0041${'a'.repeat(40)} refs/heads/aaaaaaaa\n`
      const more = setInterval(() => res.write(line), 5)
      res.once('close', () => clearInterval(more))
    })
    const limits = { totalMs: 1500 }
    const late = [504, 'gitUrl: reading the repository took too long']
    assert.deepEqual(await refusal(read(`${url}/a`, { allowed: [allow(url)], limits })), late)
    assert.deepEqual(await readdir(dir), [])
  })
  it('a git server gets a limited number of requests, and none for a client that has left', async () => {
    let open = 0
    const url = await listen((req) => {
      open++
      req.once('close', () => open--)
    })
    const hosts = hostsOf({
      allowed: [allow(url)],
      bounds: new Bounds({ repositoryReads: { workspace: 1 } }),
    })
    const gone = new AbortController()
    const first = refusal(hosts.refs(`${url}/a`, asked(gone.signal)))
    await until('it is asked', async () => open === 1, 60_000)
    assert.deepEqual(await refusal(hosts.refs(`${url}/a`, asked())), [
      429,
      "Too many reads of other servers' repositories at a time: 1 of this workspace",
    ])
    gone.abort()
    await first
    await until('git has exited', async () => open === 0, 60_000)
    assert.deepEqual(await readdir(dir), [])
  })
  it('reading from a git server fails if git is not installed', async () => {
    const { PATH } = process.env
    process.env.PATH = folder
    try {
      const missing = [503, 'Repositories cannot be read: git is not installed']
      assert.deepEqual(await refusal(read('plain.git')), missing)
    } finally {
      process.env.PATH = PATH
    }
  })
})
