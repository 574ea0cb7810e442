/** The skill library (contract 4.3 and 7.1). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import * as dagPb from '@ipld/dag-pb'
import { CID } from 'multiformats/cid'
import { UUID } from 'uuidv7'
import { assertError, type Client } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { missingCid, openContext } from '../context.ts'
import type { Network } from '../stored.ts'
import { insertAgent } from './rows.ts'
import { pinDirectory, skillMd, symlinkTo, uploadFolder } from './skill-folders.ts'

const SKILLS = '/v0/skills'

const context = await openContext()
const own = await context.workspace()
const { api } = own
const other = await context.workspace()
const provider = await context.provider()

let last = 0
const newName = () => `skill-${++last}`
const folder = async (
  files: Record<string, string> = { 'SKILL.md': skillMd() },
  { client = api, network }: { client?: Client; network?: Network } = {},
): Promise<string> => (await uploadFolder(client, files, network)).cid
const add = (skillCid: string, more: Record<string, unknown> = {}, client = api) =>
  client.post(SKILLS, { skillCid, name: newName(), ...more })
const added = async (more: Record<string, unknown> = {}, front: string[] = []) => {
  const { status, body } = await add(await folder({ 'SKILL.md': skillMd('a', ...front) }), more)
  assert.equal(status, 200, JSON.stringify(body))
  return body.skill
}

describe('adding a skill', () => {
  it('adding a skill returns its record', async () => {
    const { id, cid } = await uploadFolder(api, {
      'SKILL.md': skillMd('greeter', 'version: 1.2.3'),
      'scripts/x.sh': 'x',
    })
    const name = newName()
    const envVars = [{ name: 'GREETING', description: 'What to say.' }, { name: 'x_1' }]
    const { status, body } = await add(cid, { name, envVars })
    assert.equal(status, 200)
    const { skillId, createdAt, updatedAt, userId, ...rest } = body.skill
    assert.deepEqual(
      [body.success, rest],
      [
        true,
        {
          skillCid: cid,
          name,
          description: 'What it is for.',
          version: '1.2.3',
          slug: null,
          network: 'public',
          envVars,
          fileId: id,
        },
      ],
    )
    assert.match(createdAt, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    assert.equal(updatedAt, createdAt)
    const { skills, currentUserId } = (await api.get(SKILLS)).body
    assert.deepEqual(
      skills.find((one: any) => one.skillId === skillId),
      body.skill,
    )
    assert.equal(currentUserId, userId)
  })
  it('adding the same content again, in any spelling of its CID, returns the existing skill', async () => {
    const first = await added()
    const upper = CID.parse(first.skillCid).toString().toUpperCase()
    for (const skillCid of [first.skillCid, upper]) {
      const again = await add(skillCid, { name: 'another', description: 'Another.' })
      assert.deepEqual(again.body.skill, first)
    }
  })
  it('adding a skill concurrently creates one', async () => {
    const cid = await folder()
    const name = newName()
    const replies = await Promise.all(Array.from({ length: 8 }, () => add(cid, { name })))
    assert.deepEqual(new Set(replies.map(({ status }) => status)), new Set([200]))
    assert.equal(new Set(replies.map(({ body }) => body.skill.skillId)).size, 1)
  })
  it('the content of a skill stays when its file is deleted', async () => {
    const { id, cid } = await uploadFolder(api, { 'SKILL.md': skillMd() })
    const { skillId } = (await add(cid)).body.skill
    const gone = await api.delete(`/v3/files/public/${id}`)
    await api.finished(gone.headers.get('operation-id') ?? '')
    assert.equal(await context.isPinned(CID.parse(cid)), true)
    await api.delete(`${SKILLS}/${skillId}`)
    await until('the content is released', async () => !(await context.isPinned(CID.parse(cid))))
  })
  it('adding a skill rejects malformed fields', async () => {
    const cid = await folder()
    const foreign = await uploadFolder(api, { 'SKILL.md': skillMd() })
    assertError(
      await add(cid, { fileId: foreign.id }),
      400,
      /^fileId: is not a file of the workspace with this content/,
    )
  })
  it('adding a skill rejects content that is not a skill', async () => {
    const big = 'x'.repeat(5_000_000)
    const many = Object.fromEntries(Array.from({ length: 501 }, (_, i) => [`f/${i}`, `${i}`]))
    const md = skillMd()
    const bad: [Record<string, string>, RegExp][] = [
      [{ 'README.md': 'x', 'a/SKILL.md': md }, /no file SKILL\.md/],
      [{ 'SKILL.md': 'Just text.' }, /must begin with front matter/],
      [{ 'SKILL.md': '---\nname: x\n---\n' }, /SKILL\.md: description: /],
      [{ 'SKILL.md': '---\nname: ""\ndescription: x\n---\n' }, /SKILL\.md: name: /],
      [{ 'SKILL.md': '---\na: &a [x]\nb: [*a, *a]\nname: x\ndescription: x\n---\n' }, /is not YAML/],
      [{ 'SKILL.md': `---\nname: x\ndescription: x\na: ${'['.repeat(10_000)}\n---\n` }, /is not YAML/],
      [
        { 'SKILL.md': `---\nname: x\ndescription: x\na: ${'a'.repeat(20_000)}\n---\n` },
        /must begin with front matter/,
      ],
      [{ 'SKILL.md': md, a: big, b: `${big}.` }, /more than .* bytes/],
      [{ 'SKILL.md': md, ...many }, /more than .* files/],
    ]
    for (const [files, message] of bad) assertError(await add(await folder(files)), 400, message)
    const [one] = await Promise.all([provider.file(Buffer.from('a file'))])
    await api.finished((await api.pin({ cid: `${one}`, host_nodes: [provider.multiaddr] })).operation)
    assertError(await add(`${one}`), 400, /^skillCid: it is not a folder/)
  })
  it('adding a skill rejects folders with names or links that leave their place', async () => {
    const md = await provider.file(Buffer.from(skillMd()))
    const text = await provider.file(Buffer.from('x'))
    const link = await symlinkTo(provider, '/etc/passwd')
    for (const [name, cid] of [
      ['..', text],
      ['.', text],
      ['../x', text],
      ['a/b', text],
      ['/etc', text],
      ['', text],
      ['a\0b', text],
      ['.git', text],
      ['link', link],
    ] as const) {
      const bad = await pinDirectory(api, provider, [
        [name, cid],
        ['SKILL.md', md],
      ])
      assertError(await add(bad), 400, /^skillCid: /)
    }
    assert.equal((await add(await pinDirectory(api, provider, [['SKILL.md', md]]))).status, 200)
  })
  it('adding a skill rejects a name in use, which should get a version instead', async () => {
    const { name } = await added()
    assertError(await add(await folder(), { name }), 409, /^name: there is another skill/)
    assert.equal(
      (await add(await folder(), { name }, other.api)).status,
      200,
      'the name is free in another library',
    )
  })
})

describe('the network of a skill', () => {
  it('a skill is on the private network if the workspace keeps its content there', async () => {
    const cid = await folder(undefined, { network: 'private' })
    const { body } = await add(cid)
    assert.deepEqual([body.skill.network, body.skill.skillCid], ['private', cid])
    assert.equal(await context.isPinned(CID.parse(cid), 'private'), true)
  })
  it('a skill never uses another workspace’s private content, even if its CID is known', async () => {
    const cid = await folder(undefined, { network: 'private', client: other.api })
    await other.api.post(SKILLS, { skillCid: cid, name: 'mine' })
    const reply = await api.post(SKILLS, { skillCid: cid, name: newName() }, { prefer: 'wait=0' })
    assert.equal(reply.status, 202, 'only the public network is searched')
    const agent = await insertAgent(context, own)
    assertError(
      await api.post(`${agent.path}/skills`, { skillCids: [cid] }),
      404,
      /no such skill in the library/,
    )
  })
})

describe('missing content of a skill', () => {
  it('missing content is pinned first, and a repeated request then adds the skill', async () => {
    const slow = await context.provider()
    const cid = await slow.folder({ 'SKILL.md': Buffer.from(skillMd()) })
    const [link] = await slow.links(cid)
    assert.ok(link)
    const release = slow.hold(link)
    const { record, operation } = await api.pin({ cid: `${cid}`, host_nodes: [slow.multiaddr] })
    const name = newName()
    const first = await api.post(SKILLS, { skillCid: `${cid}`, name }, { prefer: 'respond-async' })
    assert.equal(first.status, 202)
    assert.equal(first.body.operation.id, operation, 'the running pin')
    release()
    const second = await api.post(SKILLS, { skillCid: `${cid}`, name }, { prefer: 'wait=120' })
    assert.equal(second.status, 200, JSON.stringify(second.body))
    assert.deepEqual([second.body.skill.network, second.body.skill.fileId], ['public', record.id])
  })
  it('pinning missing content needs the permissions and the plan for pins', async () => {
    const cid = await missingCid(dagPb.code)
    const reply = await api.post(SKILLS, { skillCid: `${cid}`, name: newName() }, { prefer: 'wait=0' })
    assert.equal(reply.status, 202)
    const jobs = (await api.get('/v3/files/public/pin_by_cid', { cid: `${cid}` })).body.data.jobs
    assert.equal(jobs.length, 1)
    await api.delete(`/v3/files/public/pin_by_cid/${jobs[0].id}`)
    const agentsOnly = await own.keyed('org:agents:write')
    const refused = await agentsOnly.post(SKILLS, {
      skillCid: `${await missingCid(dagPb.code)}`,
      name: newName(),
    })
    assertError(refused, 403, /^Missing scope: org:files:write/)
    const free = await context.workspace('free')
    const unpaid = await free.api.post(SKILLS, {
      skillCid: `${await missingCid(dagPb.code)}`,
      name: newName(),
    })
    assertError(unpaid, 403, 'Pin by CID is not part of the free plan')
  })
})

describe('the list of skills', () => {
  it("the list of skills has the workspace's skills in pages, newest first", async () => {
    const { api } = await context.workspace()
    const names: string[] = []
    for (let i = 0; i < 3; i += 1) {
      const name = `s${i}`
      const cid = await folder(undefined, { client: api })
      assert.equal((await api.post(SKILLS, { skillCid: cid, name })).status, 200)
      names.unshift(name)
    }
    const seen: string[] = []
    let pageToken = ''
    do {
      const { headers, body } = await api.get(SKILLS, { limit: '2', ...(pageToken && { pageToken }) })
      seen.push(...body.skills.map(({ name }: { name: string }) => name))
      pageToken = headers.get('next-page-token') ?? ''
    } while (pageToken)
    assert.deepEqual(seen, names)
    for (const limit of ['0', '1001', 'x']) assertError(await api.get(SKILLS, { limit }), 400, /^limit: /)
  })
})

describe('versions of a skill', () => {
  it('versions of a skill are listed newest first, and the skill has the newest one', async () => {
    const skill = await added({}, ['version: 1.0.0'])
    const path = `${SKILLS}/${skill.skillId}/versions`
    const cid = await folder({ 'SKILL.md': skillMd('a', 'version: 1.0.0') })
    const { status, body } = await api.post(path, { skillCid: cid, version: '2.0.0' })
    assert.deepEqual([status, body.version.version, body.version.skillCid], [200, '2.0.0', cid])
    const listed = (await api.get(path)).body
    assert.deepEqual(
      listed.versions.map(({ skillCid, version }: any) => [skillCid, version]),
      [
        [cid, '2.0.0'],
        [skill.skillCid, '1.0.0'],
      ],
    )
    assert.deepEqual(
      (await api.get(`${SKILLS}/${skill.skillCid}/versions`)).body,
      listed,
      'by any of its CIDs',
    )
    const now = (await add(cid)).body.skill
    assert.deepEqual([now.skillId, now.skillCid, now.version], [skill.skillId, cid, '2.0.0'])
    assert.ok(now.updatedAt > skill.updatedAt)
    assert.deepEqual(
      (await api.post(path, { skillCid: cid })).body,
      body,
      'a repeat returns the same version',
    )
    const first = await api.get(path, { limit: '1' })
    const rest = await api.get(path, { limit: '1', pageToken: first.headers.get('next-page-token') ?? '' })
    assert.deepEqual([...first.body.versions, ...rest.body.versions], listed.versions)
  })
  it('versions of a skill keep their order of creation, even if a clock was set back', async () => {
    const { skillId } = await added()
    const ahead = UUID.fromFieldsV7(Date.now() + 60_000, 0, 0, 0).toString()
    await context.sql('UPDATE skill_version SET id = $2 WHERE skill_id = $1', [skillId, ahead])
    const cid = await folder({ 'SKILL.md': skillMd('a') })
    assert.equal((await api.post(`${SKILLS}/${skillId}/versions`, { skillCid: cid })).status, 200)
    assert.equal((await add(cid)).body.skill.skillCid, cid)
  })
  it('a version of a skill may have no number', async () => {
    const { skillId } = await added()
    const { body } = await api.post(`${SKILLS}/${skillId}/versions`, {
      skillCid: await folder({ 'SKILL.md': skillMd('a', 'version: latest') }),
    })
    assert.equal(body.version.version, null)
  })
  it('a skill version returns 409 for a number in use, or content of another skill', async () => {
    const skill = await added({}, ['version: 1.0.0'])
    const path = `${SKILLS}/${skill.skillId}/versions`
    assertError(
      await api.post(path, { skillCid: await folder(), version: '1.0.0' }),
      409,
      /^version: there is another/,
    )
    const { skillCid } = await added()
    assertError(await api.post(path, { skillCid }), 409, /^skillCid: is already in the library/)
    for (const version of ['1', '1.0', 'v1.0.0', '01.0.0', '1.0.0-', 'latest'])
      assertError(await api.post(path, { skillCid, version }), 400, /^version: /)
    assertError(await api.post(path, { skillCid: await folder({ a: 'x', b: 'y' }) }), 400, /SKILL\.md/)
  })
})

describe('deleting a skill', () => {
  it('deleting a skill by its id or a CID deletes its versions', async () => {
    const { skillId, skillCid, name } = await added()
    const newer = await folder()
    await api.post(`${SKILLS}/${skillId}/versions`, { skillCid: newer })
    const { status, body } = await api.delete(`${SKILLS}/${skillCid}`)
    assert.deepEqual(
      [status, body],
      [200, { success: true, message: `Skill ${name} deleted`, wasInLibrary: true }],
    )
    const again = await api.delete(`${SKILLS}/${skillId}`)
    assert.deepEqual(again.body, {
      success: true,
      message: 'The skill was not in the library',
      wasInLibrary: false,
    })
    assert.equal((await add(newer, { name })).status, 200, 'name and content are free')
  })
  it('deleting a skill leaves the skill of another workspace', async () => {
    const { skillId } = await added()
    assert.equal((await other.api.delete(`${SKILLS}/${skillId}`)).body.wasInLibrary, false)
    assert.ok((await api.get(SKILLS)).body.skills.some((one: any) => one.skillId === skillId))
    assertError(await api.delete(`${SKILLS}/nothing`), 400, /^skillId: /)
  })
  it('a skill cannot be deleted while it is attached to an agent', async () => {
    const agent = await insertAgent(context, own, 'Holder')
    const { skillId, skillCid } = await added()
    await api.post(`${agent.path}/skills`, { skillCids: [skillCid] })
    const refused = await api.delete(`${SKILLS}/${skillId}`)
    assertError(refused, 409, 'The skill is attached to an agent')
    assert.equal(refused.headers.get('error-detail'), `attached to Holder (${agent.agentId})`)
    await api.delete(`${agent.path}/skills/${skillId}`)
    assert.equal((await api.delete(`${SKILLS}/${skillId}`)).body.wasInLibrary, true)
  })
})
