/** `berth keys rotate-agent-tokens`. */
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { beforeEach, describe, it } from 'node:test'
import { rotateGatewayTokens } from '../../../src/agents/tokens/token-rotation.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { useDatabase } from '../../support/database.ts'
import { useFolder } from '../../support/folder.ts'
import { runCli } from '../../support/stack.ts'

/** More than one page. */
const AGENTS = 120

const dir = await useFolder('berth-tokens-')
const database = await useDatabase()
const prisma = createPrisma(database.pool)
const workspaceId = await database.createWorkspace()
const other = await database.createWorkspace()
for (let n = 0; n < AGENTS; n++) await insertAgentRow(database.pool, { workspaceId })
await insertAgentRow(database.pool, { workspaceId: other })
await insertAgentRow(database.pool, { workspaceId: other, deletedAt: new Date() })

describe('berth keys rotate-agent-tokens', () => {
  beforeEach(() => database.pool.query('DELETE FROM operation'))
  /** The token of each agent by its id, including deleted agents. */
  const readTokens = async () => {
    const { rows } = await database.pool.query<{ id: string; token: string; workspace: string }>(
      'SELECT agent_id AS id, gateway_token AS token, workspace_id AS workspace FROM agent ORDER BY id',
    )
    return rows
  }
  const countChanged = async (before: Awaited<ReturnType<typeof readTokens>>) => {
    const now = new Map((await readTokens()).map(({ id, token }) => [id, token]))
    return before.filter(({ id, token }) => now.get(id) !== token).length
  }
  const countRestarts = async () => {
    const { rows } = await database.pool.query<{ n: number }>(
      `SELECT count(*)::int AS n FROM operation WHERE kind = 'agent.restart' AND state = 'queued'`,
    )
    return rows[0]?.n
  }
  const berth = (env: NodeJS.ProcessEnv, ...args: string[]) =>
    runCli({ ...process.env, DATABASE_URL: database.url, ...env }, 'keys', 'rotate-agent-tokens', ...args)

  it('rotate-agent-tokens gives each agent a new token and a restart, and prints no token', async () => {
    const before = await readTokens()
    const { code, stdout } = await berth({})
    assert.equal(code, 0)
    assert.match(stdout, /^100 of 121$/m)
    assert.match(stdout, /^121 of 121 agents have new tokens, and restart$/m)
    assert.equal(await countChanged(before), AGENTS + 1)
    assert.equal(await countRestarts(), AGENTS + 1)
    for (const { token } of [...before, ...(await readTokens())]) assert.ok(!stdout.includes(token))
  })

  it('berth keys rotate-agent-tokens accepts one workspace or one agent', async () => {
    const before = await readTokens()
    const [first] = before.filter(({ workspace }) => workspace === workspaceId)
    assert.equal((await berth({}, '--workspace', other)).code, 0)
    assert.equal(await countChanged(before), 1)
    assert.equal((await berth({}, '--agent', first?.id ?? '')).code, 0)
    assert.equal(await countChanged(before), 2)
    assert.equal((await berth({}, '--agent', 'xnobody1')).stdout, 'there are no such agents\n')
  })

  it('berth keys rotate-agent-tokens resumes after a SIGKILL and rotates each token once', async () => {
    const before = await readTokens()
    const killed = await berth({ BERTH_CRASH_AT: `before-commit@${join(dir, 'mark')}` })
    assert.match(killed.stdout, /--resume/)
    assert.equal(await countChanged(before), 0)
    const [, begun = ''] = /--resume (\S+)$/m.exec(killed.stdout) ?? []
    // A second run that was killed halfway.
    const half = new Error('half')
    await assert.rejects(
      rotateGatewayTokens(prisma, { begun: new Date(begun) }, (done) => {
        if (done === 50) throw half
      }),
      half,
    )
    const later = await readTokens()
    assert.equal(await countChanged(before), 50)
    const { code, stdout } = await berth({}, '--resume', begun)
    assert.equal(code, 0, stdout)
    assert.equal(await countChanged(later), AGENTS + 1 - 50)
    assert.equal(await countRestarts(), AGENTS + 1)
    const done = await readTokens()
    await berth({}, '--resume', begun)
    assert.equal(await countChanged(done), 0)
  })

  it('berth keys rotate-agent-tokens skips agents created after it began', async () => {
    const before = await readTokens()
    assert.equal(await rotateGatewayTokens(prisma, { begun: new Date(0) }), 0)
    assert.equal(await countChanged(before), 0)
  })

  it('berth keys rotate-agent-tokens rejects an invalid time', async () => {
    const { code, stderr } = await berth({}, '--resume', 'yesterday')
    assert.notEqual(code, 0)
    assert.match(stderr, /not a time/)
  })
})
