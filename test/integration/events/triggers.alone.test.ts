/** Each row change that is an event leaves one event in its transaction; other changes leave none. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { transaction } from '../../../src/db/pool.ts'
import { expireDomains, noteTakenDomain } from '../../../src/db/statements/domains.ts'
import { addEgressCounts } from '../../../src/db/statements/egress.ts'
import { noteModelBudgets } from '../../../src/db/statements/models.ts'
import { noteTaskRuns } from '../../../src/db/statements/task-runs.ts'
import { EVENT_TYPES, type EventType, eventTypes } from '../../../src/events/event-types.ts'
import { publishQuotaReached } from '../../../src/files/uploads/reservations.ts'
import { publishLowDisks } from '../../../src/health/disk-events.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'

let database: TestDatabase
let workspaceId: string
const userId = uuidv7()
/** Types that any test of this file has seen. */
const met = new Set<string>()
before(async () => {
  database = await startDatabase()
  workspaceId = await database.createWorkspace()
  await run(`INSERT INTO app_user (id, name) VALUES ($1, 'somebody')`, userId)
})
after(() => database?.stop())
beforeEach(() => database.pool.query('TRUNCATE event_pending'))

const run = (sql: string, ...values: unknown[]) => database.pool.query(sql, values)

interface Left {
  type: EventType
  resource: string
  data: Record<string, unknown>
}

/** Events left since the last call, oldest first, checked against the declared shape of their type. */
async function left(): Promise<Left[]> {
  const { rows } = await database.pool.query<Left & { workspace: string }>(
    `WITH taken AS (DELETE FROM event_pending RETURNING *)
     SELECT type, workspace_id AS workspace, resource_type || ':' || resource_id AS resource, data FROM taken ORDER BY seq`,
  )
  return rows.map(({ workspace, ...event }) => {
    met.add(event.type)
    assert.equal(workspace, workspaceId)
    assert.equal(event.resource.split(':')[0], eventTypes[event.type].resource)
    assert.deepEqual(eventTypes[event.type].data.strict().parse(event.data), event.data)
    return event
  })
}
const leftTypes = async () => (await left()).map(({ type }) => type)

async function insertFile(status: string, db: Pick<TestDatabase['pool'], 'query'> = database.pool) {
  const id = uuidv7()
  await db.query(
    `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, name, keyvalues, host_nodes)
     VALUES ($1, $2, 'public', $3, 'c', 'c', 'a file', '{}', '{}')`,
    [id, workspaceId, status],
  )
  return id
}

