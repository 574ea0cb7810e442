/** Templates from public repositories, on a real git server. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { CID } from 'multiformats/cid'
import { assertError } from '../../support/client.ts'
import { commitTo, type Files } from '../../support/git-repositories.ts'
import { until } from '../../support/processes.ts'
import { openContext, REPOSITORIES } from '../context.ts'
import { files, manifest, TEMPLATES, templateMaker } from './templates.ts'

const context = await openContext()
const { env, isPinned } = context
const url = `${env[REPOSITORIES.url]}`
const root = `${env[REPOSITORIES.dir]}`
const { workspace, agent, snapshot, make } = await templateMaker(context)
const { api } = workspace

const FULL = manifest({
  agent: { name: 'Librarian', description: 'Lends books.', vibe: 'quiet', emoji: '📚' },
  template: { category: 'reference', tags: ['books'] },
})

/** Creates a repository with these files; resolves to its URL and its commit. */
async function repository(content: Files = files(FULL), options: Parameters<typeof commitTo>[3] = {}) {
  const name = `${randomUUID()}.git`
  const commit = await commitTo(root, name, content, options)
  return { gitUrl: `${url}/${name}`, commit, name }
}
const slug = () => `g-${randomUUID()}`
const submit = async (body: object) => {
  const reply = await api.post(TEMPLATES, { slugOverride: slug(), ...body })
  assert.equal(reply.status, 201, JSON.stringify(reply.body))
  assert.equal(reply.body.success, true)
  return reply.body.template
}
const validate = (body: object) => api.post(`${TEMPLATES}/validate`, body)

describe('templates from a repository', () => {
  it('a template from a repository has the fields of its manifest, unless the body sets them', async () => {
    const { gitUrl, commit } = await repository(files(FULL, 'read me'))
    const slugOverride = slug()
    const template = await submit({ gitUrl, nameOverride: 'Books', slugOverride })
    const { name, description, category, tags, longDescription, defaultVibe, version } = template
    assert.deepEqual(
      [name, description, category, tags, longDescription, defaultVibe, version],
      ['Books', 'Lends books.', 'reference', ['books'], '# Librarian\n\nread me', 'quiet', 1],
    )
    assert.deepEqual([template.gitUrl, template.gitCommitSha], [gitUrl, commit])
    assert.deepEqual((await api.get(`${TEMPLATES}/${slugOverride}`)).body.template, template)
    assert.ok(await isPinned(CID.parse(template.snapshotCid), 'private'))
  })
  it('a template from a repository has the same content as a snapshot of the same files', async () => {
    const tree = { ...files(FULL), 'workspace/deep/er.txt': 'deep' }
    const { cid } = await snapshot(tree)
    const { gitUrl } = await repository(tree)
    assert.equal((await submit({ gitUrl })).snapshotCid, cid)
  })
  it("a template from a repository keeps the repository's links and executable files", async () => {
    const { gitUrl } = await repository({
      ...files(FULL),
      'workspace/run.sh': 'true\n',
      'workspace/link': { link: 'run.sh' },
    })
    const { templateId, snapshotCid } = await submit({ gitUrl })
    const [row] = await context.sql('SELECT network, executables FROM template WHERE id = $1', [templateId])
    assert.deepEqual(row, { network: 'private', executables: ['workspace/run.sh'] })
    assert.match(snapshotCid, /^bafy/)
  })
  it('a template may come from a branch, a tag, a commit or a folder', async () => {
    const { gitUrl, name, commit: main } = await repository({ 'a.txt': 'a' })
    const inside = Object.fromEntries(
      Object.entries(files(FULL)).map(([path, text]) => [`tpl/one/${path}`, text]),
    )
    const commit = await commitTo(root, name, inside, { branch: 'team/next', tag: 'v1' })
    const path = 'tpl/one'
    for (const more of [
      { branch: 'team/next' },
      { branch: 'refs/heads/team/next' },
      { ref: 'refs/heads/team/next' },
      { ref: 'v1' },
      { ref: commit },
    ])
      assert.equal((await submit({ gitUrl, path, ...more })).gitCommitSha, commit, JSON.stringify(more))
    assert.equal((await submit({ gitUrl, path: '/tpl/one/', branch: 'team/next' })).gitCommitSha, commit)
    assertError(await api.post(TEMPLATES, { gitUrl, path }), 400, 'path: the repository has no such folder')
    assert.equal((await validate({ gitUrl })).body.commitSha, main)
  })
  it('a refused template from a repository keeps nothing', async () => {
    const taken = (await make()).slug
    const { gitUrl } = await repository()
    const { body } = await validate({ gitUrl })
    assert.ok(body.valid)
    const probe = await submit({ gitUrl })
    assertError(await api.post(TEMPLATES, { gitUrl, slugOverride: taken }), 409, 'slug: is taken')
    assertError(await api.post(TEMPLATES, { gitUrl, slugOverride: 'page' }), 409, 'slug: is taken')
    assert.equal((await api.delete(`${TEMPLATES}/${probe.templateId}`)).status, 200)
    const cid = CID.parse(probe.snapshotCid)
    await until('its content is released', async () => !(await isPinned(cid, 'private')), 60_000)
    assertError(await api.post(TEMPLATES, { gitUrl, slugOverride: taken }), 409, 'slug: is taken')
    await until('its content is released', async () => !(await isPinned(cid, 'private')), 60_000)
  })
})

