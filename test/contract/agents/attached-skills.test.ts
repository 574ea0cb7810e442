/** The skills of agents that are only rows (contract 4.3, 7.1 and 8). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { assertError } from '../../support/client.ts'
import { missingCid, openContext } from '../context.ts'
import { insertAgent, type RowAgent } from './rows.ts'
import { skillMd, uploadFolder } from './skill-folders.ts'

const NOT_YET = 'The agent has it when it starts'

const context = await openContext()
const own = await context.workspace()
const { api } = own
const other = await context.workspace()

interface Skill {
  skillId: string
  skillCid: string
  name: string
}
let last = 0
const create = async (client = api): Promise<Skill> => {
  const { cid } = await uploadFolder(client, { 'SKILL.md': skillMd('a', 'version: 1.0.0') })
  const { status, body } = await client.post('/v0/skills', { skillCid: cid, name: `s${++last}` })
  assert.equal(status, 200, JSON.stringify(body))
  return body.skill
}
/** Creates a newer version of a skill; resolves to its CID. */
const createVersion = async ({ skillId }: Skill, version: string): Promise<string> => {
  const { cid } = await uploadFolder(api, { 'SKILL.md': skillMd() })
  assert.equal((await api.post(`/v0/skills/${skillId}/versions`, { skillCid: cid, version })).status, 200)
  return cid
}
const attach = ({ path }: RowAgent, ...skillCids: string[]) => api.post(`${path}/skills`, { skillCids })
const attached = async ({ path }: RowAgent): Promise<any[]> => (await api.get(`${path}/skills`)).body.skills
const cids = async (agent: RowAgent) => (await attached(agent)).map(({ skillCid }) => skillCid).sort()
const update = ({ path }: RowAgent, { skillId }: Skill, body?: unknown) =>
  api.post(`${path}/skills/${skillId}/update`, body)

/** Eleven skills, created once. */
const skills = await Promise.all(Array.from({ length: 11 }, () => create()))

describe('attaching skills', () => {
  it('attaching skills adds skills from the library', async () => {
    const agent = await insertAgent(context, own)
    const [a, b] = skills as [Skill, Skill]
    const { status, body, headers } = await attach(agent, a.skillCid, b.skillCid)
    assert.deepEqual([status, body], [200, { success: true, attached: 2, message: NOT_YET }])
    assert.match(headers.get('operation-id') ?? '', /^[0-9a-f-]{36}$/)
    const [first, ...rest] = await attached(agent)
    assert.equal(rest.length, 1)
    const { attachedAt, ...record } = first
    const { skillId, skillCid, name } = [a, b].sort((x, y) => (x.name < y.name ? -1 : 1))[0] as Skill
    assert.deepEqual(record, {
      agentId: agent.agentId,
      skillId,
      skillCid,
      name,
      description: 'What it is for.',
      version: '1.0.0',
      slug: null,
    })
    assert.match(attachedAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.deepEqual((await api.get(`${agent.path}/platform/skills/attached`)).body, {
      skills: await attached(agent),
    })
  })
  it('attaching a skill twice, by CID or name, has no further effect', async () => {
    const agent = await insertAgent(context, own)
    const [a, b] = skills as [Skill, Skill]
    await attach(agent, a.skillCid)
    const { body } = await attach(agent, a.skillCid, a.name, b.name, b.skillCid.toUpperCase())
    assert.equal(body.attached, 2)
    assert.deepEqual(await cids(agent), [a.skillCid, b.skillCid].sort())
  })
  it('attaching skills is all or nothing: 404 if one is not in the library', async () => {
    const agent = await insertAgent(context, own)
    const [a] = skills as [Skill]
    const theirs = await create(other.api)
    for (const missing of [`${await missingCid(dagPb.code)}`, 'nothing', theirs.skillCid, '@nobody/nothing'])
      assertError(await attach(agent, a.skillCid, missing), 404, /^There is no such skill in the library/)
    assert.deepEqual(await cids(agent), [])
  })
  it('attaching skills is limited to ten skills', async () => {
    const agent = await insertAgent(context, own)
    const all = skills.map(({ skillCid }) => skillCid)
    const message = 'skillCids: an agent can have at most 10 skills'
    assertError(await attach(agent, ...all), 400, message)
    const unknown = Array.from({ length: 11 }, (_, n) => `@nobody/skill-${n}`)
    assertError(await attach(agent, ...unknown), 400, message)
    assert.deepEqual(await cids(agent), [])
    assert.equal((await attach(agent, ...all.slice(0, 10))).body.attached, 10)
    assertError(await attach(agent, all[10] as string), 400, message)
    assert.equal((await attach(agent, ...all.slice(0, 10))).status, 200)
  })
  it('attaching skills concurrently is limited to ten skills', async () => {
    const agent = await insertAgent(context, own)
    const replies = await Promise.all(skills.map(({ skillCid }) => attach(agent, skillCid)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [...Array(10).fill(200), 400])
    assert.equal((await attached(agent)).length, 10)
  })
  it('attaching another version of an attached skill returns 409', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    const newer = await createVersion(skill, '2.0.0')
    await attach(agent, skill.skillCid)
    assertError(await attach(agent, newer), 409, /^Skill version conflict: the agent has another version/)
    assert.equal((await attach(agent, skill.name)).status, 200, 'a name requests no version')
    assert.deepEqual(await cids(agent), [skill.skillCid])
    const fresh = await insertAgent(context, own)
    assertError(await attach(fresh, skill.skillCid, newer), 409, /^Skill version conflict/)
    await attach(fresh, skill.name)
    assert.deepEqual(await cids(fresh), [newer])
  })
  it('attaching and deleting a skill at once leaves it either attached or deleted', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    const [put, gone] = await Promise.all([
      attach(agent, skill.skillCid),
      api.delete(`/v0/skills/${skill.skillId}`),
    ])
    assert.ok((put.status === 200) !== (gone.status === 200), `${put.status} ${gone.status}`)
    assert.equal((await attached(agent)).length, put.status === 200 ? 1 : 0)
  })
})

