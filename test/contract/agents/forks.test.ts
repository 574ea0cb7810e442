/** Forks as rows: what they copy, and what a request may not. Their starts are in `openclaw/fork.test.ts`. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { EXAMPLE_CID } from '../../../src/http/fields.ts'
import { assertError } from '../../support/client.ts'
import { openContext, type Workspace } from '../context.ts'
import { insertAgent, insertSnapshot } from './rows.ts'

const context = await openContext()
const { sql } = context
const AT_ONCE = { prefer: 'respond-async' }

/** A workspace whose agents no worker starts, and an agent with two snapshots. */
async function withParent(plan?: string) {
  const workspace = await context.workspace(plan)
  await neverStart(workspace)
  const agent = await insertAgent(context, workspace, 'Ada')
  const older = await insertSnapshot(context, workspace, agent, { 'a.txt': randomUUID() })
  const newest = await insertSnapshot(context, workspace, agent, { 'b.txt': randomUUID() })
  const fork = (body?: object, headers: Record<string, string> = {}) =>
    workspace.api.post(`${agent.path}/fork`, body, { ...AT_ONCE, ...headers })
  return { ...workspace, agent, older, newest, fork }
}

async function neverStart({ id }: Workspace): Promise<void> {
  const trigger = `never_start_${randomUUID().replaceAll('-', '')}`
  await sql(`CREATE FUNCTION ${trigger}() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      NEW.purged_at := now();
      RETURN NEW;
    END $$;
    CREATE TRIGGER ${trigger} BEFORE INSERT ON agent FOR EACH ROW WHEN (NEW.workspace_id = '${id}')
      EXECUTE FUNCTION ${trigger}()`)
}

const snapshotsOf = async (agentId: string) =>
  (
    await sql('SELECT cid FROM snapshot WHERE agent_id = (SELECT id FROM agent WHERE agent_id = $1)', [
      agentId,
    ])
  ).map(({ cid }) => cid)

