/** Files of an agent (contract 4.3, 7). */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { before, describe, it } from 'node:test'
import { assertError, type Reply } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { sharedStandIn } from './context.ts'

const MAX_BYTES = 8_388_608
const UPLOADS = '/home/node/clawd/workspace/uploads'

const context = await openContext()
const { shared } = context
const agent = await sharedStandIn(context)
const FILES = `${agent.path}/files`

const read = (path: string) => shared.get(FILES, { path })
const list = (path?: string) => shared.get(`${FILES}/list`, path === undefined ? undefined : { path })
const upload = (filename: unknown, contentBase64: unknown): Promise<Reply> =>
  shared.post(`${FILES}/upload`, { filename, contentBase64 })
const exec = async (command: string): Promise<string> => {
  const { status, body } = await shared.post(`${agent.path}/console/exec`, { command })
  assert.equal(status, 200)
  assert.equal(body.exitCode, 0, body.stderr)
  return body.stdout
}

describe('reading a file', () => {
  before(() =>
    exec(`cd workspace && mkdir -p read/folder && cd read && printf '<script>1</script>' > page.html \
      && printf '{"error": "mine"}' > data.json && printf '\\000\\377' > noname && : > empty.txt \
      && head -c ${MAX_BYTES} /dev/zero > full.bin && head -c ${MAX_BYTES + 1} /dev/zero > over.bin \
      && ln -sf /etc/passwd out && ln -sfn /etc outdir && ln -sf data.json in.json && (rm -f pipe; mkfifo pipe)`),
  )

  it('reading a file returns its bytes unchanged, and lets no browser run them', async () => {
    const response = await fetch(`${context.url}${FILES}?path=workspace/read/page.html`, {
      headers: { authorization: `Bearer ${shared.key}` },
    })
    assert.equal(response.status, 200)
    assert.equal(await response.text(), '<script>1</script>')
    const { headers } = response
    assert.equal(headers.get('content-type'), 'text/html; charset=utf-8')
    assert.equal(headers.get('content-length'), '18')
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('content-security-policy'), "sandbox; default-src 'none'")
    assert.equal(headers.get('content-disposition'), 'attachment; filename=page.html')
  })
  it('reading a file accepts absolute paths, and paths relative to the root', async () => {
    for (const path of ['workspace/read/data.json', '/home/node/clawd/workspace/read/../read/in.json'])
      assert.deepEqual((await read(path)).body, { error: 'mine' })
  })
  it('a file with an unknown extension has a generic type', async () => {
    const response = await fetch(`${context.url}${FILES}?path=workspace/read/noname`, {
      headers: { authorization: `Bearer ${shared.key}` },
    })
    assert.equal(response.headers.get('content-type'), 'application/octet-stream')
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), Buffer.of(0, 255))
  })
  it('reading a file that is too large returns 413', async () =>
    assertError(await read('workspace/read/over.bin'), 413, 'File too large'))
  it('reading a missing file returns 404', async () =>
    assertError(await read('workspace/nothing'), 404, 'There is no such file'))
  for (const path of ['workspace/read/folder', 'workspace/read/pipe'])
    it(`reading a file refuses ${path}, which is not a file`, async () =>
      assertError(await read(path), 400, /^path: /))
})

describe('writing a file', () => {
  const write = async (path: string, body: string | Buffer, headers: Record<string, string> = {}) => {
    const response = await fetch(`${context.url}${FILES}?${new URLSearchParams({ path })}`, {
      method: 'PUT',
      body: new Uint8Array(Buffer.from(body)),
      headers: { authorization: `Bearer ${shared.key}`, ...headers },
    })
    return {
      status: response.status,
      headers: response.headers,
      body: (await response.json()) as Reply['body'],
    }
  }
  const etag = async (path: string) => (await read(path)).headers.get('etag') ?? ''

  it('writing a file creates missing folders', async () => {
    const { status, body } = await write('workspace/written/deep/a.txt', 'first')
    assert.equal(status, 200)
    const { version, ...rest } = body
    assert.deepEqual(rest, { path: '/home/node/clawd/workspace/written/deep/a.txt', size: 5 })
    assert.equal((await read(body.path)).body, 'first')
    assert.equal(await etag(body.path), version)
  })
  it('writing a file with its version is refused if another writer changed it', async () => {
    const path = 'workspace/written/b.txt'
    const { version } = (await write(path, 'mine')).body
    await exec(`printf theirs > ${path}`)
    assertError(
      await write(path, 'mine again', { 'if-match': version }),
      412,
      'The file was changed in the meantime',
    )
    assert.equal((await read(path)).body, 'theirs')
    assert.equal((await write(path, 'both', { 'if-match': await etag(path) })).status, 200)
    assert.equal((await read(path)).body, 'both')
  })
  it('two concurrent writes of the same version: one is refused', async () => {
    const path = 'workspace/written/c.txt'
    const { version } = (await write(path, 'before')).body
    const replies = await Promise.all(
      ['one', 'two'].map((text) => write(path, text, { 'if-match': version })),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 412])
  })
  it('writing a new file is refused if it exists', async () => {
    const path = 'workspace/written/d.txt'
    assert.equal((await write(path, 'new', { 'if-none-match': '*' })).status, 200)
    assertError(
      await write(path, 'again', { 'if-none-match': '*' }),
      412,
      'The file was changed in the meantime',
    )
    assert.equal((await read(path)).body, 'new')
  })
  it('writing a file is limited to the largest size', async () => {
    const path = 'workspace/written/large'
    assert.equal((await write(path, Buffer.alloc(MAX_BYTES))).body.size, MAX_BYTES)
    assertError(await write(path, Buffer.alloc(MAX_BYTES + 1)), 413, 'File too large')
  })
  for (const [header, value] of [
    ['if-match', 'x'],
    ['if-none-match', '"x"'],
  ] as const)
    it(`writing a file refuses ${header}: ${value}`, async () =>
      assertError(await write('workspace/written/e', 'x', { [header]: value }), 400, /^If-/))
  for (const path of ['.', '.git/config', '../x', '/etc/x', 'workspace/read/outdir/x', 'workspace/read'])
    it(`neither writing nor deleting a file touches ${path}`, async () => {
      if (path !== 'workspace/read')
        assert.ok((await shared.request('DELETE', `${FILES}?path=${path}`)).status >= 400)
      const { status } = await write(path, 'x')
      assert.ok([400, 404].includes(status), String(status))
    })
  it('deleting a file or a folder deletes its contents, and follows no link', async () => {
    await exec('mkdir -p workspace/gone/in && cd workspace/gone && echo a > in/a && ln -s ../read in/link')
    const { status, body } = await shared.request('DELETE', `${FILES}?path=workspace/gone/in`)
    assert.deepEqual([status, body], [200, { success: true, path: '/home/node/clawd/workspace/gone/in' }])
    assert.equal(await exec('ls workspace/gone; ls workspace/read/data.json'), 'workspace/read/data.json\n')
    assertError(
      await shared.request('DELETE', `${FILES}?path=workspace/gone/in`),
      404,
      'There is no such file',
    )
  })
})

