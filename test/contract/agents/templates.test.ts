/** Templates: listed, read, made of snapshots, changed and archived (contract 4.3, 7.1; compatibility 2.2, 2.14). */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError, type Client, type Reply } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { missingCid, openContext, type Workspace } from '../context.ts'
import { isPinnedOn } from '../upload-form.ts'
import { insertAgent, insertSnapshot, type RowAgent } from './rows.ts'

const TEMPLATES = '/v0/templates'
const NONE = 'There is no such template'
const MISSING = 'tzzzzzzz'
const SHIPPED = ['assistant', 'page', 'researcher']

const context = await openContext()
const { anonymous, env, workspace, sql } = context
const own = await workspace()
const other = await workspace()
const agent = await insertAgent(context, own)

const manifest = (more: object = {}) => JSON.stringify({ version: 1, agent: { name: 'Librarian' }, ...more })
/** Files of a template; each of its own, unless `mark` is given. */
const files = (manifestText = manifest(), mark: string = randomUUID()) => ({
  'manifest.json': manifestText,
  'README.md': `# Librarian\n\n${mark}\n`,
  'workspace/AGENTS.md': '# Books\n',
})
const snapshotOf = (tree: Record<string, string>, of: RowAgent = agent, workspace: Workspace = own) =>
  insertSnapshot(context, workspace, of, tree)
const body = (more: object = {}) => ({
  agentId: agent.agentId,
  slug: `s-${randomUUID()}`,
  description: 'Lends books.',
  ...more,
})
const made = async (client: Client, more: object = {}): Promise<Reply['body']> => {
  const reply = await client.post(TEMPLATES, body(more))
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  assert.equal(reply.body.success, true)
  return reply.body.template
}
const slugs = ({ body }: Reply) => body.templates.map((template: { slug: string }) => template.slug)

describe('templates that ship with Berth', () => {
  it('are listed for every workspace, and without a key', async () => {
    for (const reply of [await other.api.get(TEMPLATES), await anonymous.get('/v0/public-templates')]) {
      assert.equal(reply.status, 200)
      assert.deepEqual(slugs(reply), SHIPPED)
      assert.deepEqual(reply.body.categories, ['productivity', 'research', 'web'])
      for (const template of reply.body.templates) {
        assert.match(template.templateId, /^t[a-z0-9]{7}$/)
        assert.match(template.snapshotCid, /^bafy/)
        assert.deepEqual([template.featured, template.isFree, template.status], [true, true, 'published'])
        assert.deepEqual([template.submittedBy, template.price], [null, null])
      }
    }
  })
  it('are read by slug and by id', async () => {
    const bySlug = await own.api.get(`${TEMPLATES}/page`)
    assert.equal(bySlug.status, 200)
    const byId = await own.api.get(`${TEMPLATES}/id/${bySlug.body.template.templateId}`)
    assert.deepEqual(byId.body, bySlug.body)
  })
  it('are changed by nobody: 403', async () => {
    const { templateId } = (await own.api.get(`${TEMPLATES}/page`)).body.template
    const message = 'The templates that ship with Berth cannot be changed'
    assertError(await own.api.put(`${TEMPLATES}/${templateId}`, { name: 'Mine' }), 403, message)
    assertError(await own.api.delete(`${TEMPLATES}/${templateId}`), 403, message)
  })
  it('keep their slugs: 409', async () => {
    await snapshotOf(files())
    assertError(await own.api.post(TEMPLATES, body({ slug: 'page' })), 409, 'slug: is taken')
  })
})

