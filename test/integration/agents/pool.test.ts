/** The pool of spares, and new agents that take one over; on real agentds, with a stand-in for the engine. */
import assert from 'node:assert/strict'
import { after, afterEach, describe, it } from 'node:test'
import type { ExecResult } from '../../../agentd/protocol.ts'
import { findAgentById } from '../../../src/agents/agent.ts'
import { readStatus } from '../../../src/agents/agentd-status.ts'
import { forkAgent } from '../../../src/agents/forks/fork.ts'
import { forkBody } from '../../../src/agents/forks/fork-schema.ts'
import { adoptSpare } from '../../../src/agents/spares.ts'
import { inTransaction } from '../../../src/db/prisma.ts'
import { findEgressPolicies } from '../../../src/db/statements/egress.ts'
import type { Plan } from '../../../src/db/statements/plan.ts'
import { readPoolRoom, readSpares } from '../../../src/db/statements/pool.ts'
import { keepAgentUsage, readRunningAgents } from '../../../src/db/statements/worker-agents.ts'
import { STATEMENTS } from '../../../src/health/database-metrics.ts'
import type { Principal } from '../../../src/http/principal.ts'
import { fillPool } from '../../../workers/reconcile/pool.ts'
import { until } from '../../support/processes.ts'
import { STAND_IN } from './stand-in.ts'
import { startAgentsWorld } from './world.ts'

const world = await startAgentsWorld({ BERTH_ENGINE_VERSIONS: STAND_IN.good, BERTH_POOL: '1' })
const { pool } = world.database
after(() => world.stop())
afterEach(async () => {
  await world.clear()
  await pool.query('DELETE FROM operation')
})

const spares = async () => (await readSpares.run(pool)).rows
const waiting = async (kind: string) =>
  (await pool.query<{ id: string }>(`SELECT id FROM operation WHERE kind = $1 AND state = 'queued'`, [kind]))
    .rows
const runAll = async (kind: string) => {
  for (const { id } of await waiting(kind)) assert.equal((await world.run(id)).state, 'succeeded')
}
/** Fills the pool until nothing is missing, and starts its spares. */
async function fill() {
  for (;;) {
    await fillPool(world.services)
    if ((await waiting('agent.provision')).length === 0) return spares()
    await runAll('agent.provision')
  }
}
const up = async () => {
  const made = await world.create()
  const { state, error_cause: cause } = await world.run(made.operationId)
  assert.equal(state, 'succeeded', String(cause))
  return made
}
const targetOf = async (agentId: string) => ({
  agentId,
  address: String((await world.agent(agentId)).address),
})
const statusOf = async (agentId: string) =>
  readStatus(world.services.agentd, await targetOf(agentId), { timeoutMs: 10_000 })
const exec = async (agentId: string, command: string) => {
  const json = { command, timeoutMs: 20_000, outputBytes: 100_000 }
  const request = { method: 'POST', path: '/v1/exec', json } as const
  return (await world.services.agentd.json<ExecResult>(await targetOf(agentId), request)).stdout
}
async function withConfig<T>(
  change: Partial<typeof world.services.config>,
  work: () => Promise<T>,
): Promise<T> {
  const usual = world.services.config
  world.services.config = { ...usual, ...change }
  try {
    return await work()
  } finally {
    world.services.config = usual
  }
}