describe('events of files', () => {
  it('a pin leaves an event when it is accepted, gets its first block, and is pinned', async () => {
    const id = await insertFile('prechecking')
    for (const status of ['backfilled', 'searching', 'retrieving', 'retrieving', 'pinned', 'pinned'])
      await run('UPDATE file SET status = $2 WHERE id = $1', id, status)
    const events = await left()
    assert.deepEqual(
      events.map(({ type }) => type),
      ['file.created', 'pin.retrieving', 'pin.pinned'],
    )
    for (const { resource } of events) assert.equal(resource, `file:${id}`)
    assert.equal(events[0]?.data.status, 'prechecking')
  })

  it('a failed pin leaves an event, and one more if the plan is the reason', async () => {
    for (const status of ['expired', 'over_max_size', 'invalid_object', 'bad_host_node']) {
      const id = await insertFile('searching')
      await run('UPDATE file SET status = $2 WHERE id = $1', id, status)
      assert.deepEqual(await leftTypes(), ['file.created', 'pin.failed'], status)
    }
    const id = await insertFile('retrieving')
    await run(`UPDATE file SET status = 'over_free_limit' WHERE id = $1`, id)
    assert.deepEqual(await leftTypes(), ['file.created', 'pin.failed', 'quota.reached'])
  })

  it('a file leaves an event for each change, and one when it is deleted', async () => {
    const group = uuidv7()
    await run(
      `INSERT INTO file_group (id, workspace_id, network, name) VALUES ($1, $2, 'public', 'g')`,
      group,
      workspaceId,
    )
    const id = await insertFile('pinned')
    await left()
    await run(`UPDATE file SET name = 'a file', keyvalues = '{}' WHERE id = $1`, id)
    assert.deepEqual(await left(), [])
    await run(`UPDATE file SET name = 'b', keyvalues = '{"a":"b"}', group_id = $2 WHERE id = $1`, id, group)
    const [updated] = await left()
    assert.deepEqual(
      [updated?.type, updated?.data.changed, updated?.data.groupId],
      ['file.updated', ['name', 'keyvalues', 'groupId'], group],
    )
    await run('UPDATE file SET removed_at = now() WHERE id = $1', id)
    await run('DELETE FROM file WHERE id = $1', id)
    assert.deepEqual(await leftTypes(), ['file.deleted'])
    const other = await insertFile('pinned')
    await run('DELETE FROM file WHERE id = $1', other)
    assert.deepEqual(await leftTypes(), ['file.created', 'file.deleted'])
  })

  it('each file that one statement inserts leaves an event', async () => {
    await run(
      `INSERT INTO file (id, workspace_id, network, status, cid, cid_v1, keyvalues, host_nodes)
       SELECT gen_random_uuid(), $1, 'private', 'pinned', 'c', 'c', '{}', '{}' FROM generate_series(1, 3)`,
      workspaceId,
    )
    assert.deepEqual(await leftTypes(), ['file.created', 'file.created', 'file.created'])
  })

  it('a group and a swap leave events', async () => {
    const id = uuidv7()
    await run(
      `INSERT INTO file_group (id, workspace_id, network, name) VALUES ($1, $2, 'public', 'g')`,
      id,
      workspaceId,
    )
    for (const name of ['g', 'h']) await run('UPDATE file_group SET name = $2 WHERE id = $1', id, name)
    await run('DELETE FROM file_group WHERE id = $1', id)
    await run(`INSERT INTO swap (workspace_id, network, cid_v1) VALUES ($1, 'public', 'c')`, workspaceId)
    assert.deepEqual(await leftTypes(), ['group.created', 'group.updated', 'group.deleted', 'swap.created'])
  })
})

describe('events of operations', () => {
  it('an operation leaves an event for each step and its end, and none for its lease', async () => {
    const id = uuidv7()
    await run(
      `INSERT INTO operation (id, workspace_id, kind, queue, target_id) VALUES ($1, $2, 'pin.add', 'pins', $1)`,
      id,
      workspaceId,
    )
    for (const change of [
      `state = 'running', version = 1`,
      'lease_until = now()',
      `step = 'retrieving', progress = '{"blocks":1}'`,
      `step = 'retrieving', progress = '{"blocks":1}'`,
      `state = 'queued', error_code = 'stalled'`,
      `state = 'succeeded'`,
    ])
      await run(`UPDATE operation SET ${change} WHERE id = $1`, id)
    assert.deepEqual(
      (await left()).map(({ type, data }) => [type, data.state, data.step]),
      [
        ['operation.progress', 'running', 'retrieving'],
        ['operation.progress', 'succeeded', 'retrieving'],
      ],
    )
  })
})

