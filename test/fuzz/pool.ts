/** Values for random requests. */
import { skillMd, uploadFolder } from '../contract/agents/skill-folders.ts'
import { type Context, inlineCid, type Workspace } from '../contract/context.ts'
import type { Client } from '../support/client.ts'
import type { Pool } from './arbitrary.ts'

/** A workspace in which everything is allowed, except that valid requests start no agents. */
export async function createWorkspace({ sql, workspace }: Context): Promise<Workspace> {
  await sql(
    `INSERT INTO plan (name, agent_limit, channels, custom_domains, pin_by_cid)
     VALUES ('fuzz', 0, true, true, true) ON CONFLICT DO NOTHING`,
  )
  const own = await workspace('fuzz')
  // The owner is the first user of the instance, and therefore an instance admin.
  return { ...own, api: await own.created({ scopes: ['admin', 'instance:write'] }) }
}

/** Existing resources, so that not every request ends in a 404. */
export async function createPool(api: Client): Promise<Pool> {
  const cids = Array.from({ length: 5 }, (_, i) => `${inlineCid(`fuzz ${i}`)}`)
  const pins = await Promise.all(cids.map((cid) => api.pin({ cid }, { wait: 30 })))
  const groups = await Promise.all(cids.map((name) => api.post('/v3/groups/public', { name })))
  const keys = await Promise.all(
    cids.map((keyName) => api.post('/v3/pinata/keys', { keyName, permissions: { admin: true } })),
  )
  const secrets = await Promise.all(
    ['OPENAI_API_KEY', 'CODEX_API_KEY', 'PLAIN'].map((name) => api.post('/v0/secrets', { name, value: 'x' })),
  )
  const [workspace] = (await api.get('/v0/workspaces')).body.data.workspaces
  const path = `/v0/workspaces/${workspace.id}`
  const [members, listed] = [
    await api.get(`${path}/members`),
    await api.get(`${path}/keys`, { name: 'bafk' }),
  ]
  const idsOf = (rows: { id: string }[]) => rows.map(({ id }) => id)
  const secretIds = secrets.map(({ body }) => body.secret.id)
  const files = pins.map(({ record }) => record.id)
  const operations = pins.map(({ operation }) => operation)
  const group = groups.map(({ body }) => body.data.id)
  const skills = await createSkills(api)
  const templates = (await api.get('/v0/templates')).body.templates
  const host_nodes = ['12D3KooWN5wpNZayhHtveWiTBL35x3pe4uyEotTfDjWhNM2Z4GRV', '/ip4/127.0.0.1/tcp/1/p2p/x']
  return {
    id: [...files, ...operations, ...group, ...secretIds],
    target: files,
    group,
    group_id: group,
    key: keys.map(({ body }) => body.pinata_api_key),
    cid: cids,
    pageToken: files.map((id) => Buffer.from(id).toString('base64')),
    host_nodes,
    origins: host_nodes,
    requestid: files,
    status: ['queued,pinning', 'pinned'],
    before: ['2026-01-01T00:00:00.0001Z', '9999-12-31T23:59:59+14:00'],
    after: ['0000-01-01T00:00:00Z', '2026-01-01T00:00:00-01:00'],
    meta: ['{}', '{"a":"b"}', '{"\\u0000":""}'],
    workspaceId: [workspace.id],
    invitationId: [(await api.post(`${path}/invitations`, { role: 'viewer' })).body.data.id],
    userId: idsOf(members.body.data.members),
    keyId: idsOf(listed.body.data.keys),
    secretId: secretIds,
    secretIds,
    channel: ['telegram', 'slack', 'discord', 'whatsapp'],
    path: ['workspace/AGENTS.md', '/home/node/clawd', '..'],
    resources: ['org:files:read', 'org:write'],
    skillId: skills.map(({ skillId }) => skillId),
    skillCid: skills.map(({ skillCid }) => skillCid),
    skillCids: skills.map(({ skillCid }) => skillCid),
    // A slug of the hub, slugs of shipped templates, and an unknown one.
    slug: ['@berth/platform', ...templates.map(({ slug }: { slug: string }) => slug), '@nobody/x'],
    templateId: templates.map(({ templateId }: { templateId: string }) => templateId),
    snapshotCid: cids,
    subdomain: ['fuzz-one', 'fuzz-two', 'berth', 'a.b'],
    customDomain: ['fuzz.example.com', 'other.example.org', 'localhost'],
    pathPrefix: ['/', '/app', '/v0', '/app/'],
    service: ['git-upload-pack', 'git-receive-pack'],
    issue: ['1'],
  }
}

/** Skills in the library, each an uploaded folder. */
async function createSkills(api: Client): Promise<{ skillId: string; skillCid: string }[]> {
  const skills = []
  for (const name of ['fuzz-one', 'fuzz-two']) {
    const { cid } = await uploadFolder(api, { 'SKILL.md': skillMd(name) })
    const { status, body } = await api.post('/v0/skills', { skillCid: cid, name })
    if (status !== 200 && status !== 201) throw new Error(JSON.stringify(body))
    skills.push(body.skill)
  }
  return skills
}