describe('listing a folder', () => {
  it('listing a folder returns its entries by name', async () => {
    await exec('mkdir -p workspace/listed/b && cd workspace/listed && printf abc > a && ln -sfn /etc c')
    const { status, body } = await list('workspace/listed')
    assert.equal(status, 200)
    assert.deepEqual([body.path, body.truncated], ['/home/node/clawd/workspace/listed', false])
    assert.deepEqual(
      body.entries.map(({ name, type }: { name: string; type: string }) => [name, type]),
      [
        ['a', 'file'],
        ['b', 'directory'],
        ['c', 'symlink'],
      ],
    )
    assert.equal(body.entries[0].size, 3)
    assert.ok(Date.parse(body.entries[0].modifiedAt))
  })
  it('listing a folder without a path lists the root', async () => {
    const { body } = await list()
    assert.equal(body.path, '/home/node/clawd')
    assert.ok(body.entries.some(({ name }: { name: string }) => name === 'workspace'))
  })
  it('listing a folder refuses files, missing folders and paths outside the root', async () => {
    assertError(await list('workspace/listed/a'), 400, 'path: is not a folder')
    assertError(await list('workspace/nothing'), 404, 'There is no such file')
    for (const path of ['/', '/home/node', '..', 'workspace/listed/c']) {
      const { status } = await list(path)
      assert.ok([400, 404].includes(status), `${path}: ${status}`)
    }
  })
})

describe('uploading a file', () => {
  it("uploading a file stores it in the workspace's uploads folder", async () => {
    const content = randomBytes(1000)
    const { status, body } = await upload('some file.bin', content.toString('base64'))
    assert.equal(status, 200)
    assert.deepEqual(body, { path: `${UPLOADS}/some file.bin`, filename: 'some file.bin', size: 1000 })
    const response = await fetch(`${context.url}${FILES}?${new URLSearchParams({ path: body.path })}`, {
      headers: { authorization: `Bearer ${shared.key}` },
    })
    assert.deepEqual(Buffer.from(await response.arrayBuffer()), content)
  })
  it('uploading a file accepts all names that file systems accept', async () => {
    for (const name of ['ünï ©ode 文.txt', '.hidden', '-rf', 'a'.repeat(255), '%2e%2e', 'a&b=c+d?#'])
      assert.equal((await upload(name, 'YQ==')).body.path, `${UPLOADS}/${name}`)
    assert.equal((await read('workspace/uploads/a&b=c+d?#')).body, 'a')
  })
  for (const [what, name] of [
    ['missing', undefined],
    ['empty', ''],
  ])
    it(`uploading a file refuses a name that is ${what}`, async () =>
      assertError(await upload(name, 'YQ=='), 400, /^filename: /))
  for (const content of ['data:text/plain;base64,YQ==', 'YQ'])
    it(`uploading a file refuses ${JSON.stringify(content)} as content`, async () =>
      assertError(await upload('refused', content), 400, /^contentBase64: /))
  it('uploading a file refuses a body that is not JSON', async () => {
    for (const body of ['', '{'])
      assertError(await shared.request('POST', `${FILES}/upload`, { body }), 400, 'body: not valid JSON')
    assertError(await shared.post(`${FILES}/upload`, []), 400, /^body: /)
  })
  it('uploading a file is limited to the largest size', async () => {
    const full = await upload('full', Buffer.alloc(MAX_BYTES).toString('base64'))
    assert.equal(full.body.size, MAX_BYTES)
    assertError(await upload('over', Buffer.alloc(MAX_BYTES + 1).toString('base64')), 413, 'File too large')
  })
  it('an upload that is too large is refused while it is sent, and keeps the connection', async () => {
    const sent = request(`${context.url}${FILES}/upload`, {
      method: 'POST',
      headers: { authorization: `Bearer ${shared.key}`, 'content-length': 4 * MAX_BYTES },
    })
    const answered = once(sent, 'response') as Promise<[IncomingMessage]>
    const socket = once(sent, 'socket')
    sent.write(`{"filename":"large","contentBase64":"${'a'.repeat(MAX_BYTES)}`)
    const [response] = await answered
    assert.equal(response.statusCode, 413)
    sent.end('a'.repeat(4 * MAX_BYTES - MAX_BYTES - 37))
    assert.equal((await response.toArray()).join(''), '{"error":"File too large"}')
    assert.equal((await socket)[0].errored, null)
  })
})
