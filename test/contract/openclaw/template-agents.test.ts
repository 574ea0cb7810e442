/** Agents created from a template (contract 7.1 404). */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { files, MISSING_ID, manifest, NO_TEMPLATE, TEMPLATES, templateMaker } from '../agents/templates.ts'
import { openContext } from '../context.ts'
import { newAgent, remove, running, type TestAgent, useStandIn } from './context.ts'

const AGENTS = '/v0/agents'
const PAGE_PORT = 4180

const context = await openContext()
const { workspace, sql } = context
const { workspace: own, snapshot, make } = await templateMaker(context)
const { api } = own
await useStandIn(context, own)

const count = async (): Promise<number> => {
  const [row] = await sql('SELECT count(*)::int AS count FROM agent WHERE workspace_id = $1', [own.id])
  return Number(row?.count)
}
const exec = async ({ gateway, path }: TestAgent, command: string): Promise<string> => {
  const { status, body } = await gateway.post(`${path}/console/exec`, { command, cwd: '/home/node/clawd' })
  assert.equal(status, 200)
  assert.equal(body.exitCode, 0, body.stderr)
  return body.stdout
}
const read = ({ gateway, path }: TestAgent, file: string) => gateway.get(`${path}/files`, { path: file })

describe('creating an agent from a template', () => {
  it('an agent from a missing, archived or foreign template returns 404', async () => {
    await snapshot()
    const { templateId, slug } = await make()
    const before = await count()
    const other = await workspace()
    for (const template of [MISSING_ID, 'no-such-slug', '', 'No Slug', '\u{1f5c2}'])
      assertError(await api.post(AGENTS, { name: 'a', templateId: template }), 404, NO_TEMPLATE)
    for (const template of [templateId, slug])
      assertError(await other.api.post(AGENTS, { name: 'a', templateId: template }), 404, NO_TEMPLATE)
    assert.equal((await api.delete(`${TEMPLATES}/${templateId}`)).status, 200)
    for (const template of [templateId, slug])
      assertError(await api.post(AGENTS, { name: 'a', templateId: template }), 404, NO_TEMPLATE)
    assert.equal(await count(), before)
  })
  it('an agent from a template with an unknown skill returns 404', async () => {
    const before = await count()
    const body = { name: 'a', templateId: 'page', skillCids: ['nobody-has-it'] }
    assertError(await api.post(AGENTS, body), 404, /^There is no such skill in the library/)
    assert.equal(await count(), before)
  })
  it('archiving and using a template at once: a used template is kept', async () => {
    for (let round = 0; round < 3; round++) {
      await snapshot()
      const { templateId } = await make()
      const [created, archived] = await Promise.all([
        api.post(AGENTS, { name: 'Race', templateId }, { prefer: 'respond-async' }),
        api.delete(`${TEMPLATES}/${templateId}`),
      ])
      assert.equal(archived.status, 200)
      const kept = await sql('SELECT FROM template WHERE id = $1', [templateId])
      assert.equal(kept.length, created.status === 201 ? 1 : 0)
      if (created.status === 201) await remove(api, created.body.agent.agentId)
      else assertError(created, 404, NO_TEMPLATE)
    }
  })
})

describe('an agent from the template “page”', async () => {
  const agent = await newAgent(api, { name: 'My page', templateId: 'page', emoji: '🏠' })

  it("an agent from the template “page” has the template's values, unless the request sets them", () => {
    const { name, description, vibe, emoji } = agent.record
    assert.deepEqual([name, vibe, emoji], ['My page', 'neat and quick', '🏠'])
    assert.match(description, /web page/)
  })
  it("an agent from the template “page” has the template's files, and its own", async () => {
    const { scripts, template, agent: about } = (await read(agent, 'manifest.json')).body
    assert.equal(scripts.start, 'node workspace/server.mjs')
    assert.equal(template, undefined)
    assert.deepEqual([about.name, about.emoji], ['My page', '🏠'])
    assert.match((await read(agent, 'workspace/AGENTS.md')).body, /^# You keep a web page/)
    assert.match((await read(agent, 'workspace/IDENTITY.md')).body, /\*\*Name:\*\* My page/)
    assert.match((await read(agent, 'README.md')).body, /^# A web page with an agent/)
  })
  it('an agent from the template “page” serves its page, with the route of the manifest', async () => {
    const get = `node -e "fetch('http://127.0.0.1:${PAGE_PORT}/').then(async r => console.log(r.status, await r.text()))"`
    const page = await until('the page is served', () => exec(agent, get).catch(() => undefined), 120_000)
    assert.match(page, /^200 <!doctype html>[\s\S]*It works\./)
    const { portForwarding } = (await api.get(agent.path)).body
    assert.deepEqual(portForwarding, [{ port: PAGE_PORT, pathPrefix: '/page', protected: false }])
  })
})

describe('an agent from a snapshot template', async () => {
  const text = manifest({
    agent: { name: 'Librarian', description: 'Of the template.', vibe: 'quiet', emoji: '📚' },
    routes: [{ port: 4321, path: '/books', protected: true }],
    scripts: { build: 'echo built > workspace/built.txt' },
  })
  await snapshot({
    // Some editors begin a file with this mark.
    ...files(`\uFEFF${text}`),
    'workspace/IDENTITY.md':
      '# Who you are\n\n- **Name:** Librarian\n- **Emoji:**\n- **Vibe:**\n\nI like rain.\n',
    'workspace/deep/er/notes.txt': 'deep',
  })
  const template = await make()
  const key = randomUUID()
  const body = { name: 'Ada', templateId: template.slug, vibe: null }
  const created = await api.post(AGENTS, body, { prefer: 'respond-async', 'idempotency-key': key })
  assert.equal(created.status, 201, JSON.stringify(created.body))
  const { agentId } = created.body.agent
  after(() => remove(api, agentId))
  const archived = await api.delete(`${TEMPLATES}/${template.templateId}`)
  const agent = await running(api, agentId)

  it('an agent starts even if its template was archived in the meantime', async () => {
    assert.equal(archived.status, 200)
    const { name, description, vibe, emoji } = agent.record
    assert.deepEqual([name, description, vibe, emoji], ['Ada', 'Lends books.', null, '📚'])
    const repeated = await api.post(AGENTS, body, { prefer: 'respond-async', 'idempotency-key': key })
    assert.deepEqual([repeated.status, repeated.body.agent.agentId], [201, agentId])
  })
  it("an agent from a snapshot template has the snapshot's files with its own name", async () => {
    assert.equal((await read(agent, 'workspace/deep/er/notes.txt')).body, 'deep')
    assert.match((await read(agent, 'workspace/IDENTITY.md')).body, /\*\*Name:\*\* Ada\n[\s\S]*I like rain\./)
    assert.deepEqual((await read(agent, 'manifest.json')).body.agent.name, 'Ada')
  })
  it('an agent from a snapshot template starts its own history', async () => {
    const log = (await exec(agent, 'git log --reverse --format=%s%n%P')).split('\n')
    assert.deepEqual(log.slice(0, 2), [`feat: begin from ${template.slug}`, ''])
  })
  it('an agent from a snapshot template gets what its manifest requests', async () => {
    const { mappings } = (await api.get(`${agent.path}/port-forwarding`)).body
    assert.deepEqual(mappings, [{ port: 4321, pathPrefix: '/books', protected: true }])
    const { body: built } = await until(
      'the build has run',
      async () => {
        const reply = await read(agent, 'workspace/built.txt')
        return reply.status === 200 && reply
      },
      120_000,
    )
    assert.equal(built, 'built\n')
  })
})