describe('rereading a repository', () => {
  it('rereading a repository gives the template its new files, and releases the previous ones', async () => {
    const { gitUrl, name } = await repository()
    const before = await submit({ gitUrl, branch: 'main', category: 'kept' })
    const commit = await commitTo(
      root,
      name,
      files(manifest({ agent: { name: 'New', vibe: 'loud' } }), 'second'),
    )
    const path = `${TEMPLATES}/${before.templateId}`
    const { status, body } = await api.put(path, {})
    assert.equal(status, 200, JSON.stringify(body))
    const { template } = body
    assert.deepEqual(
      [template.gitCommitSha, template.gitUrl, template.version, template.defaultVibe, template.category],
      [commit, gitUrl, 2, 'loud', 'kept'],
    )
    assert.equal(template.slug, before.slug)
    const cid = CID.parse(before.snapshotCid)
    await until('the previous files are released', async () => !(await isPinned(cid, 'private')), 60_000)
    assert.equal((await api.put(path, { name: 'Only named' })).body.template.version, 2)
  })
  it('a template may move to another branch, another repository or a snapshot', async () => {
    const { gitUrl, name } = await repository()
    const next = await commitTo(root, name, files(FULL), { branch: 'next' })
    const path = `${TEMPLATES}/${(await submit({ gitUrl })).templateId}`
    assert.equal((await api.put(path, { branch: 'next' })).body.template.gitCommitSha, next)
    const other = await repository()
    const { template } = (await api.put(path, { gitUrl: other.gitUrl })).body
    assert.deepEqual([template.gitUrl, template.gitCommitSha], [other.gitUrl, other.commit])
    const { cid } = await snapshot()
    const changed = (await api.put(path, { agentId: agent.agentId })).body.template
    assert.deepEqual([changed.gitUrl, changed.snapshotCid, changed.version], [null, cid, 4])
    const message = 'gitUrl: must be given, since the template does not come from a repository'
    assertError(await api.put(path, { branch: 'next' }), 400, message)
  })
})

describe('checking a repository', () => {
  it('checking a repository returns its manifest, README and files', async () => {
    const { gitUrl, commit } = await repository(files(FULL, 'mark'))
    assert.deepEqual((await validate({ gitUrl, ref: 'refs/heads/main' })).body, {
      valid: true,
      errors: [],
      manifest: JSON.parse(FULL),
      readme: '# Librarian\n\nmark\n',
      files: ['README.md', 'manifest.json', 'workspace/AGENTS.md'],
      commitSha: commit,
    })
  })
  it('checking a repository lists all errors', async () => {
    const { gitUrl } = await repository({
      'manifest.json': '{',
      'workspace/a': 'a',
      lib: { submodule: 'a'.repeat(40) },
    })
    const { status, body } = await validate({ gitUrl })
    assert.deepEqual([status, body.valid, body.manifest, body.readme], [200, false, null, null])
    assert.match(body.errors[0], /^manifest\.json is not valid JSON/)
    assert.deepEqual(body.errors.slice(1), [
      'README.md is missing',
      'lib: is a submodule, which a template cannot have',
    ])
  })
  it('checking a repository lists its branches and tags', async () => {
    const { gitUrl, name } = await repository()
    await commitTo(root, name, { a: 'a' }, { branch: 'Feature/one', tag: 'v1.0' })
    assert.deepEqual((await api.post(`${TEMPLATES}/branches`, { gitUrl })).body, {
      branches: ['Feature/one', 'main'],
    })
    const refs = (more: object) => api.post(`${TEMPLATES}/refs`, { gitUrl, ...more })
    const all = { branches: ['Feature/one', 'main'], tags: ['v1.0'], defaultBranch: 'main' }
    assert.deepEqual((await refs({})).body, all)
    assert.deepEqual((await refs({ search: 'feature' })).body, {
      ...all,
      branches: ['Feature/one'],
      tags: [],
    })
    assertError(await api.post(`${TEMPLATES}/refs`, {}), 400, /^gitUrl: /)
  })
})