describe('a template of a snapshot', () => {
  it('is what its manifest says, but for what the body says', async () => {
    const cid = (await missingCid()).toString()
    const { cid: snapshotCid, commitSha } = await snapshotOf(
      files(
        manifest({
          agent: { name: 'Librarian', description: 'Of the manifest.', vibe: 'quiet', emoji: '📚' },
          secrets: [{ name: 'KEY', description: 'Opens it.', required: false }],
          skills: [{ name: 'books', cid }],
          template: { slug: 'by-manifest', category: 'reference', tags: ['a'], authorName: 'Ada' },
        }),
        'read me',
      ),
    )
    const reply = await own.api.post(TEMPLATES, { agentId: agent.agentId, tags: ['b', 'c'] })
    assert.equal(reply.status, 201)
    const { templateId, createdAt, updatedAt, submittedBy, ...template } = reply.body.template
    assert.match(templateId, /^t[a-z0-9]{7}$/)
    assert.match(createdAt, /^\d{4}-.*\.\d{3}Z$/)
    assert.equal(updatedAt, createdAt)
    assert.ok(submittedBy)
    assert.deepEqual(template, {
      name: 'Librarian',
      slug: 'by-manifest',
      description: 'Of the manifest.',
      longDescription: '# Librarian\n\nread me',
      authorName: 'Ada',
      authorUrl: null,
      authorLogoUrl: null,
      partnerName: 'Ada',
      partnerUrl: null,
      partnerLogoUrl: null,
      category: 'reference',
      tags: ['b', 'c'],
      openclawVersion: '2026.9.6',
      requiredSecrets: [{ name: 'KEY', description: 'Opens it.', required: false }],
      includedSkillCids: [cid],
      defaultVibe: 'quiet',
      defaultEmoji: '📚',
      version: 1,
      snapshotCid,
      featured: false,
      sortOrder: 1,
      status: 'published',
      archived: false,
      price: null,
      priceAsset: '',
      priceNetwork: '',
      payToAddress: null,
      isFree: true,
      gitUrl: null,
      gitCommitSha: commitSha,
    })
    assert.deepEqual((await own.api.get(`${TEMPLATES}/by-manifest`)).body.template, reply.body.template)
    assert.deepEqual((await own.api.get(`${TEMPLATES}/id/${templateId}`)).body.template, reply.body.template)
  })
  it('has a slug of its name where nobody gives one', async () => {
    await snapshotOf(files())
    assert.equal(
      (await made(own.api, { slug: undefined, nameOverride: 'Éva’s  Books!' })).slug,
      'eva-s-books',
    )
    const nameless = body({ slug: undefined, name: '図書' })
    assertError(await own.api.post(TEMPLATES, nameless), 400, /^slug: must be given/)
  })
  it('is of the newest snapshot, or of one of the history', async () => {
    const older = await snapshotOf(files())
    const newest = await snapshotOf(files())
    assert.equal((await made(own.api)).snapshotCid, newest.cid)
    assert.equal((await made(own.api, { snapshotCid: older.cid })).snapshotCid, older.cid)
  })
  it('is 404 for a snapshot that is not in the history of the agent', async () => {
    const stranger = await insertAgent(context, own)
    const missing = 'Snapshot not found'
    assertError(await own.api.post(TEMPLATES, body({ agentId: stranger.agentId })), 404, missing)
    const elsewhere = await snapshotOf(files(), stranger)
    for (const snapshotCid of [elsewhere.cid, `${await missingCid()}`])
      assertError(await own.api.post(TEMPLATES, body({ snapshotCid })), 404, missing)
  })
  it('is 404 for no agent, and 401 for that of another workspace', async () => {
    const noAgent = 'There is no such agent'
    assertError(await own.api.post(TEMPLATES, body({ agentId: 'xzzzzzzz' })), 404, noAgent)
    assertError(await other.api.post(TEMPLATES, body()), 401, /^Invalid, expired or revoked/)
    assertError(await other.api.post(`${TEMPLATES}/validate`, body()), 401, /^Invalid, expired/)
  })
  const malformed: [object | null, string | RegExp][] = [
    [null, /^body: /],
    [{}, /^agentId: /],
    [{ gitUrl: 'https://github.com/a/b' }, /^gitUrl: templates are made of a snapshot/],
    [body({ snapshotCid: 'nonsense' }), /^snapshotCid: not a CID/],
    [body({ slug: 'Not A Slug' }), 'slug: must have lower-case letters, digits and single hyphens only'],
    [body({ slugOverride: '-x' }), /^slugOverride: must have/],
    [body({ slug: 'x'.repeat(101) }), 'slug: must have at most 100 characters'],
    [body({ name: ' ' }), 'name: must not be empty'],
    [body({ name: 'x'.repeat(101) }), /^name: must have at most/],
    [body({ description: '' }), 'description: must not be empty'],
    [body({ description: 'x'.repeat(10_001) }), /^description: must have at most/],
    [body({ category: 'x'.repeat(101) }), /^category: /],
    [body({ tags: Array(11).fill('x') }), 'tags: must have at most 10 items'],
    [body({ tags: [''] }), 'tags[0]: must not be empty'],
    [body({ authorUrl: 'javascript:alert(1)' }), 'authorUrl: must be an http or https address'],
  ]
  for (const [input, message] of malformed)
    it(`is 400 for ${JSON.stringify(input).slice(0, 60)}`, async () => {
      assertError(await own.api.post(TEMPLATES, input), 400, message)
    })
  it('is 400 without a description', async () => {
    await snapshotOf(files())
    const reply = await own.api.post(TEMPLATES, body({ description: undefined }))
    assertError(reply, 400, 'description: must be given, since the manifest has none')
  })
  it('is 400 for files that are none of a template, with every fault', async () => {
    await snapshotOf({ 'manifest.json': manifest({ routes: [{ port: 80, path: '/' }] }), 'notes.txt': 'x' })
    const reply = await own.api.post(TEMPLATES, body())
    assertError(reply, 400, /^Validation failed: routes\[0\]\.port out of range/)
    assert.equal(reply.headers.get('error-code'), 'invalid_template')
    assert.match(
      reply.headers.get('error-detail') ?? '',
      /port out of range.*; README\.md is missing; workspace\/ is missing$/,
    )
    await snapshotOf({ 'a.txt': 'x' })
    assertError(await own.api.post(TEMPLATES, body()), 400, 'Validation failed: manifest.json is missing')
  })
  it('has a slug that is taken within its workspace only: 409', async () => {
    await snapshotOf(files())
    const { slug } = await made(own.api)
    assertError(await own.api.post(TEMPLATES, body({ slug })), 409, 'slug: is taken')
    const theirs = await insertAgent(context, other)
    await snapshotOf(files(), theirs, other)
    assert.equal((await made(other.api, { agentId: theirs.agentId, slug })).slug, slug)
  })
  it('is made once where two ask for one slug at once', async () => {
    await snapshotOf(files())
    const slug = `race-${randomUUID()}`
    const replies = await Promise.all(
      Array.from({ length: 5 }, () => own.api.post(TEMPLATES, body({ slug }))),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409, 409, 409, 409])
  })
})