describe('events of accounts', () => {
  it('a key leaves events without its secrets when it is created and when it is revoked', async () => {
    const insert = (id: string) =>
      run(
        `INSERT INTO api_key (id, workspace_id, user_id, name, public_key, secret_hash, scopes)
         VALUES ($1::uuid, $2, $3, 'ci', $1::text, 'secret', '{org:files:read}')`,
        id,
        workspaceId,
        userId,
      )
    const [revoked, deleted] = [uuidv7(), uuidv7()]
    await insert(revoked)
    await run('UPDATE api_key SET uses = 1, last_used_at = now() WHERE id = $1', revoked)
    for (let times = 0; times < 2; times++)
      await run('UPDATE api_key SET revoked_at = now() WHERE id = $1', revoked)
    await run('DELETE FROM api_key WHERE id = $1', revoked)
    await insert(deleted)
    await run('DELETE FROM api_key WHERE id = $1', deleted)
    const events = await left()
    assert.deepEqual(
      events.map(({ type }) => type),
      ['key.created', 'key.revoked', 'key.created', 'key.revoked'],
    )
    assert.deepEqual(events[0]?.data, { name: 'ci', userId, scopes: ['org:files:read'] })
  })

  it('a member and an invitation leave events', async () => {
    await run(`INSERT INTO membership VALUES ($1, $2, 'viewer')`, workspaceId, userId)
    for (const role of ['viewer', 'member'])
      await run('UPDATE membership SET role = $2 WHERE user_id = $1', userId, role)
    await run('DELETE FROM membership WHERE user_id = $1', userId)
    for (const ending of ['accepted_at = now(), accepted_by = invited_by', 'revoked_at = now()']) {
      const id = uuidv7()
      await run(
        `INSERT INTO invitation (id, workspace_id, role, email, token_hash, invited_by, expires_at)
         VALUES ($1::uuid, $2, 'member', 'a@example.com', $1::text::bytea, $3, now())`,
        id,
        workspaceId,
        userId,
      )
      await run(`UPDATE invitation SET ${ending} WHERE id = $1`, id)
    }
    const ofMembers = ['member.added', 'member.updated', 'member.removed']
    const ofInvitations = ['created', 'accepted', 'created', 'revoked'].map((what) => `invitation.${what}`)
    assert.deepEqual(await leftTypes(), [...ofMembers, ...ofInvitations])
  })
})

describe('events of webhooks', () => {
  it('a disabled webhook leaves an event without its secret, and its deliveries leave none', async () => {
    const id = uuidv7()
    await run(
      `INSERT INTO webhook (id, workspace_id, url, events, secret) VALUES ($1, $2, 'https://example.com/', '{*}', 'hidden')`,
      id,
      workspaceId,
    )
    for (const reason of ['failing', 'gone', null])
      await run('UPDATE webhook SET disabled_reason = $2 WHERE id = $1', id, reason)
    await run(
      `INSERT INTO operation (id, workspace_id, kind, queue, target_id) VALUES ($1, $2, 'webhook.deliver', 'webhooks', $1)`,
      id,
      workspaceId,
    )
    await run(`UPDATE operation SET state = 'succeeded' WHERE id = $1`, id)
    assert.deepEqual(
      (await left()).map(({ type, data }) => [type, data]),
      [['webhook.disabled', { url: 'https://example.com/', reason: 'failing' }]],
    )
  })
})

