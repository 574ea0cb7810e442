/** Skills in a running agent: their folders, and the agent's own changes to them. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { skillMd, uploadFolder } from '../agents/skill-folders.ts'
import { openContext } from '../context.ts'
import { live, sharedStandIn } from './context.ts'

const context = await openContext()
const { api, path, agentId } = await sharedStandIn(context)
const mark = Date.now().toString(36)

interface Skill {
  skillId: string
  skillCid: string
  name: string
}
let last = 0
const added: Skill[] = []
/** A skill whose name in its SKILL.md is unique as well. */
async function create(files: Record<string, string> = {}, name = `live-${mark}-${++last}`): Promise<Skill> {
  const { cid } = await uploadFolder(api, { 'SKILL.md': skillMd(name), ...files })
  const { status, body } = await api.post('/v0/skills', { skillCid: cid, name })
  assert.equal(status, 200, JSON.stringify(body))
  added.push(body.skill)
  return body.skill
}
async function createVersion({ skillId, name }: Skill): Promise<string> {
  const { cid } = await uploadFolder(api, { 'SKILL.md': skillMd(name) })
  assert.equal((await api.post(`/v0/skills/${skillId}/versions`, { skillCid: cid })).status, 200)
  return cid
}
const attach = (...skillCids: string[]) => api.post(`${path}/skills`, { skillCids })
const detach = ({ skillId }: Skill) => api.delete(`${path}/skills/${skillId}`)
const update = ({ skillId }: Skill, body?: unknown) => api.post(`${path}/skills/${skillId}/update`, body)
const updateOf = async ({ skillId }: Skill) =>
  (await api.get(`${path}/skills/updates`)).body.updates.find((one: Skill) => one.skillId === skillId)
const read = (file: string) => api.get(`${path}/files`, { path: `skills/${file}` })
async function exec(command: string): Promise<string> {
  const { status, body } = await api.post(`${path}/console/exec`, { command })
  assert.deepEqual([status, body.exitCode], [200, 0], JSON.stringify(body))
  return body.stdout
}
const processId = async () => (await live(api, path)).body.processId

/** Removes all added skills: other files use the same agent, which can have only ten. */
async function removeAll(): Promise<void> {
  for (const skill of added.splice(0)) {
    await detach(skill)
    await api.delete(`/v0/skills/${skill.skillId}`)
  }
}

describe('skills in a running agent', () => {
  after(removeAll)

  it('a skill is added to a running agent, and removed from it, without a restart', async () => {
    const gateway = await processId()
    const skill = await create({ 'scripts/hello.sh': '#!/bin/sh\necho hello of a skill\n' })
    const { status, body } = await attach(skill.skillCid)
    assert.deepEqual([status, body], [200, { success: true, attached: 1, message: 'The agent has it' }])
    assert.match((await read(`${skill.name}/SKILL.md`)).body, /What it is for/)
    assert.equal(await exec(`skills/${skill.name}/scripts/hello.sh`), 'hello of a skill\n')
    assert.equal((await updateOf(skill)).folder, 'same')

    const gone = await detach(skill)
    assert.deepEqual(
      [gone.status, gone.body],
      [200, { success: true, message: 'The agent no longer has it' }],
    )
    assert.equal((await read(`${skill.name}/SKILL.md`)).status, 404)
    assert.equal(await processId(), gateway)
  })

  it("a running agent always has Berth's own skill, which calls Berth", async () => {
    assert.ok(
      !(await api.get(`${path}/skills`)).body.skills.some(({ name }: Skill) => name === '@berth/platform'),
    )
    const said = await exec('node skills/@berth/platform/berth.mjs whoami')
    assert.equal(JSON.parse(said).agentId, agentId)
    const listed = await exec('node skills/@berth/platform/berth.mjs skills')
    assert.deepEqual(JSON.parse(listed), (await api.get(`${path}/skills`)).body)
    const refused = await api.post(`${path}/console/exec`, {
      command: 'node skills/@berth/platform/berth.mjs detach 0193a1c4-91b0-7c3e-8a4d-2f6b0e7d5c19',
    })
    assert.deepEqual([refused.body.exitCode, refused.body.stdout], [1, ''])
    assert.match(refused.body.stderr, /^404 .*The agent has no such skill/)
  })
})