/** Everything about an agent that its owner can see, without what differs between any two agents. */
async function seen({ id, agentId }: { id: string; agentId: string }) {
  const { agent_id: _, gateway_token: token, address, scripts: _scripts, ...row } = await world.agent(agentId)
  const { gateway, scripts } = await until('its scripts have ended', async () => {
    const status = await statusOf(agentId)
    return status.scripts.start.state === 'pending' ? undefined : status
  })
  const config = await exec(agentId, 'cat ~/.openclaw/openclaw.json; ls -A ~/.openclaw')
  const { rows: events } = await pool.query(
    `SELECT type, data FROM event_pending WHERE resource_id = $1 AND resource_type = 'agent' ORDER BY seq`,
    [agentId],
  )
  await until(
    'the first commit',
    async () => (await exec(agentId, 'git rev-parse --verify --quiet HEAD || true')) !== '',
  )
  const files = await exec(
    agentId,
    'git log --format=%s; find . -path ./.git -prune -o -type f -print | sort',
  )
  const all = {
    ...{ row, gateway, scripts, events, config, files },
    env: (await exec(agentId, 'env | grep -v ^AGENTD_COMMAND | sort')).split('\n'),
  }
  const [, port] = /"port": (\d+)/.exec(config) ?? []
  const names = [id, agentId, String(token), String(address), `${port}`, String(row.start_operation_id)]
  const hidden = names.reduce((text, name) => text.replaceAll(name, '…'), JSON.stringify(all))
  return JSON.parse(
    hidden
      .replaceAll(
        /"(model_key_hash|run|pid|epoch|[a-z_]+_at|[a-z]+At|task_runs_since)":("[^"]*"|\{[^{}]*\}|\d+)/g,
        '"$1":0',
      )
      .replaceAll(/(BERTH_SANDBOX|BERTH_MODEL_KEY)=[^"]*/g, '$1='),
  )
}

describe('the pool', { timeout: 600_000 }, () => {
  it('the pool starts as many spares as it should have, one at a time', async () => {
    await withConfig({ BERTH_POOL: 2 }, async () => {
      await fillPool(world.services)
      await fillPool(world.services)
      assert.equal((await spares()).length, 1)
      assert.deepEqual(
        (await fill()).map(({ status }) => status),
        ['running', 'running'],
      )
    })
  })

  it('a spare is in no list, count or event, and reaches nothing', async () => {
    const [spare] = await fill()
    assert.ok(spare)
    const row = await world.agent(spare.agentId)
    assert.deepEqual([row.model_key_hash, row.proxy_key_hash], [null, null])
    assert.deepEqual((await readRunningAgents.run(pool, 5)).rows, [])
    const used = [{ id: spare.id, usedBytes: 1, limitBytes: null }]
    await keepAgentUsage.run(pool, JSON.stringify(used))
    assert.deepEqual((await pool.query('SELECT FROM agent_usage')).rows, [])
    const { rows: counts } = await pool.query<{ value: number }>(STATEMENTS.agents.text)
    assert.deepEqual(
      counts.map(({ value }) => value),
      [0, 0, 0],
    )
    const { rows: inPool } = await pool.query(STATEMENTS.spares.text)
    assert.deepEqual(inPool, [
      { status: 'starting', value: 0 },
      { status: 'running', value: 1 },
    ])
    assert.deepEqual((await findEgressPolicies.run(pool, [''], [String(row.address)])).rows, [])
    const { rows: events } = await pool.query(
      `SELECT type FROM event_pending
      WHERE workspace_id = 'ffffffff-ffff-ffff-ffff-ffffffffffff' OR resource_id = $1`,
      [spare.agentId],
    )
    assert.deepEqual(events, [])
    assert.equal((await exec(spare.agentId, 'ls -A')).trim(), '.git\nskills')
  })

  it('a new agent takes a spare over, whose gateway continues to run', async () => {
    const [spare] = await fill()
    assert.ok(spare)
    const before = await statusOf(spare.agentId)
    const made = await up()
    assert.equal(made.agentId, spare.agentId)
    assert.notEqual(made.id, spare.id)
    const { gateway } = await statusOf(made.agentId)
    assert.deepEqual([gateway.state, gateway.pid], ['ready', before.gateway.pid])
    assert.notEqual(gateway.run, before.gateway.run)
    assert.deepEqual(await spares(), [])
    assert.notEqual((await up()).agentId, made.agentId)
  })

  it('an agent that was a spare differs from another agent in nothing', async () => {
    const cold = await up()
    await fill()
    const adopted = await up()
    assert.deepEqual(await seen(adopted), await seen(cold))
  })

  it('a spare is handed out once', async () => {
    const [spare] = await fill()
    const made = await Promise.all([1, 2, 3].map(() => world.create()))
    assert.equal(made.filter(({ agentId }) => agentId === spare?.agentId).length, 1)
  })

  it('a fork takes a spare over, and gets the workspace of its parent', async () => {
    const parent = await up()
    await exec(parent.agentId, 'echo mine > workspace/note.txt')
    const [spare] = await fill()
    assert.ok(spare)
    const before = await statusOf(spare.agentId)
    const agent = await findAgentById(pool, parent.id)
    assert.ok(agent)
    const caller = { ...agent, plan: { agentLimit: null } } as unknown as Principal
    const [made] = await forkAgent(world.services, caller, agent, forkBody.parse({}), undefined)
    await runAll('agent.sync')
    await runAll('agent.provision')
    assert.ok(made && 'agent' in made)
    assert.equal(made.agent.agentId, spare.agentId)
    const { gateway } = await statusOf(spare.agentId)
    assert.deepEqual([gateway.state, gateway.pid], ['ready', before.gateway.pid])
    const seen = await exec(spare.agentId, 'cat workspace/note.txt; ls skills; git status --porcelain')
    // Its own name is in the files that name an agent.
    assert.equal(seen, 'mine\n@berth\n M manifest.json\n M workspace/IDENTITY.md\n')
  })

  it('an interrupted takeover continues with the same gateway and keys', async () => {
    await fill()
    const made = await up()
    const before = await statusOf(made.agentId)
    const { model_key_hash: key } = await world.agent(made.agentId)
    await pool.query(
      `UPDATE operation SET state = 'queued', finished_at = NULL, next_attempt_at = now() WHERE id = $1`,
      [made.operationId],
    )
    assert.equal((await world.run(made.operationId)).state, 'succeeded')
    const { gateway } = await statusOf(made.agentId)
    assert.deepEqual([gateway.pid, gateway.run], [before.gateway.pid, before.gateway.run])
    assert.deepEqual((await world.agent(made.agentId)).model_key_hash, key)
  })

  it('a taken spare whose sandbox has ended starts like any other agent', async () => {
    const [spare] = await fill()
    assert.ok(spare)
    await world.runtime.remove(spare.agentId, { volume: true })
    assert.equal((await up()).agentId, spare.agentId)
  })

  it('a spare fits only agents of its version and disk limit', async () => {
    const [spare] = await fill()
    const take = (engineVersion: string, agentDiskMb: number | null) =>
      inTransaction(world.services.prisma, (tx) =>
        adoptSpare(tx, world.services.config, { engineVersion, plan: { agentDiskMb } as Plan }),
      )
    const { diskMb } = world.services.config.BERTH_AGENT_LIMITS
    assert.equal(await take(STAND_IN.newer, null), undefined)
    assert.equal(await take(STAND_IN.good, diskMb + 1), undefined)
    assert.equal((await take(STAND_IN.good, diskMb))?.columns.agentId, spare?.agentId)
  })

  for (const [what, change] of [
    ['are too many', { BERTH_POOL: 0 }],
    ['were started with other settings', { BERTH_MODEL_URL: 'http://127.0.0.1:9/v1' }],
    ['do not run', {}],
  ] as const)
    it(`spares that ${what} are removed`, async () => {
      const [spare] = await fill()
      assert.ok(spare)
      if (what === 'do not run')
        await pool.query(`UPDATE agent SET status = 'not_running' WHERE id = $1`, [spare.id])
      await withConfig(change, () => fillPool(world.services))
      await runAll('agent.delete')
      assert.ok((await world.agent(spare.agentId)).purged_at)
      assert.equal(await world.runtime.inspect(spare.agentId), undefined)
    })

  it('a spare that boots gives its place to an owner’s agent that waits', async () => {
    await withConfig({ BERTH_ENGINE_VERSIONS: [STAND_IN.slow] }, () => fillPool(world.services))
    const [start] = await waiting('agent.provision')
    assert.ok(start)
    const ended = world.run(start.id)
    const hasGateway = async () => {
      const { rows } = await pool.query('SELECT FROM operation WHERE id = $1 AND step = $2', [
        start.id,
        'gateway',
      ])
      return rows.length > 0
    }
    await until('its gateway boots', hasGateway)
    await world.create()
    const { state, error_code: code } = await ended
    assert.deepEqual([state, code], ['queued', 'yielded'])
  })

  it('no spare is started while an owner’s agent starts, or soon after one has failed', async () => {
    const { operationId } = await world.create()
    await fillPool(world.services)
    assert.deepEqual(await spares(), [])
    await world.run(operationId)
    await fillPool(world.services)
    assert.equal((await spares()).length, 1)
    await pool.query(`UPDATE operation SET state = 'failed', finished_at = now() WHERE state = 'queued'`)
    assert.equal((await readPoolRoom.one(pool, 60_000)).mayStart, false)
    assert.equal((await readPoolRoom.one(pool, 0)).mayStart, true)
  })
})