describe('events of agents', () => {
  it('an agent leaves events for its starts, its deletion, and changes of its status or pause', async () => {
    const { id, agentId } = await insertAgentRow(database.pool, { workspaceId, status: 'starting' })
    const [first, second] = [uuidv7(), uuidv7()]
    for (const [status, start] of [
      ...['starting', 'starting', 'running', 'running'].map((status) => [status, first]),
      ...['starting', 'starting', 'not_running', 'starting', 'running'].map((status) => [status, second]),
    ])
      await run('UPDATE agent SET status = $2, start_operation_id = $3 WHERE id = $1', id, status, start)
    for (const time of ['now()', 'clock_timestamp()', 'NULL', 'NULL'])
      await run(`UPDATE agent SET model_paused_at = ${time} WHERE id = $1`, id)
    for (let times = 0; times < 2; times++) await run('UPDATE agent SET deleted_at = now() WHERE id = $1', id)
    await run(`UPDATE agent SET status = 'not_running', start_operation_id = $2 WHERE id = $1`, id, first)
    const events = await left()
    const types = events.map(({ type }) => type.split('.').at(-1)).join(' ')
    assert.equal(types, 'created starting running stopped starting error running paused resumed deleted')
    for (const { resource, data } of events)
      assert.deepEqual([resource, data.agentId], [`agent:${agentId}`, agentId])
  })

  it('an agent’s resources leave events with its id, and without the token of a channel', async () => {
    const { id, agentId } = await insertAgentRow(database.pool, { workspaceId })
    await left()
    await run(
      `INSERT INTO snapshot (id, agent_id, workspace_id, user_id, network, cid, commit_sha, commit_object, tree_sha)
       VALUES ($1, $2, $3, $1, 'private', 'c', 'abc', '', 'def')`,
      uuidv7(),
      id,
      workspaceId,
    )
    await run(
      `INSERT INTO agent_channel (agent_id, channel, settings, ciphertext) VALUES ($1, 'telegram', '{}', 'hidden')`,
      id,
    )
    const update = 'UPDATE agent_channel SET settings = $2, updated_at = now() WHERE agent_id = $1'
    for (const settings of ['{}', '{"a":1}']) await run(update, id, settings)
    await run('DELETE FROM agent_channel WHERE agent_id = $1', id)
    const domain = uuidv7()
    await run(
      `INSERT INTO domain (id, agent_id, workspace_id, user_id, custom_domain, target_port, status)
       VALUES ($1, $2, $3, $1, 'ada.example.com', 3000, 'pending_ownership')`,
      domain,
      id,
      workspaceId,
    )
    for (let times = 0; times < 2; times++)
      await run(`UPDATE domain SET status = 'verified' WHERE id = $1`, domain)
    const events = await left()
    assert.deepEqual(
      events.map(({ type }) => type),
      ['snapshot.created', 'channel.created', 'channel.updated', 'channel.deleted', 'domain.verified'],
    )
    for (const { data } of events) assert.equal(data.agentId, agentId)
    assert.ok(!JSON.stringify(events).includes('hidden'))
  })
})