describe('skills that the agent changed', () => {
  after(removeAll)
  const change = ({ name }: Skill, text: string) => exec(`printf %s '${text}' > skills/${name}/SKILL.md`)

  it("an update does not overwrite the agent's changes: its owner decides", async () => {
    const skill = await create()
    await attach(skill.skillCid)
    await change(skill, 'mine')
    const newer = await createVersion(skill)
    assert.deepEqual(
      [(await updateOf(skill)).updateAvailable, (await updateOf(skill)).folder],
      [true, 'modified'],
    )
    assertError(await update(skill), 409, /^Skill version conflict: the agent has changed/)
    assert.equal((await updateOf(skill)).skillCid, skill.skillCid, 'nothing has changed')

    const kept = await update(skill, { resolution: 'keep' })
    assert.deepEqual([kept.status, kept.body.skill.skillCid], [200, newer])
    assert.equal((await read(`${skill.name}/SKILL.md`)).body, 'mine')

    const replaced = await update(skill, { resolution: 'replace' })
    assert.equal(replaced.status, 200, JSON.stringify(replaced.body))
    assert.match((await read(`${skill.name}/SKILL.md`)).body, /What it is for/)
    assert.equal((await updateOf(skill)).folder, 'same')
  })

  it("the agent's changes to a skill named like an object property stay when another is attached", async () => {
    const [skill, another] = [await create({}, 'constructor'), await create()]
    await attach(skill.skillCid)
    await change(skill, 'mine')
    assert.equal((await attach(another.skillCid)).status, 200)
    assert.equal((await read(`${skill.name}/SKILL.md`)).body, 'mine')
  })

  it("an agent's own folder with the name of a skill is a conflict that an update resolves", async () => {
    const skill = await create()
    await exec(`mkdir -p skills/${skill.name} && printf own > skills/${skill.name}/NOTES.md`)
    const refused = await attach(skill.skillCid)
    assertError(refused, 409, /^Skill version conflict: .*is not as Berth has put it there/)
    assert.equal((await read(`${skill.name}/NOTES.md`)).body, 'own')
    assert.equal((await updateOf(skill)).folder, 'other')
    assertError(await update(skill), 409, /^Skill version conflict/)
    assert.equal((await update(skill, { resolution: 'replace' })).status, 200)
    assert.equal((await read(`${skill.name}/NOTES.md`)).status, 404)
    assert.equal((await updateOf(skill)).folder, 'same')
  })

  it('a skill conflict does not block changes of other skills [report: other failures]', async () => {
    const problemsOf = async (name: string) =>
      (await api.get(`${path}/status`)).body.skillProblems.filter((one: Skill) => one.name === name)
    const [skill, another, third] = [await create(), await create(), await create()]
    await exec(`mkdir -p skills/${skill.name} && printf own > skills/${skill.name}/NOTES.md`)
    const refused = await attach(skill.skillCid, third.skillCid)
    assertError(refused, 409, /^Skill version conflict: .*is not as Berth has put it there/)
    assert.deepEqual(await problemsOf(skill.name), [
      { name: skill.name, message: `skills/${skill.name} is not as Berth has put it there` },
    ])
    for (const reply of [
      await attach(another.skillCid),
      await update(another, { skillCid: another.skillCid }),
      await detach(another),
    ])
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
    assert.equal((await problemsOf(skill.name)).length, 1)
    assertError(await attach(skill.skillCid), 409, /^Skill version conflict/)
    assert.equal((await update(skill, { resolution: 'replace' })).status, 200)
    assert.deepEqual(await problemsOf(skill.name), [])
  })

  it('a skill that the agent removed is restored', async () => {
    const [skill, another] = [await create(), await create()]
    await attach(skill.skillCid)
    await exec(`rm -r skills/${skill.name}`)
    assert.equal((await updateOf(skill)).folder, 'missing')
    await attach(another.skillCid)
    assert.equal((await updateOf(skill)).folder, 'same')
  })
})