describe('checking a snapshot', () => {
  const validate = (more: object = {}) =>
    own.api.post(`${TEMPLATES}/validate`, { agentId: agent.agentId, ...more })

  it('says what is in it', async () => {
    const { commitSha } = await snapshotOf(files(manifest(), 'mark'))
    assert.deepEqual((await validate()).body, {
      valid: true,
      errors: [],
      manifest: JSON.parse(manifest()),
      readme: '# Librarian\n\nmark\n',
      files: ['README.md', 'manifest.json', 'workspace/AGENTS.md'],
      commitSha,
    })
  })
  it('says what is wrong with it', async () => {
    const { cid } = await snapshotOf({ 'manifest.json': '{', 'workspace/a': 'a' })
    const { status, body } = await validate({ snapshotCid: cid })
    assert.deepEqual([status, body.valid, body.manifest, body.readme], [200, false, null, null])
    assert.match(body.errors[0], /^manifest\.json is not valid JSON/)
    assert.equal(body.errors[1], 'README.md is missing')
  })
  it('is 400 for a git URL and 404 for another history', async () => {
    assertError(await validate({ gitUrl: 'https://gitlab.com/a/b' }), 400, /^gitUrl: /)
    assertError(await validate({ snapshotCid: `${await missingCid()}` }), 404, 'Snapshot not found')
  })
})

