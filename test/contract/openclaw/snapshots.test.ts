/** The history of an agent's workspace (contract 4.3, 7): listing, saving and resetting. */
import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { base16 } from 'multiformats/bases/base16'
import { base58btc } from 'multiformats/bases/base58'
import { CID } from 'multiformats/cid'
import { uuidv7 } from 'uuidv7'
import { assertError, type Reply } from '../../support/client.ts'
import { insertAgent, type RowAgent } from '../agents/rows.ts'
import { openContext } from '../context.ts'
import { newAgent, useStandIn } from './context.ts'

const MILLIS = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/
const WAIT = { prefer: 'wait=120' }
const UNKNOWN = 'bafybeigdyrzt5sfp7udm7hu76uh7y26nf3efuylqabf3oclgtqy55fbzdi'
const ACTIONS = [
  ['sync', undefined],
  ['reset', { snapshotCid: UNKNOWN }],
] as const

const context = await openContext()
const { workspace, sql } = context
const own = await workspace()
const { api } = own

/** A row of a history, as a sync would create it; no node has its content. */
async function insertSnapshot(agent: Pick<RowAgent, 'id'>, cid = UNKNOWN): Promise<string> {
  const commit = randomBytes(20).toString('hex')
  await sql(
    `INSERT INTO snapshot (id, agent_id, workspace_id, user_id, network, cid, commit_sha, commit_object, tree_sha,
       change_summary, content_diff)
     VALUES ($1, $2, $3, $4, 'private', $5, $6, '', $6, '1 added', '+x')`,
    [uuidv7(), agent.id, own.id, randomUUID(), cid, commit],
  )
  return commit
}

describe('the history of an agent', () => {
  it('the history of a new agent is empty', async () => {
    const { path, agentId, gateway } = await insertAgent(context, own)
    for (const client of [api, gateway])
      assert.deepEqual((await client.get(`${path}/snapshots`)).body, { agentId, snapshots: [] })
  })
  it('the history of an agent has ten snapshots per page, newest first', async () => {
    const agent = await insertAgent(context, own)
    const commits: string[] = []
    for (let i = 0; i < 13; i++) commits.unshift(await insertSnapshot(agent))
    const shas = ({ body }: Reply) => body.snapshots.map((one: { commitSha: string }) => one.commitSha)
    const first = await api.get(`${agent.path}/snapshots`)
    assert.deepEqual(shas(first), commits.slice(0, 10))
    const { userId, createdAt, ...snapshot } = first.body.snapshots[0]
    assert.match(userId, /^[0-9a-f-]{36}$/)
    assert.match(createdAt, MILLIS)
    assert.deepEqual(snapshot, {
      agentId: agent.agentId,
      snapshotCid: UNKNOWN,
      commitSha: commits[0],
      changeSummary: '1 added',
      contentDiff: '+x',
    })
    const pageToken = first.headers.get('next-page-token') ?? ''
    const second = await api.get(`${agent.path}/snapshots`, { pageToken })
    assert.deepEqual(shas(second), commits.slice(10))
    assert.equal(second.headers.get('next-page-token'), null)
    assert.deepEqual(shas(await api.get(`${agent.path}/snapshots`, { limit: '1' })), commits.slice(0, 1))
    assert.deepEqual(shas(await api.get(`${agent.path}/snapshots`, { limit: '100' })), commits)
  })
})

describe('the difference between snapshots', () => {
  it('the difference between snapshots returns 400 without both, and 404 for an unknown one', async () => {
    const [agent, sibling] = [await insertAgent(context, own), await insertAgent(context, own)]
    await insertSnapshot(agent)
    const of = `${agent.path}/snapshots/diff`
    assertError(await api.get(of, { from: UNKNOWN }), 400, /^to: /)
    assertError(await api.get(of, { from: 'latest', to: UNKNOWN }), 400, /^from: /)
    const both = { from: UNKNOWN, to: UNKNOWN }
    assertError(await api.get(`${sibling.path}/snapshots/diff`, both), 404, 'Snapshot not found')
    assertError(await api.get(of, both), 503, 'The agent is not running')
  })
})

