/** Listing, changing and archiving templates (contract 7.1). */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'
import { files, manifest, NO_TEMPLATE, SHIPPED, slugs, TEMPLATES, templateMaker } from './templates.ts'

const context = await openContext()
const { isPinned, workspace, sql } = context
const { workspace: own, agent, snapshot, make } = await templateMaker(context)
const { api } = own

describe('the list of templates', async () => {
  const mine = await templateMaker(context)
  await mine.snapshot()
  for (const [slug, category] of [
    ['zebra', 'animals'],
    ['ant', 'animals'],
    ['web-2', 'web'],
  ])
    await mine.make({ slug, category })
  const list = (query: Record<string, string> = {}) => mine.workspace.api.get(TEMPLATES, query)

  it('the list of templates has the shipped ones first, then the workspace’s own', async () => {
    const reply = await list()
    assert.deepEqual(slugs(reply), [...SHIPPED, 'ant', 'web-2', 'zebra'])
    assert.deepEqual(reply.body.categories, ['animals', 'productivity', 'research', 'web'])
  })
  it('the list of templates has none of other workspaces', async () => {
    const reply = await (await workspace()).api.get(TEMPLATES)
    assert.deepEqual(slugs(reply), SHIPPED)
    assert.ok(!reply.body.categories.includes('animals'))
  })
  it('the list of templates can be filtered', async () => {
    assert.deepEqual(slugs(await list({ category: 'web' })), ['page', 'web-2'])
    assert.deepEqual(slugs(await list({ category: 'nothing' })), [])
    assert.deepEqual(slugs(await list({ featured: 'true' })), SHIPPED)
    assert.deepEqual(slugs(await list({ featured: 'false' })), ['ant', 'web-2', 'zebra'])
    assert.deepEqual(slugs(await list({ submittedBy: 'me' })), ['ant', 'web-2', 'zebra'])
    assert.deepEqual(slugs(await list({ submittedBy: 'me', category: 'web' })), ['web-2'])
  })
  it('the list of templates comes in pages', async () => {
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
})

describe('changing a template', () => {
  it('changing a template applies only the given fields', async () => {
    await snapshot()
    const before = await make({ tags: ['a'] })
    const path = `${TEMPLATES}/${before.templateId}`
    const slug = `n-${randomUUID()}`
    const reply = await api.put(path, { name: 'New', slugOverride: slug, category: 'new' })
    assert.equal(reply.status, 200)
    const { updatedAt } = reply.body.template
    assert.deepEqual(reply.body, {
      success: true,
      template: { ...before, name: 'New', slug, category: 'new', updatedAt },
    })
    assertError(await api.get(`${TEMPLATES}/${before.slug}`), 404, NO_TEMPLATE)
    assert.equal((await api.put(path, {})).status, 200)
  })
  it('a changed template gets the new snapshot, and releases the previous one', async () => {
    const first = await snapshot()
    const before = await make({ category: 'kept' })
    // The worker checks only once who needs the content, possibly right after the template changes.
    await sql('DELETE FROM snapshot WHERE cid = $1', [first.cid])
    const agentText = { name: 'Other', vibe: 'loud' }
    const second = await snapshot(files(manifest({ agent: agentText }), 'second'))
    const { body } = await api.put(`${TEMPLATES}/${before.templateId}`, { agentId: agent.agentId })
    const { name, category, version, defaultVibe, snapshotCid, longDescription } = body.template
    assert.deepEqual([name, category, version, defaultVibe], ['Librarian', 'kept', 2, 'loud'])
    assert.equal(snapshotCid, second.cid)
    assert.match(longDescription, /second$/)
    await sql('DELETE FROM snapshot WHERE cid = $1', [second.cid])
    await released(first.cid)
    assert.ok(await isPinned(CID.parse(second.cid), 'private'))
  })
  it('changing a template returns 400 for an invalid value, and 409 for a slug in use', async () => {
    const { cid } = await snapshot()
    const { slug } = await make()
    const path = `${TEMPLATES}/${(await make()).templateId}`
    assertError(await api.put(path, { snapshotCid: cid }), 400, 'agentId: must be given with snapshotCid')
    assertError(await api.put(path, { gitUrl: 'file:///etc' }), 400, /^gitUrl: /)
    assertError(await api.put(path, { slug: '' }), 400, /^slug: /)
    assertError(await api.put(path, { slug }), 409, 'slug: is taken')
    assertError(await api.put(path, { slug: 'assistant' }), 409, 'slug: is taken')
    await snapshot({ 'a.txt': 'a' })
    assertError(await api.put(path, { agentId: agent.agentId }), 400, /^Validation failed: /)
  })
})

describe('archiving a template', () => {
  it('archiving a template hides it, frees its slug, and releases its content', async () => {
    const { cid } = await snapshot()
    const { templateId, slug, name } = await make()
    await sql('DELETE FROM snapshot WHERE cid = $1', [cid])
    const reply = await api.delete(`${TEMPLATES}/${templateId}`)
    assert.deepEqual(
      [reply.status, reply.body],
      [200, { success: true, message: `Template ${name} archived` }],
    )
    for (const path of [`/${slug}`, `/id/${templateId}`])
      assertError(await api.get(`${TEMPLATES}${path}`), 404, NO_TEMPLATE)
    assertError(await api.put(`${TEMPLATES}/${templateId}`, {}), 404, NO_TEMPLATE)
    assertError(await api.delete(`${TEMPLATES}/${templateId}`), 404, NO_TEMPLATE)
    await released(cid)
    await snapshot()
    assert.equal((await make({ slug })).slug, slug)
  })
  it('an archived template keeps its content while an agent needs it', async () => {
    const { cid } = await snapshot()
    const { templateId } = await make()
    const user = await insertAgent(context, own)
    await sql('UPDATE agent SET template_id = $1 WHERE id = $2', [templateId, user.id])
    await sql('DELETE FROM snapshot WHERE cid = $1', [cid])
    assert.equal((await api.delete(`${TEMPLATES}/${templateId}`)).status, 200)
    const kept = await sql('SELECT FROM template WHERE id = $1 AND archived_at IS NOT NULL', [templateId])
    assert.equal(kept.length, 1)
    assert.ok(await isPinned(CID.parse(cid), 'private'))
    assert.equal((await api.delete(user.path, { prefer: 'wait=120' })).status, 200)
    await released(cid)
  })
})

/** Waits until the node has released a CID. */
const released = (cid: string): Promise<boolean> =>
  until(`${cid} is released`, async () => !(await isPinned(CID.parse(cid), 'private')), 120_000)
