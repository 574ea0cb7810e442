import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmod, link, mkdir, readdir, readFile, rename, rm, stat, symlink, writeFile } from 'node:fs/promises'
import { request } from 'node:http'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { filesService } from '../../../agentd/files.ts'
import { readAll, type ServedAgentd, serveAgentd } from '../../support/agentd-services.ts'

let agentd: ServedAgentd
let root: string

before(async () => {
  agentd = await serveAgentd([filesService])
  root = agentd.agent.paths.root
  await writeFile(join(agentd.agent.paths.home, 'outside.txt'), 'not for the API')
})
after(() => agentd.close())

const query = (path: string, more = {}) => new URLSearchParams({ path, ...more })

/** Status and text of a file, or the code of the failure. */
async function get(path: string, more = {}): Promise<string> {
  const response = await agentd.send('GET', `/v1/file?${query(path, more)}`)
  const body = (await readAll(response)).toString()
  return response.statusCode === 200 ? body : `${response.statusCode} ${JSON.parse(body).error}`
}

async function put(path: string, body: string | Buffer, more = {}): Promise<any> {
  const response = await agentd.send('PUT', `/v1/file?${query(path, more)}`, { body })
  const answer = JSON.parse((await readAll(response)).toString())
  return response.statusCode === 200 ? answer : `${response.statusCode} ${answer.error}`
}

async function list(path: string, more = {}) {
  const { status, body } = await agentd.json('GET', `/v1/list?${query(path, more)}`)
  return status === 200 ? body : `${status} ${body.error}`
}

test('a file is written, read and listed under the names of the API', async () => {
  const bytes = Buffer.from([0, 255, 10, 13, 0xc3, 0x28])
  const path = '/home/node/clawd/workspace/uploads/ü +%41.bin'
  const { version, ...written } = await put(path, bytes)
  assert.deepEqual(written, { path, size: 6 })
  assert.match(version, /^"[\w.-]+"$/)
  const response = await agentd.send('GET', `/v1/file?${query('workspace/uploads/ü +%41.bin')}`)
  assert.equal(response.headers['content-length'], '6')
  assert.deepEqual(await readAll(response), bytes)
  const { entries, truncated } = await list('workspace/uploads')
  assert.equal(truncated, false)
  assert.deepEqual(
    entries.map(({ name, type, size }: any) => ({ name, type, size })),
    [{ name: 'ü +%41.bin', type: 'file', size: 6 }],
  )
  assert.equal(
    entries[0].modifiedAt,
    (await stat(join(root, 'workspace/uploads/ü +%41.bin'))).mtime.toISOString(),
  )
})

test('an empty file can be read, and the root is not a file', async () => {
  assert.equal((await put('empty', '')).size, 0)
  assert.equal(await get('empty'), '')
  assert.equal(await get('/home/node/clawd'), '400 not_a_file')
  assert.equal(await put('', 'x'), '400 not_a_file')
  assert.ok((await list('')).entries.some(({ name }: any) => name === 'empty'))
})

test('a write replaces a file atomically, keeps its permissions and follows no link', async () => {
  await put('run.sh', 'one')
  assert.equal((await stat(join(root, 'run.sh'))).mode & 0o777, 0o644)
  await chmod(join(root, 'run.sh'), 0o750)
  await put('run.sh', 'two')
  assert.equal((await stat(join(root, 'run.sh'))).mode & 0o777, 0o750)
  assert.equal(await get('run.sh'), 'two')
  await symlink('../outside.txt', join(root, 'leads-out'))
  await put('leads-out', 'stays inside')
  assert.equal(await get('leads-out'), 'stays inside')
  assert.equal(await readFile(join(agentd.agent.paths.home, 'outside.txt'), 'utf8'), 'not for the API')
})

test('no path reaches anything outside the root', async () => {
  for (const path of [
    '/etc/passwd',
    '/home/node/outside.txt',
    '/home/node/clawd/../outside.txt',
    '../outside.txt',
    'workspace/../../outside.txt',
    '/home/node/clawdx',
    '/proc/self/environ',
    '..',
    '/',
  ]) {
    assert.equal(await get(path), '403 outside', path)
    assert.equal(await put(path, 'x'), '403 outside', path)
    assert.equal(await list(path), '403 outside', path)
  }
  assert.equal(await get('%2e%2e/outside.txt'), '404 not_found', 'a percent sign stays a percent sign')
  assert.equal(await get('..\\outside.txt'), '404 not_found')
})