describe('a list of templates', async () => {
  const mine = await workspace()
  const maker = await insertAgent(context, mine)
  await snapshotOf(files(), maker, mine)
  for (const [slug, category] of [
    ['zebra', 'animals'],
    ['ant', 'animals'],
    ['web-2', 'web'],
  ])
    await made(mine.api, { agentId: maker.agentId, slug, category })
  const list = (query: Record<string, string> = {}) => mine.api.get(TEMPLATES, query)

  it('has what ships first, then the workspace’s own', async () => {
    const reply = await list()
    assert.deepEqual(slugs(reply), [...SHIPPED, 'ant', 'web-2', 'zebra'])
    assert.deepEqual(reply.body.categories, ['animals', 'productivity', 'research', 'web'])
  })
  it('has none of another workspace', async () => {
    const reply = await (await workspace()).api.get(TEMPLATES)
    assert.deepEqual(slugs(reply), SHIPPED)
    assert.ok(!reply.body.categories.includes('animals'))
  })
  it('can be narrowed', async () => {
    assert.deepEqual(slugs(await list({ category: 'web' })), ['page', 'web-2'])
    assert.deepEqual(slugs(await list({ category: 'nothing' })), [])
    assert.deepEqual(slugs(await list({ featured: 'true' })), SHIPPED)
    assert.deepEqual(slugs(await list({ featured: 'false' })), ['ant', 'web-2', 'zebra'])
    assert.deepEqual(slugs(await list({ submittedBy: 'me' })), ['ant', 'web-2', 'zebra'])
    assert.deepEqual(slugs(await list({ submittedBy: 'me', category: 'web' })), ['web-2'])
  })
  it('comes in pages', async () => {
    for (const limit of ['1', '2', '3', '4']) {
      const found: string[] = []
      for (let pageToken = ''; ; ) {
        const reply = await list({ limit, ...(pageToken && { pageToken }) })
        found.push(...slugs(reply))
        pageToken = reply.headers.get('next-page-token') ?? ''
        if (!pageToken) break
      }
      assert.deepEqual(found, [...SHIPPED, 'ant', 'web-2', 'zebra'], limit)
    }
  })
  it('is 400 for what it does not know', async () => {
    assertError(await list({ submittedBy: 'you' }), 400, 'submittedBy: must be me')
    assertError(await list({ featured: 'yes' }), 400, 'featured: must be true or false')
    assertError(await list({ limit: '0' }), 400, /^limit: /)
    assertError(await list({ pageToken: 'AAAA' }), 400, 'pageToken: not a token of this API')
  })
})

describe('changing a template', () => {
  it('changes what the body has', async () => {
    await snapshotOf(files())
    const before = await made(own.api, { tags: ['a'] })
    const path = `${TEMPLATES}/${before.templateId}`
    const slug = `n-${randomUUID()}`
    const reply = await own.api.put(path, { name: 'New', slugOverride: slug, category: 'new' })
    assert.equal(reply.status, 200)
    const { updatedAt } = reply.body.template
    assert.deepEqual(reply.body, {
      success: true,
      template: { ...before, name: 'New', slug, category: 'new', updatedAt },
    })
    assertError(await own.api.get(`${TEMPLATES}/${before.slug}`), 404, NONE)
    assert.equal((await own.api.put(path, {})).status, 200)
  })
  it('gives it another snapshot, and releases the one before', async () => {
    const first = await snapshotOf(files())
    const before = await made(own.api, { category: 'kept' })
    const agentText = { name: 'Other', vibe: 'loud' }
    const second = await snapshotOf(files(manifest({ agent: agentText }), 'second'))
    const { body } = await own.api.put(`${TEMPLATES}/${before.templateId}`, { agentId: agent.agentId })
    const { name, category, version, defaultVibe, snapshotCid, longDescription } = body.template
    assert.deepEqual([name, category, version, defaultVibe], ['Librarian', 'kept', 2, 'loud'])
    assert.equal(snapshotCid, second.cid)
    assert.match(longDescription, /second$/)
    await sql('DELETE FROM snapshot WHERE cid = ANY($1)', [[first.cid, second.cid]])
    await released(first.cid)
    assert.ok(await isPinnedOn(env, 'private', CID.parse(second.cid)))
  })
  it('is 404 for none, and for one of another workspace', async () => {
    await snapshotOf(files())
    const { templateId } = await made(own.api)
    assertError(await own.api.put(`${TEMPLATES}/${MISSING}`, {}), 404, NONE)
    assertError(await own.api.put(`${TEMPLATES}/x`, {}), 404, NONE)
    assertError(await other.api.put(`${TEMPLATES}/${templateId}`, { name: 'Theirs' }), 404, NONE)
  })
  it('is 400 for what cannot be, and 409 for a slug that is taken', async () => {
    const { cid } = await snapshotOf(files())
    const { slug } = await made(own.api)
    const path = `${TEMPLATES}/${(await made(own.api)).templateId}`
    assertError(await own.api.put(path, { snapshotCid: cid }), 400, 'agentId: must be given with snapshotCid')
    assertError(await own.api.put(path, { gitUrl: 'https://github.com/a/b' }), 400, /^gitUrl: /)
    assertError(await own.api.put(path, { slug: '' }), 400, /^slug: /)
    assertError(await own.api.put(path, { slug }), 409, 'slug: is taken')
    assertError(await own.api.put(path, { slug: 'assistant' }), 409, 'slug: is taken')
    await snapshotOf({ 'a.txt': 'a' })
    assertError(await own.api.put(path, { agentId: agent.agentId }), 400, /^Validation failed: /)
  })
})

