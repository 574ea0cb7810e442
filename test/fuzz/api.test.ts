/**
 * Random requests to every route of `/openapi.json`. Whatever comes in, the answer is one that the document
 * declares, no error is the server's own fault, and the server is well afterwards.
 *
 * `BERTH_FUZZ_SEED` replays a run, `BERTH_FUZZ_SECONDS` bounds it (20).
 */
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { insertAgent } from '../contract/agents/rows.ts'
import { type Context, inlineCid, openContext, type Workspace } from '../contract/context.ts'
import { assertError, type Client } from '../support/client.ts'
import { type FuzzRequest, requests } from './arbitrary.ts'

const seed = Number(process.env.BERTH_FUZZ_SEED ?? Date.now() % 2 ** 31)
const seconds = Number(process.env.BERTH_FUZZ_SECONDS ?? 20)

test('no request brings the server out of its contract', async (t) => {
  t.diagnostic(`replay with BERTH_FUZZ_SEED=${seed}`)
  const context = await openContext()
  const { anonymous, berth } = context
  const own = await createWorkspace(context)
  const { api, created, name } = own
  // Many: some requests delete one.
  const agents = await Promise.all(Array.from({ length: 200 }, () => insertAgent(context, own)))
  await berth('users', 'add', 'fuzz-viewer', '--workspace', name, '--role', 'viewer')
  const callers: Record<FuzzRequest['caller'], Client> = {
    admin: api,
    viewer: await created('--user', 'fuzz-viewer'),
    nobody: anonymous,
    agent: agents[0]?.gateway ?? anonymous,
    garbage: anonymous.as('garbage'),
  }

  const agentId = agents.map(({ agentId }) => agentId)
  const request = requests(anonymous.document, { ...(await createPool(api)), agentId })
  const statuses = new Map<number, number>()
  await fc.assert(
    fc.asyncProperty(fc.array(request, { minLength: 1, maxLength: 8 }), async (batch) => {
      const replies = await Promise.all(
        batch.map(({ caller, method, path, headers, body }) =>
          callers[caller].request(method, path, {
            headers,
            body: method === 'GET' || method === 'HEAD' ? undefined : body,
          }),
        ),
      )
      for (const { status, body } of replies) {
        // The agents are rows without containers.
        assert.ok(status < 500 || isNotRunning(body), `status ${status}`)
        statuses.set(status, (statuses.get(status) ?? 0) + 1)
      }
    }),
    { seed, numRuns: 1_000_000, interruptAfterTimeLimit: seconds * 1000, markInterruptAsFailure: false },
  )
  t.diagnostic(`answers by status: ${JSON.stringify(Object.fromEntries(statuses))}`)
  for (const status of [200, 400, 401, 403, 404]) assert.ok(statuses.get(status), `${status} was never met`)

  assert.equal((await anonymous.get('/readyz')).body.status, 'ok')
  const { record } = await api.pin({ cid: `${inlineCid('after the fuzz')}` }, { wait: 30 })
  assert.equal(record.status, 'pinned')
  assertError(await anonymous.get('/v3/files/public'), 401, /^Missing Authorization header/)
})

const isNotRunning = (body: unknown) =>
  (body as { error?: unknown } | undefined)?.error === 'The agent is not running'

/** A workspace in which everything may be done, but for bringing up an agent with each request that is right. */
async function createWorkspace({ sql, workspace }: Context): Promise<Workspace> {
  await sql(
    `INSERT INTO plan (name, agent_limit, channels, custom_domains, pin_by_cid)
     VALUES ('fuzz', 0, true, true, true) ON CONFLICT DO NOTHING`,
  )
  return workspace('fuzz')
}

/** Things that are there, so that not every request ends as a 404. */
async function createPool(api: Client) {
  const cids = Array.from({ length: 5 }, (_, i) => `${inlineCid(`fuzz ${i}`)}`)
  const pins = await Promise.all(cids.map((cid) => api.pin({ cid }, { wait: 30 })))
  const groups = await Promise.all(cids.map((name) => api.post('/v3/groups/public', { name })))
  const keys = await Promise.all(
    cids.map((keyName) => api.post('/v3/pinata/keys', { keyName, permissions: { admin: true } })),
  )
  const secrets = await Promise.all(
    ['OPENAI_API_KEY', 'CODEX_API_KEY', 'PLAIN'].map((name) => api.post('/v0/secrets', { name, value: 'x' })),
  )
  const secretIds = secrets.map(({ body }) => body.secret.id)
  const files = pins.map(({ record }) => record.id)
  const operations = pins.map(({ operation }) => operation)
  const group = groups.map(({ body }) => body.data.id)
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
    secretId: secretIds,
    secretIds,
    channel: ['telegram', 'slack', 'discord', 'whatsapp'],
    path: ['workspace/AGENTS.md', '/home/node/clawd', '..'],
    resources: ['org:files:read', 'org:write'],
  }
}