test('no link leads out of the root', async () => {
  const home = agentd.agent.paths.home
  await symlink(home, join(root, 'home'))
  await symlink('..', join(root, 'up'))
  await symlink('../outside.txt', join(root, 'link'))
  await symlink('/proc/self/environ', join(root, 'environ'))
  await symlink('/proc/self/root', join(root, 'machine'))
  await symlink('/dev/zero', join(root, 'zero'))
  await symlink('loop', join(root, 'loop'))
  await symlink(join(home, 'new'), join(root, 'dangling'))
  for (const path of ['home/outside.txt', 'up/outside.txt', 'link', 'environ', 'machine/etc/passwd', 'zero'])
    assert.equal(await get(path), '403 outside', path)
  for (const path of ['home', 'up', 'machine/etc']) assert.equal(await list(path), '403 outside', path)
  for (const path of ['home/new.txt', 'up/deep/new.txt', 'machine/tmp/new.txt'])
    assert.equal(await put(path, 'x'), '403 outside', path)
  assert.equal(await get('loop'), '404 not_found')
  assert.equal(await put('loop/x', 'x'), '404 not_found')
  assert.equal(await put('dangling/x', 'x'), '404 not_found')
  assert.deepEqual((await readdir(home)).sort(), ['.agentd', 'clawd', 'outside.txt'])
})

test('links inside the root are followed', async () => {
  await put('docs/a.txt', 'a')
  await symlink('docs', join(root, 'inside'))
  await link(join(root, 'docs/a.txt'), join(root, 'hard'))
  assert.equal(await get('inside/a.txt'), 'a')
  await put('inside/b/c.txt', 'c')
  assert.equal(await get('docs/b/c.txt'), 'c')
  await put('hard', 'other')
  assert.equal(await get('docs/a.txt'), 'a', 'the other name keeps its content')
})

test('a link swapped in at any moment leads nowhere', async () => {
  const home = agentd.agent.paths.home
  await mkdir(join(home, 'secret'))
  await writeFile(join(home, 'secret/file'), 'SECRET')
  await put('race/file', 'fine')
  let stop = false
  /** False if a PUT recreated the folder in the gap, or wrote into it. */
  const putBack = async () => {
    try {
      await rm(join(root, 'race'), { recursive: true, force: true })
      await rename(join(root, 'race.kept'), join(root, 'race'))
      return true
    } catch (error) {
      if (!['ENOTEMPTY', 'EEXIST'].includes((error as NodeJS.ErrnoException).code ?? '')) throw error
      return false
    }
  }
  const swap = async () => {
    while (!stop) {
      await rename(join(root, 'race'), join(root, 'race.kept'))
      // A PUT may recreate the folder in the gap.
      await symlink('../secret', join(root, 'race')).catch(() => {})
      while (!(await putBack()));
    }
  }
  const swapping = swap()
  const seen = new Set<string>()
  for (let i = 0; i < 400; i++) {
    seen.add(await get('race/file'))
    seen.add(String(await list('race').then((found) => (typeof found === 'string' ? found : 'listed'))))
    const written = await put('race/new', 'x')
    seen.add(typeof written === 'string' ? written : 'written')
  }
  stop = true
  await swapping.catch(() => {})
  assert.deepEqual(await readdir(join(home, 'secret')), ['file'])
  assert.equal(await readFile(join(home, 'secret/file'), 'utf8'), 'SECRET')
  assert.ok(!seen.has('SECRET'))
  assert.ok(seen.has('fine') || seen.has('403 outside'))
})

test('only regular files are read, and a FIFO blocks nothing', async () => {
  execFileSync('mkfifo', [join(root, 'fifo')])
  await mkdir(join(root, 'folder'))
  assert.equal(await get('fifo'), '400 not_a_file')
  assert.equal(await get('folder'), '400 not_a_file')
  assert.equal(await get('empty/x'), '400 not_a_file')
  assert.equal(await list('fifo'), '400 not_a_file')
  assert.equal(await list('empty'), '400 not_a_file')
  assert.equal(await put('folder', 'x'), '400 not_a_file')
  assert.equal(await put('empty/x', 'x'), '400 not_a_file')
  assert.equal(await get('nothing'), '404 not_found')
  assert.equal(await list('nothing'), '404 not_found')
  const type = (await list('')).entries.find(({ name }: any) => name === 'fifo').type
  assert.equal(type, 'other')
})