describe('the sync status', () => {
  it('the sync status says that syncs are configured', async () => {
    const { path, agentId } = await insertAgent(context, own)
    const { status, body } = await api.get(`${path}/snapshots/sync`)
    assert.equal(status, 200)
    const message = 'A change is saved within about 60 seconds while the agent runs'
    assert.deepEqual(body, { agentId, configured: true, lastSync: null, message })
  })
})

describe('resetting an agent', () => {
  for (const body of [
    {},
    { snapshotCid: 'latest' },
    { snapshotCid: 'k51qzi5uqu5dlvj2baxnqndepeb86cbk3ng7n3i46uzyxzyqj2xjonzllnv0v8' },
  ])
    it(`resetting an agent returns 400 for ${JSON.stringify(body)}`, async () => {
      const { path } = await insertAgent(context, own)
      assertError(await api.post(`${path}/snapshots/reset`, body), 400, 'Invalid snapshot CID')
    })
  it('resetting an agent returns 404 for a snapshot outside its history', async () => {
    const [agent, sibling] = [await insertAgent(context, own), await insertAgent(context, own)]
    await insertSnapshot(sibling)
    assertError(
      await api.post(`${agent.path}/snapshots/reset`, { snapshotCid: UNKNOWN }),
      404,
      'Snapshot not found',
    )
  })
})

describe('a stopped agent', () => {
  it('an agent that is not running can be neither saved nor reset: 503', async () => {
    const agent = await insertAgent(context, own)
    await insertSnapshot(agent)
    // Workers handle it again, but find no container.
    await sql('UPDATE agent SET purged_at = NULL WHERE id = $1', [agent.id])
    for (const [suffix, body] of ACTIONS) {
      const reply = await api.post(`${agent.path}/snapshots/${suffix}`, body, WAIT)
      assertError(reply, 503, 'The agent is not running')
      assert.equal(reply.headers.get('error-code'), 'agent_not_ready')
      assert.equal(reply.headers.get('retry-after'), '5')
      assert.ok(reply.headers.get('operation-id'))
    }
    const { body } = await api.get(`${agent.path}/snapshots/sync`)
    assert.match(body.message, /^The last sync failed: /)
    await sql('UPDATE agent SET purged_at = now() WHERE id = $1', [agent.id])
  })
})

describe('a sync or reset that cannot reach IPFS', () => {
  it('a sync or reset that cannot reach IPFS returns 503 and may be retried', async () => {
    const agent = await insertAgent(context, own)
    await insertSnapshot(agent)
    for (const [suffix, body] of ACTIONS) {
      const key = { 'idempotency-key': `${suffix}-${agent.agentId}` }
      const ask = (headers = {}) =>
        api.post(`${agent.path}/snapshots/${suffix}`, body, { ...key, ...headers })
      const operation = (await ask({ prefer: 'respond-async' })).headers.get('operation-id')
      await api.finished(String(operation))
      // A worker ends the operation like this, but a row has no container to save from.
      await sql(
        `UPDATE operation SET state = 'failed', error = 'IPFS node unreachable', error_code = 'ipfs_unreachable'
         WHERE id = $1`,
        [operation],
      )
      const reply = await ask()
      assertError(reply, 503, 'IPFS node unreachable')
      assert.equal(reply.headers.get('retry-after'), '5')
    }
  })
})