describe('detaching a skill', () => {
  it('detaching a skill leaves it in the library, and says so [report: error texts]', async () => {
    const agent = await insertAgent(context, own)
    const [a] = skills as [Skill]
    await attach(agent, a.skillCid)
    const { status, body } = await api.delete(`${agent.path}/skills/${a.skillId}`)
    assert.deepEqual([status, body], [200, { success: true, message: 'The agent loses it when it starts' }])
    assert.deepEqual(await attached(agent), [])
    const gone = await api.delete(`${agent.path}/skills/${a.skillId}`)
    assertError(gone, 404, 'The agent has no such skill')
    assertError(await api.delete(`${agent.path}/skills/nothing`), 404, 'The agent has no such skill')
    assert.ok((await api.get('/v0/skills')).body.skills.some((one: Skill) => one.skillId === a.skillId))
  })
})

describe('skill updates', () => {
  it('skill updates show newer versions', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    await attach(agent, skill.skillCid)
    const row = {
      skillId: skill.skillId,
      name: skill.name,
      skillCid: skill.skillCid,
      version: '1.0.0',
      folder: null,
    }
    assert.deepEqual((await api.get(`${agent.path}/skills/updates`)).body, {
      agentId: agent.agentId,
      updates: [{ ...row, latestSkillCid: skill.skillCid, latestVersion: '1.0.0', updateAvailable: false }],
    })
    const newer = await createVersion(skill, '1.1.0')
    assert.deepEqual((await api.get(`${agent.path}/skills/updates`)).body.updates, [
      { ...row, latestSkillCid: newer, latestVersion: '1.1.0', updateAvailable: true },
    ])
  })
  it('a skill update installs the newest version, or the requested one', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    const [second, third] = [await createVersion(skill, '2.0.0'), await createVersion(skill, '3.0.0')]
    await attach(agent, skill.skillCid)
    const steps: [unknown, string][] = [
      [undefined, third],
      [{ version: '2.0.0' }, second],
      [{ skillCid: skill.skillCid }, skill.skillCid],
      [{ expectedSkillCid: skill.skillCid }, third],
      [{}, third],
    ]
    for (const [body, cid] of steps) {
      const reply = await update(agent, skill, body)
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
      assert.deepEqual([reply.body.success, reply.body.skill.skillCid], [true, cid])
      assert.deepEqual(await cids(agent), [cid])
    }
  })
  it('a lower version published later is not offered or installed [report: newest version]', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    const highest = await createVersion(skill, '2.0.0')
    const lower = await createVersion(skill, '1.0.1')
    const listed = (await api.get(`/v0/skills/${skill.skillId}/versions`)).body.versions
    assert.deepEqual(
      listed.map(({ version }: any) => version),
      ['2.0.0', '1.0.1', '1.0.0'],
    )
    const page = (query: Record<string, string>) => api.get(`/v0/skills/${skill.skillId}/versions`, query)
    const first = await page({ limit: '2' })
    const rest = await page({ limit: '2', pageToken: first.headers.get('next-page-token') ?? '' })
    assert.deepEqual([...first.body.versions, ...rest.body.versions], listed)
    await attach(agent, skill.name)
    assert.deepEqual(await cids(agent), [highest])
    const [offered] = (await api.get(`${agent.path}/skills/updates`)).body.updates
    assert.deepEqual(
      [offered.updateAvailable, offered.latestSkillCid, offered.latestVersion],
      [false, highest, '2.0.0'],
    )
    assert.equal((await update(agent, skill)).body.skill.skillCid, highest)
    assert.equal((await update(agent, skill, { version: '1.0.1' })).body.skill.skillCid, lower)
    const [again] = (await api.get(`${agent.path}/skills/updates`)).body.updates
    assert.equal(again.updateAvailable, true)
  })
  it('a prerelease is not offered if there is a release [report: newest version]', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    const prerelease = await createVersion(skill, '3.0.0-beta.1')
    await attach(agent, skill.name)
    const [offered] = (await api.get(`${agent.path}/skills/updates`)).body.updates
    assert.deepEqual([offered.updateAvailable, offered.latestVersion], [false, '1.0.0'])
    await update(agent, skill, { version: '3.0.0-beta.1' })
    const [back] = (await api.get(`${agent.path}/skills/updates`)).body.updates
    assert.equal(back.updateAvailable, false, "a release lower than the agent's prerelease")
    assert.equal((await update(agent, skill)).body.skill.skillCid, prerelease)
    const release = await createVersion(skill, '3.0.0')
    assert.equal((await update(agent, skill)).body.skill.skillCid, release)
  })
  it('a skill update returns 409 if another version is attached than expected', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    const newer = await createVersion(skill, '2.0.0')
    await attach(agent, newer)
    const reply = await update(agent, skill, { expectedSkillCid: skill.skillCid, skillCid: skill.skillCid })
    assertError(reply, 409, /^Skill version conflict: .* is attached, not /)
    assert.deepEqual(await cids(agent), [newer])
  })
  it('concurrent updates of a skill from the same version: one succeeds', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    await createVersion(skill, '2.0.0')
    await attach(agent, skill.skillCid)
    const ask = () => update(agent, skill, { expectedSkillCid: skill.skillCid })
    const replies = await Promise.all([ask(), ask(), ask(), ask()])
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409, 409])
  })
  it('a skill update rejects unknown skills and versions, and malformed fields', async () => {
    const agent = await insertAgent(context, own)
    const [a, b] = skills as [Skill, Skill]
    await attach(agent, a.skillCid)
    assertError(await update(agent, b), 404, 'The agent has no such skill')
    assertError(await update(agent, a, { version: '9.9.9' }), 404, 'The skill has no such version')
    assertError(await update(agent, a, { skillCid: b.skillCid }), 404, 'The skill has no such version')
    assertError(await update(agent, a, { version: 'x' }), 400, /^version: /)
    assertError(await update(agent, a, { version: '1.0.0', skillCid: a.skillCid }), 400, /^version: /)
    assertError(await update(agent, a, { skillCid: 'x' }), 400, /^skillCid: not a CID/)
    assertError(await update(agent, a, { expectedSkillCid: 'x' }), 400, /^expectedSkillCid: not a CID/)
    assertError(await update(agent, a, { resolution: 'merge' }), 400, /^resolution: must be replace or keep/)
  })
})