describe('archiving a template', () => {
  it('hides it, frees its slug, and releases its content', async () => {
    const { cid } = await snapshotOf(files())
    const { templateId, slug, name } = await made(own.api)
    await sql('DELETE FROM snapshot WHERE cid = $1', [cid])
    const reply = await own.api.delete(`${TEMPLATES}/${templateId}`)
    assert.deepEqual(
      [reply.status, reply.body],
      [200, { success: true, message: `Template ${name} archived` }],
    )
    for (const path of [`/${slug}`, `/id/${templateId}`])
      assertError(await own.api.get(`${TEMPLATES}${path}`), 404, NONE)
    assertError(await own.api.put(`${TEMPLATES}/${templateId}`, {}), 404, NONE)
    assertError(await own.api.delete(`${TEMPLATES}/${templateId}`), 404, NONE)
    await released(cid)
    await snapshotOf(files())
    assert.equal((await made(own.api, { slug })).slug, slug)
  })
  it('keeps its content while an agent needs it', async () => {
    const { cid } = await snapshotOf(files())
    const { templateId } = await made(own.api)
    const user = await insertAgent(context, own)
    await sql('UPDATE agent SET template_id = $1 WHERE id = $2', [templateId, user.id])
    await sql('DELETE FROM snapshot WHERE cid = $1', [cid])
    assert.equal((await own.api.delete(`${TEMPLATES}/${templateId}`)).status, 200)
    const kept = await sql('SELECT FROM template WHERE id = $1 AND archived_at IS NOT NULL', [templateId])
    assert.equal(kept.length, 1)
    assert.ok(await isPinnedOn(env, 'private', CID.parse(cid)))
    await sql('UPDATE agent SET deleted_at = now() WHERE id = $1', [user.id])
    await snapshotOf(files())
    await own.api.delete(`${TEMPLATES}/${(await made(own.api)).templateId}`)
    await released(cid)
  })
  it('is 404 for none, and for one of another workspace', async () => {
    await snapshotOf(files())
    const { templateId } = await made(own.api)
    assertError(await own.api.delete(`${TEMPLATES}/${MISSING}`), 404, NONE)
    assertError(await other.api.delete(`${TEMPLATES}/${templateId}`), 404, NONE)
    assertError(await other.api.get(`${TEMPLATES}/id/${templateId}`), 404, NONE)
    assert.equal((await own.api.get(`${TEMPLATES}/id/${templateId}`)).status, 200)
  })
})

describe('keys', () => {
  it('read with org:agents:read, and change with org:agents:write', async () => {
    const reader = await own.keyed('org:agents:read')
    assert.equal((await reader.get(TEMPLATES)).status, 200)
    assertError(await reader.post(TEMPLATES, body()), 403, 'Missing scope: org:agents:write')
    assertError(await reader.delete(`${TEMPLATES}/${MISSING}`), 403, 'Missing scope: org:agents:write')
    const files = await own.keyed('org:files:write')
    assertError(await files.get(TEMPLATES), 403, 'Missing scope: org:agents:read')
  })
  it('of an agent are for that agent only', async () => {
    assertError(await agent.gateway.get(TEMPLATES), 403, /^An agent's token/)
  })
})

/** Waits until the node has released a CID. */
const released = (cid: string): Promise<boolean> =>
  until(`${cid} is released`, async () => !(await isPinnedOn(env, 'private', CID.parse(cid))), 20_000)