describe('POST /v0/agents/{agentId}/fork', () => {
  it('a fork has its own id and token, and names its parent, even after the parent is deleted', async () => {
    const { api, agent, fork, newest } = await withParent()
    const reply = await fork()
    assert.equal(reply.status, 202, JSON.stringify(reply.body))
    const [made] = reply.body.forks
    assert.equal(reply.body.forks.length, 1)
    assert.equal(reply.headers.get('operation-id'), made.operation.id)
    const { agentId, gatewayToken, forkedFrom, name, snapshotCid } = made.agent
    assert.deepEqual([forkedFrom, name, snapshotCid], [agent.agentId, 'Ada fork', newest.cid])
    assert.ok(agentId !== agent.agentId && gatewayToken !== agent.gatewayToken)
    assert.equal((await api.delete(agent.path)).status, 200)
    assert.equal((await api.get(`/v0/agents/${agentId}`)).body.agent.forkedFrom, agent.agentId)
    const listed = (await api.get('/v0/agents')).body.agents
    assert.deepEqual(
      listed.map((one: typeof made.agent) => [one.agentId, one.forkedFrom]),
      [[agentId, agent.agentId]],
    )
    assert.deepEqual(await snapshotsOf(agentId), [newest.cid])
    const [event] = await sql(
      `SELECT data->>'forkedFrom' AS parent FROM event_pending WHERE type = 'agent.created' AND resource_id = $1
       UNION SELECT data->>'forkedFrom' FROM event WHERE type = 'agent.created' AND resource_id = $1`,
      [agentId],
    )
    assert.equal(event?.parent, agent.agentId)
  })

  it('a fork has its parent’s secrets, skills and limits, and no channel, domain or port', async () => {
    const { api, id, agent, fork } = await withParent()
    const { path } = agent
    const secret = (await api.post('/v0/secrets', { name: 'TOKEN', value: 'hidden' })).body.secret
    const ok = async (reply: Promise<{ status: number; body: unknown }>) => {
      const { status, body } = await reply
      assert.ok(status < 300, `${status} ${JSON.stringify(body)}`)
    }
    await ok(api.post(`${path}/secrets`, { secretIds: [secret.id] }))
    await ok(api.put(`${path}/egress`, { mode: 'listed', allow: ['api.example.com'], deny: [] }))
    await ok(api.put(`${path}/model/budget`, { day: { usd: '2.00' } }))
    await ok(api.post(`${path}/model/pause`, {}))
    await ok(api.post(`${path}/domains`, { subdomain: `s${randomUUID().slice(0, 8)}`, targetPort: 4000 }))
    await ok(
      api.put(`${path}/port-forwarding`, { mappings: [{ port: 4000, pathPrefix: '/x', protected: true }] }),
    )
    await sql(`INSERT INTO agent_channel (agent_id, channel, settings) VALUES ($1, 'telegram', '{}')`, [
      agent.id,
    ])
    const [skill] = await sql(
      `WITH s AS (INSERT INTO skill (id, workspace_id, user_id, name) VALUES (gen_random_uuid(), $1, $1, 'notes') RETURNING id),
         v AS (INSERT INTO skill_version (id, skill_id, workspace_id, cid, network) SELECT gen_random_uuid(), id, $1, $3, 'private' FROM s
               RETURNING id, skill_id)
       INSERT INTO agent_skill (agent_id, skill_id, version_id) SELECT $2, skill_id, id FROM v RETURNING version_id`,
      [id, agent.id, EXAMPLE_CID],
    )
    assert.ok(skill)
    const { agentId } = (await fork()).body.forks[0].agent
    const at = `/v0/agents/${agentId}`
    const { secrets, portForwarding, skills } = (await api.get(at)).body
    assert.deepEqual(
      [secrets.map(({ id }: { id: string }) => id), skills.map(({ name }: { name: string }) => name)],
      [[secret.id], ['notes']],
    )
    const { mode, allow, source } = (await api.get(`${at}/egress`)).body.data
    assert.deepEqual([mode, allow, source], ['listed', ['api.example.com'], 'agent'])
    assert.equal((await api.get(`${at}/model/budget`)).body.data.day.usd.limit, '2.00')
    assert.ok((await api.get(`${at}/model`)).body.data.paused)
    const [left] = await sql(
      `SELECT (SELECT count(*)::int FROM agent_channel c WHERE c.agent_id = a.id) AS channels,
         (SELECT count(*)::int FROM domain d WHERE d.agent_id = a.id) AS domains FROM agent a WHERE agent_id = $1`,
      [agentId],
    )
    assert.deepEqual([left, portForwarding], [{ channels: 0, domains: 0 }, []])
  })

  it('several forks get numbers, and begin with the snapshot that the request names', async () => {
    const { api, agent, older } = await withParent()
    const body = { name: 'Try', count: 3, snapshotCid: older.cid }
    // Waits for the starts, which end at once.
    const { forks } = (await api.post(`${agent.path}/fork`, body)).body
    assert.deepEqual(
      forks.map(({ agent }: { agent: { name: string } }) => agent.name),
      ['Try 1', 'Try 2', 'Try 3'],
    )
    for (const { agent } of forks) assert.deepEqual(await snapshotsOf(agent.agentId), [older.cid])
  })

  it('forks beyond the limit of the plan are errors next to those that fit; 403 if none does', async () => {
    const plan = `two ${randomUUID()}`
    await sql(
      `INSERT INTO plan (name, agent_limit, channels, custom_domains, pin_by_cid) VALUES ($1, 2, true, true, true)`,
      [plan],
    )
    const { api, fork } = await withParent(plan)
    const { status, body } = await fork({ count: 2 })
    assert.equal(status, 202)
    assert.equal(body.forks[0].agent.name, 'Ada fork 1')
    assert.deepEqual(body.forks[1], { error: 'Agent limit reached', code: 'agent_limit' })
    assert.equal((await api.get('/v0/agents')).body.agents.length, 2)
    assertError(await fork(), 403, 'Agent limit reached')
  })

  it('a repeat with the same Idempotency-Key finds the same forks, and another body returns 422', async () => {
    const { api, fork } = await withParent()
    const key = { 'idempotency-key': randomUUID() }
    const ids = async () =>
      (await fork({ count: 2 }, key)).body.forks.map(
        ({ agent }: { agent: { agentId: string } }) => agent.agentId,
      )
    assert.deepEqual(await ids(), await ids())
    assert.equal((await api.get('/v0/agents')).body.agents.length, 3)
    assertError(await fork({ count: 3 }, key), 422, /^Idempotency-Key: already used/)
  })

  it('a fork of a foreign snapshot returns 404, and of an agent that was never saved 409', async () => {
    const { api, id, fork } = await withParent()
    const other = await withParent()
    for (const snapshotCid of [other.newest.cid, EXAMPLE_CID])
      assertError(await fork({ snapshotCid }), 404, 'Snapshot not found')
    const bare = await insertAgent(context, { id })
    assertError(await api.post(`${bare.path}/fork`, {}, AT_ONCE), 409, /never saved/)
    assert.equal((await api.get('/v0/agents')).body.agents.length, 2)
  })
})