describe('a repeat with an Idempotency-Key', () => {
  it('a repeat with an Idempotency-Key changes nothing, and another request returns 422', async () => {
    const agent = await insertAgent(context, own)
    const skill = await create()
    const newer = await createVersion(skill, '2.0.0')
    const put = (skillCid: string) =>
      api.post(
        `${agent.path}/skills`,
        { skillCids: [skillCid] },
        { 'idempotency-key': `put-${agent.agentId}` },
      )
    const first = await put(skill.skillCid)
    assert.equal(first.status, 200)
    const change = (body: unknown) =>
      api.post(`${agent.path}/skills/${skill.skillId}/update`, body, { 'idempotency-key': agent.agentId })
    const moved = await change({ expectedSkillCid: skill.skillCid })
    const again = await change({ expectedSkillCid: skill.skillCid })
    assert.deepEqual([again.status, again.body.skill.skillCid], [200, newer])
    assert.equal(again.headers.get('operation-id'), moved.headers.get('operation-id'))
    assertError(await change({}), 422, /Idempotency-Key/)
    await api.delete(`${agent.path}/skills/${skill.skillId}`)
    const repeated = await put(skill.skillCid)
    assert.deepEqual([repeated.status, repeated.body.attached], [200, 1])
    assert.equal(repeated.headers.get('operation-id'), first.headers.get('operation-id'))
    assert.deepEqual(await attached(agent), [], 'it is not attached again')
    assertError(await put(newer), 422, /Idempotency-Key/)
  })
})
