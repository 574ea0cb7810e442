/** The templates that ship with Berth, and the requirements for a template folder. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { cp, mkdir, mkdtemp, rm, symlink, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { checkManifest } from '../../../agentd/manifest-check.ts'
import { freePort } from '../../../test/support/processes.ts'
import { createEmbeddedStorage } from '../../storage/embedded.ts'
import type { AddEntry } from '../../storage/port.ts'
import { bundledTemplates } from './bundled.ts'
import { describeTemplate } from './describe.ts'
import { TEMPLATE_ID } from './template.ts'

const manifest = (more: object = {}) =>
  JSON.stringify({ version: 1, agent: { name: ' Librarian ' }, ...more })
const texts = { manifest: manifest(), readme: '# Librarian\n', hasWorkspace: true }
const described = (more: Partial<typeof texts>) => {
  const found = describeTemplate({ ...texts, ...more })
  return 'errors' in found ? assert.fail(found.errors.join()) : found
}

describe('template folders', () => {
  it('a template folder needs a manifest, a README and a workspace', () => {
    assert.deepEqual(describeTemplate({ manifest: null, readme: null, hasWorkspace: false }), {
      errors: ['manifest.json is missing', 'README.md is missing', 'workspace/ is missing'],
    })
  })
  it('a template folder needs a valid manifest', () => {
    assert.deepEqual(describeTemplate({ ...texts, readme: null, manifest: '{"version":2}' }), {
      errors: ['agent is required', 'version must be 1', 'README.md is missing'],
    })
  })
  it('a template folder gets its name only from its manifest', () => {
    const { name, slug, details } = described({})
    assert.deepEqual([name, slug], ['Librarian', undefined])
    assert.deepEqual(details, {
      description: '',
      longDescription: '# Librarian',
      authorName: '',
      authorUrl: null,
      authorLogoUrl: null,
      category: 'other',
      tags: [],
      requiredSecrets: [],
      includedSkillCids: [],
      defaultVibe: null,
      defaultEmoji: null,
    })
  })
  it('a template folder describes what it needs', () => {
    const cid = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
    const { slug, details } = described({
      manifest: manifest({
        agent: { name: 'a', description: 'Lends books.', vibe: 'quiet', emoji: '📚' },
        secrets: [{ name: 'A' }, { name: 'B', description: 'b', required: false, guideSteps: ['get it'] }],
        skills: [{ name: 'one', cid }, { clawhub_slug: '@owner/two' }],
        template: { slug: 'books', category: 'reference', tags: ['books'], partnerName: 'The library' },
      }),
    })
    assert.equal(slug, 'books')
    const { description, category, tags, authorName, requiredSecrets, includedSkillCids } = details
    assert.deepEqual(
      [description, category, tags, authorName],
      ['Lends books.', 'reference', ['books'], 'The library'],
    )
    assert.deepEqual(requiredSecrets, [
      { name: 'A', description: '', required: true },
      { name: 'B', description: 'b', guideSteps: ['get it'], required: false },
    ])
    assert.deepEqual(includedSkillCids, [cid])
    assert.deepEqual([details.defaultVibe, details.defaultEmoji], ['quiet', '📚'])
  })
  it('a template folder keeps only the beginning of a long README', () => {
    const { longDescription } = described({ readme: 'x'.repeat(20_000) }).details
    assert.equal(longDescription?.length, 10_000)
    assert.ok(longDescription?.endsWith('x…'))
  })
})

describe('templates that ship with Berth', async () => {
  const templates = await bundledTemplates()

  it('the templates that ship with Berth are named by their folders, and have ids', () => {
    assert.deepEqual(
      templates.map(({ slug }) => slug),
      ['assistant', 'page', 'researcher'],
    )
    for (const { id } of templates) assert.match(id, TEMPLATE_ID)
    assert.equal(new Set(templates.map(({ id }) => id)).size, templates.length)
  })
  for (const { slug, files, details, snapshotCid } of templates) {
    it(`the template ${slug} has a manifest for a template of that name, and a description`, () => {
      const text = files.find(({ path }) => path === 'manifest.json')?.text ?? ''
      const checked = checkManifest(text)
      assert.ok('manifest' in checked)
      assert.equal(checked.manifest.template?.slug, slug)
      assert.ok(details.description && details.longDescription && details.tags.length > 0)
      assert.ok(files.some(({ path }) => path === 'workspace/AGENTS.md'))
      // The files of its identity are created from what the owner enters for the agent.
      for (const own of ['IDENTITY', 'USER'])
        assert.ok(!files.some(({ path }) => path === `workspace/${own}.md`))
    })
    it(`the template ${slug} has the same CID as an upload of it`, async () => {
      const dir = await mkdtemp(join(tmpdir(), 'berth-template-'))
      const storage = createEmbeddedStorage({ dir, network: 'private', offline: true })
      await storage.start()
      try {
        const added = await storage.add(entries(files), { signal: AbortSignal.timeout(60_000) })
        assert.equal(`${added.cid}`, snapshotCid)
      } finally {
        await storage.stop()
        await rm(dir, { recursive: true })
      }
    })
  }
})

async function* entries(files: { path: string; text: string }[]): AsyncGenerator<AddEntry> {
  for (const { path, text } of files) {
    async function* content() {
      yield Buffer.from(text)
    }
    yield { path, content: content() }
  }
}

describe('page server', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'berth-page-'))
  await cp(join(import.meta.dirname, 'bundled/page/workspace'), dir, { recursive: true })
  await mkdir(join(dir, 'site/sub'))
  await cp(join(dir, 'site/index.html'), join(dir, 'site/sub/index.html'))
  await writeFile(join(dir, 'site/.hidden'), 'hidden')
  await symlink('../server.mjs', join(dir, 'site/link.txt'))
  const port = await freePort()
  const server = spawn(process.execPath, ['server.mjs'], {
    cwd: dir,
    env: { ...process.env, PORT: `${port}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  after(async () => {
    server.kill()
    await rm(dir, { recursive: true })
  })
  await once(server.stdout, 'data')
  const get = (path: string, init: RequestInit = {}) =>
    fetch(`http://127.0.0.1:${port}${path}`, { redirect: 'manual', ...init })

  it('the page server returns files with their types, and folders by their index', async () => {
    const page = await get('/')
    assert.deepEqual([page.status, page.headers.get('content-type')], [200, 'text/html; charset=utf-8'])
    assert.match(await page.text(), /<head><base href="\/">/)
    const style = await get('/style.css')
    assert.deepEqual([style.status, style.headers.get('content-type')], [200, 'text/css; charset=utf-8'])
    const again = await get('/style.css', {
      headers: { 'if-modified-since': style.headers.get('last-modified') ?? '' },
    })
    assert.equal(again.status, 304)
    assert.equal((await get('/sub/', { method: 'HEAD' })).status, 200)
  })
  it('the page server makes links lead to the same place under a path', async () => {
    const headers = { 'x-forwarded-prefix': '/page' }
    assert.match(await (await get('/sub/', { headers })).text(), /<base href="\/page\/sub\/">/)
    assert.equal((await get('/sub', { headers })).headers.get('location'), '/page/sub/')
    const odd = await get('/', { headers: { 'x-forwarded-prefix': '//evil.example/"' } })
    assert.match(await odd.text(), /<base href="\/">/)
  })
  for (const path of [
    '/nothing',
    '/%2e%2e/server.mjs',
    '/.hidden',
    '/link.txt',
    '//sub',
    '/%00',
    '/%zz',
    '/..%5cserver.mjs',
  ])
    it(`the page server has nothing at ${path}`, async () => {
      assert.equal((await get(path)).status, 404)
    })
  it('the page server accepts only GET and HEAD', async () => {
    const refused = await get('/', { method: 'POST', body: 'x' })
    assert.deepEqual([refused.status, refused.headers.get('allow')], [405, 'GET, HEAD'])
  })
})
