import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { insertAgentRow } from '../../support/agent-row.ts'
import { openContext } from '../context.ts'

const USAGE = '/v0/agents/usage'
const context = await openContext()
const { sql, workspace } = context
const { api, id: workspaceId } = await workspace()

/** An agent whose memory was measured this many seconds ago. */
async function measured(ofWorkspace: string, status: string, memoryBytes: number, secondsAgo = 0) {
  const agent = await insertAgentRow(
    { query: sql },
    { workspaceId: ofWorkspace, name: 'Row', status, purgedAt: new Date() },
  )
  await sql(
    `INSERT INTO agent_usage (agent_id, at, memory_bytes, memory_limit_bytes)
     VALUES ($1, now() - $2 * interval '1 second', $3, 2147483648)`,
    [agent.id, secondsAgo, memoryBytes],
  )
  return agent
}

describe('current usage of agents', () => {
  it("current usage lists the workspace's active agents with recent values, in pages", async () => {
    const other = await workspace()
    const first = await measured(workspaceId, 'running', 700_000_000)
    const second = await measured(workspaceId, 'starting', 300_000_000)
    await measured(workspaceId, 'not_running', 1)
    await measured(workspaceId, 'running', 2, 3600)
    const deleted = await measured(workspaceId, 'running', 3)
    await sql('UPDATE agent SET deleted_at = now() WHERE id = $1', [deleted.id])
    await measured(other.id, 'running', 4)
    const { status, body, headers } = await api.get(USAGE, { limit: '1' })
    assert.equal(status, 200)
    const [{ at, ...one }] = body.usage
    assert.deepEqual(one, {
      agentId: first.agentId,
      memoryBytes: 700_000_000,
      memoryLimitBytes: 2_147_483_648,
    })
    assert.ok(Math.abs(Date.parse(at) - Date.now()) < 60_000, at)
    const pageToken = headers.get('next-page-token') ?? ''
    const next = await api.get(USAGE, { limit: '1', pageToken })
    assert.deepEqual(
      next.body.usage.map(({ agentId }: { agentId: string }) => agentId),
      [second.agentId],
    )
    assert.equal(next.headers.get('next-page-token'), null)
  })
})
