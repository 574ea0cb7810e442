/** Creating templates from snapshots, and templates that ship with Berth (contract 4.3, 7.1). */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError, soon } from '../../support/client.ts'
import { missingCid, openContext } from '../context.ts'
import { insertAgent, insertSnapshot } from './rows.ts'
import { files, manifest, SHIPPED, slugs, TEMPLATES, templateMaker } from './templates.ts'

const context = await openContext()
const { anonymous } = context
const { workspace: own, agent, snapshot, body, make } = await templateMaker(context)
const theirs = await templateMaker(context)
const { api } = own
const other = theirs.workspace

describe('templates that ship with Berth', () => {
  it('templates that ship with Berth are listed in every workspace, and without a key', async () => {
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
  it('templates that ship with Berth are read by slug and by id', async () => {
    const bySlug = await api.get(`${TEMPLATES}/page`)
    assert.equal(bySlug.status, 200)
    const byId = await api.get(`${TEMPLATES}/id/${bySlug.body.template.templateId}`)
    assert.deepEqual(byId.body, bySlug.body)
  })
  it('templates that ship with Berth cannot be changed: 403', async () => {
    const { templateId } = (await api.get(`${TEMPLATES}/page`)).body.template
    const message = 'The templates that ship with Berth cannot be changed'
    assertError(await api.put(`${TEMPLATES}/${templateId}`, { name: 'Mine' }), 403, message)
    assertError(await api.delete(`${TEMPLATES}/${templateId}`), 403, message)
  })
  it('the slugs of templates that ship with Berth are reserved: 409', async () => {
    await snapshot()
    assertError(await api.post(TEMPLATES, body({ slug: 'page' })), 409, 'slug: is taken')
  })
})

describe('templates from a snapshot', () => {
  it('a template from a snapshot has the fields of its manifest, unless the body sets them', async () => {
    const cid = (await missingCid()).toString()
    const { cid: snapshotCid, commitSha } = await snapshot(
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
    const reply = await api.post(TEMPLATES, { agentId: agent.agentId, tags: ['b', 'c'] })
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
    assert.deepEqual((await api.get(`${TEMPLATES}/by-manifest`)).body.template, reply.body.template)
    assert.deepEqual((await api.get(`${TEMPLATES}/id/${templateId}`)).body.template, reply.body.template)
  })
  it('a template from a snapshot gets a slug from its name by default', async () => {
    await snapshot()
    assert.equal((await make({ slug: undefined, nameOverride: 'Éva’s  Books!' })).slug, 'eva-s-books')
    const nameless = body({ slug: undefined, name: '図書' })
    assertError(await api.post(TEMPLATES, nameless), 400, /^slug: must be given/)
  })
  it('a template from a snapshot uses the newest one, or any from the history', async () => {
    const older = await snapshot()
    const newest = await snapshot()
    assert.equal((await make()).snapshotCid, newest.cid)
    assert.equal((await make({ snapshotCid: older.cid })).snapshotCid, older.cid)
  })
  it("a template returns 404 for a snapshot outside the agent's history", async () => {
    const stranger = await insertAgent(context, own)
    const missing = 'Snapshot not found'
    assertError(await api.post(TEMPLATES, body({ agentId: stranger.agentId })), 404, missing)
    const elsewhere = await insertSnapshot(context, own, stranger, files())
    for (const snapshotCid of [elsewhere.cid, `${await missingCid()}`])
      assertError(await api.post(TEMPLATES, body({ snapshotCid })), 404, missing)
  })
  it("a template returns 404 for an unknown agent, and 401 for another workspace's", async () => {
    const noAgent = 'There is no such agent'
    assertError(await api.post(TEMPLATES, body({ agentId: 'xzzzzzzz' })), 404, noAgent)
    assertError(await other.api.post(TEMPLATES, body()), 401, /^Invalid, expired or revoked/)
    assertError(await other.api.post(`${TEMPLATES}/validate`, body()), 401, /^Invalid, expired/)
  })
  it('a template from a snapshot returns 400 without a description', async () => {
    await snapshot()
    const reply = await api.post(TEMPLATES, body({ description: undefined }))
    assertError(reply, 400, 'description: must be given, since the manifest has none')
  })
  it('a template from invalid files returns 400 with every error', async () => {
    await snapshot({ 'manifest.json': manifest({ routes: [{ port: 80, path: '/' }] }), 'notes.txt': 'x' })
    const reply = await api.post(TEMPLATES, body())
    assertError(reply, 400, /^Validation failed: routes\[0\]\.port out of range/)
    assert.equal(reply.headers.get('error-code'), 'invalid_template')
    assert.match(
      reply.headers.get('error-detail') ?? '',
      /port out of range.*; README\.md is missing; workspace\/ is missing$/,
    )
    await snapshot({ 'a.txt': 'x' })
    assertError(await api.post(TEMPLATES, body()), 400, 'Validation failed: manifest.json is missing')
  })
  it('a slug in use returns 409 within its workspace only', async () => {
    await snapshot()
    const { slug } = await make()
    assertError(await api.post(TEMPLATES, body({ slug })), 409, 'slug: is taken')
    await theirs.snapshot()
    assert.equal((await theirs.make({ slug })).slug, slug)
  })
  it('concurrent templates with one slug: one is created', async () => {
    await snapshot()
    const slug = `race-${randomUUID()}`
    const replies = await Promise.all(
      Array.from({ length: 5 }, () =>
        // Repeated if the other requests delayed it for seconds.
        soon(
          () => api.post(TEMPLATES, body({ slug })),
          ({ status }) => status !== 503,
        ),
      ),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 409, 409, 409, 409])
  })
})

describe('checking a snapshot', () => {
  const validate = (more: object = {}) =>
    api.post(`${TEMPLATES}/validate`, { agentId: agent.agentId, ...more })

  it('checking a snapshot returns its manifest, README and files', async () => {
    const { commitSha } = await snapshot(files(manifest(), 'mark'))
    assert.deepEqual((await validate()).body, {
      valid: true,
      errors: [],
      manifest: JSON.parse(manifest()),
      readme: '# Librarian\n\nmark\n',
      files: ['README.md', 'manifest.json', 'workspace/AGENTS.md'],
      commitSha,
    })
  })
  it('checking a snapshot lists its errors', async () => {
    const { cid } = await snapshot({ 'manifest.json': '{', 'workspace/a': 'a' })
    const { status, body } = await validate({ snapshotCid: cid })
    assert.deepEqual([status, body.valid, body.manifest, body.readme], [200, false, null, null])
    assert.match(body.errors[0], /^manifest\.json is not valid JSON/)
    assert.equal(body.errors[1], 'README.md is missing')
  })
  it("checking a snapshot outside the agent's history returns 404", async () => {
    assertError(await validate({ snapshotCid: `${await missingCid()}` }), 404, 'Snapshot not found')
  })
})