test('impossible names are rejected', async () => {
  assert.equal(await get('a\0b'), '400 bad_request')
  assert.equal(await put('a\0b', 'x'), '400 bad_request')
  assert.equal(await get('x'.repeat(5000)), '400 bad_request')
  assert.equal(await get('x'.repeat(300)), '400 bad_request')
  assert.equal(await put('x'.repeat(300), 'x'), '400 bad_request')
  assert.equal(await put(`${'x/'.repeat(2050)}y`, 'x'), '400 bad_request')
  assert.equal(await put(`long/${'y'.repeat(255)}`, 'x').then((answer: any) => answer.size), 1)
  assert.equal(await get('', { max: 'x' }), '400 bad_request')
})

test('size limits are enforced before a byte is sent or stored', async () => {
  await put('ten', '0123456789')
  assert.equal(await get('ten', { max: 10 }), '0123456789')
  assert.equal(await get('ten', { max: 9 }), '413 too_large')
  assert.equal(await put('ten', 'x'.repeat(11), { max: 10 }), '413 too_large')
  assert.equal(await put('ten', Buffer.alloc(3_000_000), { max: 10 }), '413 too_large')
  assert.equal(await chunked('ten', 1_000_000, 1000), '413 too_large')
  assert.equal(await get('ten'), '0123456789')
  assert.deepEqual(await readdir(join(agentd.agent.paths.home, '.agentd')), [])
})

/** Writes a body of unknown length. */
function chunked(path: string, size: number, max: number): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({
      port: agentd.port,
      method: 'PUT',
      path: `/v1/file?${query(path, { max: String(max) })}`,
      headers: agentd.headers,
    })
    sent.once('error', reject).once('response', async (response) => {
      resolve(`${response.statusCode} ${JSON.parse((await readAll(response)).toString()).error}`)
    })
    sent.flushHeaders()
    sent.end(Buffer.alloc(size))
  })
}

test('a body that breaks off changes nothing', async () => {
  await put('kept', 'as it was')
  const sent = request({
    port: agentd.port,
    method: 'PUT',
    path: `/v1/file?${query('kept')}`,
    headers: { ...agentd.headers, 'content-length': 1000 },
  })
  sent.on('error', () => {})
  sent.write('half')
  await waitFor(async () => (await readdir(join(agentd.agent.paths.home, '.agentd'))).length === 1)
  sent.destroy()
  await waitFor(async () => (await readdir(join(agentd.agent.paths.home, '.agentd'))).length === 0)
  assert.equal(await get('kept'), 'as it was')
})

async function waitFor(holds: () => Promise<boolean>): Promise<void> {
  const deadline = Date.now() + 30_000
  while (!(await holds())) {
    assert.ok(Date.now() < deadline, 'not in time')
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}

test('a file that shrinks while it is read breaks off the response', async () => {
  await put('shrinks', Buffer.alloc(20_000_000))
  const response = await agentd.send('GET', `/v1/file?${query('shrinks')}`)
  await writeFile(join(root, 'shrinks'), 'x')
  await assert.rejects(readAll(response))
  assert.equal(await get('kept'), 'as it was')
})

test('a large file can be written and read', async () => {
  const bytes = Buffer.alloc(30_000_000, 'abcdefghij')
  assert.equal((await put('large', bytes)).size, bytes.length)
  const response = await agentd.send('GET', `/v1/file?${query('large')}`)
  assert.ok((await readAll(response)).equals(bytes))
})

test('folder listings are sorted and limited', async () => {
  await mkdir(join(root, 'many'))
  for (let i = 0; i < 30; i++) await writeFile(join(root, 'many', `f${String(29 - i).padStart(2, '0')}`), '')
  const { entries, truncated } = await list('many', { limit: 3 })
  assert.deepEqual([entries.map(({ name }: any) => name), truncated], [['f00', 'f01', 'f02'], true])
  assert.equal((await list('many', { limit: 30 })).truncated, false)
})

test('a write to a full disk fails with disk_full', async (t) => {
  const small = join(root, 'small')
  await mkdir(small)
  try {
    execFileSync('mount', ['-t', 'tmpfs', '-o', 'size=64k', 'tmpfs', small], { stdio: 'ignore' })
  } catch {
    return t.skip('no right to mount')
  }
  t.after(() => execFileSync('umount', [small]))
  await mkdir(join(small, 'clawd'))
  const full = await serveAgentd([
    (agent) => filesService({ ...agent, paths: { ...agent.paths, home: small, root: join(small, 'clawd') } }),
  ])
  t.after(() => full.close())
  const response = await full.send('PUT', '/v1/file?path=big', { body: Buffer.alloc(1_000_000) })
  assert.equal(response.statusCode, 507)
  assert.equal(JSON.parse((await readAll(response)).toString()).error, 'disk_full')
  assert.deepEqual(await readdir(join(small, 'clawd')), [])
  assert.deepEqual(await readdir(join(small, '.agentd')), [])
})