describe('events without a row change', () => {
  it('uploads and pins that exceed the plan leave an event of the workspace', async () => {
    for (let times = 0; times < 2; times++) await publishQuotaReached(database.pool, workspaceId)
    const id = await insertFile('retrieving')
    await run(`UPDATE file SET status = 'over_free_limit' WHERE id = $1`, id)
    const events = (await left()).filter(({ type }) => type === 'quota.reached')
    const resource = `workspace:${workspaceId}`
    assert.deepEqual(events, [
      { type: 'quota.reached', resource, data: { by: 'upload', fileId: null } },
      { type: 'quota.reached', resource, data: { by: 'pin', fileId: id } },
    ])
  })

  it('a custom domain leaves one event when it expires or is taken by another agent', async () => {
    const { id: agent, agentId } = await insertAgentRow(database.pool, { workspaceId })
    const add = async (age: string) => {
      const id = uuidv7()
      await run(
        `INSERT INTO domain (id, agent_id, workspace_id, user_id, custom_domain, target_port, status, created_at)
         VALUES ($1, $2, $3, $1, 'grace.example.com', 3000, 'pending_ownership', now() - $4::interval)`,
        id,
        agent,
        workspaceId,
        age,
      )
      return id
    }
    const old = await add('14 days 1 minute')
    const young = await add('13 days')
    await left()
    for (let times = 0; times < 2; times++) {
      await expireDomains.run(database.pool, 10)
      await noteTakenDomain.run(database.pool, young)
    }
    const data = { agentId, customDomain: 'grace.example.com' }
    assert.deepEqual(await left(), [
      { type: 'domain.failed', resource: `domain:${old}`, data: { ...data, reason: 'unproven' } },
      { type: 'domain.failed', resource: `domain:${young}`, data: { ...data, reason: 'taken' } },
    ])
  })

  it('a task run leaves one event whatever its agent’s clock shows, and none of a deleted agent', async () => {
    const { id, agentId } = await insertAgentRow(database.pool, { workspaceId })
    await left()
    const times = { startedAt: '2026-11-25T08:00:00.000Z', endedAt: '9999-01-01T00:00:00.000Z' }
    const task = { taskId: 'task', name: '<b>"; DROP TABLE event' }
    const run = { ...times, ...task, runId: 'run', status: 'error', durationMs: null, error: 'it failed' }
    const note = (...runs: object[]) => noteTaskRuns.run(database.pool, id, JSON.stringify(runs))
    await note(run)
    await note({ ...run, runId: 'second' }, run)
    const { endedAt, ...data } = { ...run, agentId }
    const resource = `task:${agentId}/task`
    assert.deepEqual(await left(), [
      { type: 'task.ran', resource, data },
      { type: 'task.ran', resource, data: { ...data, runId: 'second' } },
    ])
    await database.pool.query('UPDATE agent SET deleted_at = now() WHERE id = $1', [id])
    await note({ ...run, runId: 'third' })
    assert.deepEqual(await leftTypes(), ['agent.deleted'])
  })

  it('a reached budget, and the first denial of a host on a day, leave an event', async () => {
    const data = eventTypes['model.budget.reached'].example
    await noteModelBudgets.run(database.pool, JSON.stringify([{ workspaceId, agentId: null, data }]))
    assert.deepEqual((await left())[0]?.data, { ...data, agentId: null })
    const { agentId } = await insertAgentRow(database.pool, { workspaceId })
    const denied = { agentId, host: 'a.example', requests: 0, denied: 1, bytesSent: 0, bytesReceived: 0 }
    for (let i = 0; i < 2; i++) await addEgressCounts.run(database.pool, JSON.stringify([denied]))
    assert.deepEqual(await leftTypes(), ['agent.created', 'egress.denied'])
  })

  it('a low disk leaves one event per state if an owner is an admin of the instance', async () => {
    const folders = { data: '.' }
    const look = () => publishLowDisks(database.pool, { folders, reserveBytes: Number.MAX_SAFE_INTEGER })
    await look()
    assert.deepEqual(await left(), [])
    await run(`INSERT INTO app_user (id, name, is_admin) VALUES ($1, 'an admin', true)`, workspaceId)
    await run(`INSERT INTO membership (workspace_id, user_id, role) VALUES ($1, $1, 'owner')`, workspaceId)
    assert.deepEqual(await leftTypes(), ['member.added'])
    await look()
    const { rows } = await run('SELECT type, data FROM event_pending')
    await look()
    const [event, ...more] = await left()
    assert.deepEqual([event?.type, event?.data.state, event?.data.disk], ['disk.low', 'down', 'data'])
    assert.deepEqual([rows.length, more], [1, []])
  })
})

describe('a change and its event', () => {
  it('a rolled-back change leaves no event', async () => {
    const id = await insertFile('pinned')
    await left()
    const undone = transaction(database.pool, async (tx) => {
      await tx.query(`UPDATE file SET name = 'b' WHERE id = $1`, [id])
      throw new Error('undone')
    })
    await assert.rejects(undone, /undone/)
    assert.deepEqual(await left(), [])
  })

  it('a restore leaves no events', async () => {
    await transaction(database.pool, async (tx) => {
      await tx.query("SET LOCAL berth.without_events = 'on'")
      await tx.query(
        `INSERT INTO file_group (id, workspace_id, network, name) VALUES (gen_random_uuid(), $1, 'public', 'g')`,
        [workspaceId],
      )
      await insertFile('pinned', tx)
    })
    assert.deepEqual(await left(), [])
    await insertFile('pinned')
    assert.deepEqual(await leftTypes(), ['file.created'])
  })

  it('every event type is left by some change', () => {
    assert.deepEqual([...met].sort(), [...EVENT_TYPES].sort())
  })
})
