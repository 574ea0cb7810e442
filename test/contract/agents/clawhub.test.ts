/** The skill hub: skills that ship with Berth (contract 4.3 and 7.1). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'

const HUB = '/v0/clawhub'
const SLUGS = ['@berth/handover', '@berth/journal', '@berth/platform', '@berth/web-page']

const context = await openContext()
const own = await context.workspace()
const { api } = own

const at = (slug: string) => `${HUB}/${encodeURIComponent(slug)}`
const install = (slug: string, client = api) => client.post(`${at(slug)}/install`, {})
const slugs = async (query: Record<string, string> = {}): Promise<string[]> =>
  (await api.get(HUB, query)).body.skills.map(({ slug }: { slug: string }) => slug)

describe('the hub list', () => {
  it('the hub list has the skills that ship with Berth', async () => {
    const { status, body } = await api.get(HUB, { sort: 'name' })
    assert.equal(status, 200)
    assert.deepEqual(
      body.skills.map(({ slug }: { slug: string }) => slug),
      SLUGS,
    )
    assert.equal(body.nextCursor, null)
    const { installCount, createdAt, updatedAt, skillCid, ...journal } = body.skills[1]
    assert.ok(installCount >= 0)
    assert.ok(Date.parse(createdAt) > 0 && Date.parse(updatedAt) > 0)
    assert.equal(CID.parse(skillCid).version, 1)
    assert.deepEqual(journal, {
      hubSkillId: Buffer.from('@berth/journal').toString('base64url'),
      name: 'journal',
      slug: '@berth/journal',
      description: journal.description,
      longDescription: journal.longDescription,
      authorName: 'Berth',
      authorUrl: null,
      authorLogoUrl: null,
      category: 'productivity',
      tags: ['memory', 'notes', 'snapshots'],
      envVars: [],
      readmeUrl: null,
      featured: true,
      version: '1.0.0',
    })
  })
  it('the hub list can be searched and filtered', async () => {
    assert.deepEqual(await slugs({ q: 'Web PAGE' }), ['@berth/web-page'])
    assert.deepEqual(await slugs({ q: 'nothing like this' }), [])
    assert.deepEqual((await slugs({ category: 'productivity' })).sort(), [
      '@berth/handover',
      '@berth/journal',
    ])
    assert.deepEqual(await slugs({ category: 'none' }), [])
    assert.deepEqual(await slugs({ featured: 'false' }), ['@berth/handover'])
    assert.deepEqual((await slugs({ featured: 'true' })).length, 3)
    assert.deepEqual((await slugs({ sort: 'newest' })).sort(), SLUGS)
  })
})

/** Requests a slug with its slash unencoded, as the Go CLI does: paths of the document have none there. */
async function asItIs(client: Pick<typeof api, 'url' | 'key'>, method: string, path: string): Promise<any> {
  const headers = { authorization: `Bearer ${client.key}` }
  return (await fetch(`${client.url}${HUB}/${path}`, { method, headers })).json()
}

describe('hub skills', () => {
  it('a hub skill is found by its slug, encoded or not, or by its id', async () => {
    const { skill } = (await api.get(at('@berth/journal'))).body
    assert.equal(skill.slug, '@berth/journal')
    assert.deepEqual((await asItIs(api, 'GET', '@berth/journal')).skill, skill)
    assert.deepEqual((await api.get(`${HUB}/${skill.hubSkillId}`)).body.skill, skill)
  })
  it('a hub skill returns 404 if it does not exist', async () => {
    for (const slug of ['@berth/nothing', '@nobody/journal', 'journal', '@', '@a', 'x y', 'bm90aGluZw'])
      assertError(await api.get(at(slug)), 404, 'There is no such skill in the hub')
    assertError(await install('@berth/nothing'), 404, 'There is no such skill in the hub')
  })
})

describe('installing a hub skill', () => {
  it('installing a hub skill puts it on public IPFS and into the library, once', async () => {
    const { api } = await context.workspace()
    const hub = (await api.get(at('@berth/journal'))).body.skill
    const { status, body } = await install('@berth/journal', api)
    assert.equal(status, 200)
    const { skillId, createdAt, updatedAt, userId, ...skill } = body.skill
    assert.deepEqual(
      [body.success, skill],
      [
        true,
        {
          skillCid: hub.skillCid,
          name: '@berth/journal',
          description: hub.description,
          version: '1.0.0',
          slug: '@berth/journal',
          network: 'public',
          envVars: [],
          fileId: null,
        },
      ],
    )
    assert.equal(await context.isPinned(CID.parse(skill.skillCid)), true)
    const again = await api.post(`${HUB}/${hub.hubSkillId}/install`, {})
    assert.deepEqual(again.body.skill, body.skill)
    assert.deepEqual((await asItIs(api, 'POST', '@berth/journal/install')).skill, body.skill)
    assert.equal((await api.get('/v0/skills')).body.skills.length, 1)
    assert.ok((await api.get(at('@berth/journal'))).body.skill.installCount > hub.installCount)
  })
  it('a hub skill installed concurrently is installed once', async () => {
    const { api } = await context.workspace()
    const replies = await Promise.all(Array.from({ length: 6 }, () => install('@berth/web-page', api)))
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
    assert.equal(new Set(replies.map(({ body }) => body.skill.skillId)).size, 1)
  })
  it('attaching a hub skill by its slug installs it', async () => {
    const workspace = await context.workspace()
    const agent = await insertAgent(context, workspace)
    const ask = () => workspace.api.post(`${agent.path}/skills`, { skillCids: ['@berth/handover'] })
    assert.equal((await ask()).body.attached, 1)
    assert.equal((await ask()).body.attached, 1)
    const { skills } = (await workspace.api.get(`${agent.path}/skills`)).body
    assert.deepEqual(
      [skills.length, skills[0].slug, skills[0].name],
      [1, '@berth/handover', '@berth/handover'],
    )
  })
  it('an agent cannot install hub skills, but attaches skills from the library', async () => {
    const workspace = await context.workspace()
    const agent = await insertAgent(context, workspace)
    const minted = await agent.gateway.post(`${agent.path}/platform/token`, {})
    const tokens = [agent.gateway, context.anonymous.as(minted.body.token)]
    const skillCids = ['@berth/handover']
    for (const client of tokens) {
      const missing = 'There is no such skill in the library: @berth/handover'
      assertError(await client.post(`${agent.path}/skills`, { skillCids }), 404, missing)
    }
    assert.deepEqual((await workspace.api.get('/v0/skills')).body.skills, [])
    await install('@berth/handover', workspace.api)
    for (const client of tokens)
      assert.equal((await client.post(`${agent.path}/skills`, { skillCids })).status, 200)
  })
})