describe('an agent’s workspace', { timeout: 1_800_000 }, async () => {
  // A reset removes files that other tests are writing, so this test has its own agent.
  await useStandIn(context, own)
  const agent = await newAgent(api)
  const { path, agentId } = agent
  const exec = async (command: string): Promise<string> => {
    const { body } = await agent.api.post(`${path}/console/exec`, {
      command,
      cwd: '/home/node/clawd/workspace',
    })
    assert.equal(body.exitCode, 0, body.stderr)
    return body.stdout
  }
  const sync = async () => {
    const reply = await agent.api.post(`${path}/snapshots/sync`, undefined, WAIT)
    assert.equal(reply.status, 200, JSON.stringify(reply.body))
    return reply.body
  }
  const newest = async () => (await agent.api.get(`${path}/snapshots`)).body.snapshots[0]

  it('an agent’s workspace is saved', async () => {
    await exec('echo one > snapshot-note.txt')
    const { success, message, lastSync, snapshotCid, commitSha } = await sync()
    assert.equal(success, true)
    // The automatic snapshot may have been first.
    assert.ok(['Snapshot taken', 'Nothing has changed since the last snapshot'].includes(message))
    assert.match(lastSync, MILLIS)
    assert.match(commitSha, /^[0-9a-f]{40}$/)
    const latest = await newest()
    assert.deepEqual(
      [latest.agentId, latest.snapshotCid, latest.commitSha],
      [agentId, snapshotCid, commitSha],
    )
    assert.ok(await context.isPinned(CID.parse(snapshotCid), 'private'))
    const { agent: record, snapshots } = (await agent.api.get(path)).body
    assert.deepEqual([record.snapshotCid, snapshots[0].snapshotCid], [snapshotCid, snapshotCid])
    assert.match(record.lastSync, MILLIS)
    assert.match(record.snapshotsUpdatedAt, MILLIS)
    assert.match(record.fileManifest, /^4 workspace\/snapshot-note\.txt$/m)
  })
  it('two snapshots of an agent’s workspace are compared, in either direction', async () => {
    const first = await sync()
    await exec('echo 1 > between.txt')
    await sync()
    await exec('rm between.txt && printf "two\\n%.0s" $(seq 100000) > snapshot-note.txt')
    const last = await sync()
    const compare = async (from: string, to: string) => {
      const { status, body } = await agent.gateway.get(`${path}/snapshots/diff`, { from, to })
      assert.equal(status, 200, JSON.stringify(body))
      return body
    }
    const { diff, truncated, ...rest } = await compare(first.snapshotCid, last.snapshotCid)
    assert.deepEqual(rest, { agentId, from: first.snapshotCid, to: last.snapshotCid })
    assert.match(diff, /^diff --git a\/workspace\/snapshot-note.txt b\/workspace\/snapshot-note.txt\n/)
    assert.match(diff, /\n-one\n\+two\n/)
    assert.doesNotMatch(diff, /between/)
    assert.equal(truncated, true)
    assert.ok(diff.length <= 262_144 && diff.length > 200_000, `${diff.length}`)
    assert.match((await compare(last.snapshotCid, first.snapshotCid)).diff, /\n-two\n/)
    const same = await compare(last.snapshotCid, last.snapshotCid)
    assert.deepEqual([same.diff, same.truncated], ['', false])
    const pretend = (commit: string) =>
      sql(
        'UPDATE snapshot SET commit_sha = $3 WHERE cid = $1 AND agent_id = (SELECT id FROM agent WHERE agent_id = $2)',
        [first.snapshotCid, agentId, commit],
      )
    await pretend('0'.repeat(40))
    const gone = await api.get(`${path}/snapshots/diff`, { from: first.snapshotCid, to: last.snapshotCid })
    assertError(gone, 409, /no longer has both snapshots/)
    await pretend(first.commitSha)
    await exec('echo one > snapshot-note.txt')
    await sync()
  })
  it('an unchanged workspace is not saved twice', async () => {
    const before = await sync()
    const again = await sync()
    assert.deepEqual([again.snapshotCid, again.commitSha], [before.snapshotCid, before.commitSha])
    assert.deepEqual(
      [again.message, again.changeSummary],
      ['Nothing has changed since the last snapshot', null],
    )
  })
  it('an agent’s workspace is reset to a snapshot, in any spelling of its CID', async () => {
    const target = await sync()
    const cid = CID.parse(target.snapshotCid)
    for (const spelled of [
      target.snapshotCid,
      `${cid.toV0()}`,
      cid.toString(base16),
      cid.toString(base58btc),
    ]) {
      await exec(`date +%s%N > snapshot-note.txt`)
      const reply = await agent.api.post(`${path}/snapshots/reset`, { snapshotCid: spelled }, WAIT)
      assert.equal(reply.status, 200, JSON.stringify(reply.body))
      const { success, snapshotCid, commitSha, message } = reply.body
      assert.deepEqual([success, snapshotCid, commitSha], [true, target.snapshotCid, target.commitSha])
      assert.equal(message, `Workspace reset to ${target.snapshotCid}`)
      assert.equal(await exec('cat snapshot-note.txt'), 'one\n')
    }
  })
})
