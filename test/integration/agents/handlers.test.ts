/** Agent handlers on a real database, with real agentds as processes, and a stand-in for the engine. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import { readStatus } from '../../../src/agents/agentd-status.ts'
import { bundledTemplates } from '../../../src/agents/templates/bundled.ts'
import { until } from '../../support/processes.ts'
import { cli } from '../../support/stack.ts'
import { STAND_IN, UNFIT_RANGE } from './stand-in.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

/** Why the unfit stand-in does not start. */
const OBSTACLE = `OpenClaw ${STAND_IN.unfit} needs Node ${UNFIT_RANGE}, and would run on Node ${process.versions.node}`

describe('an operation on an agent', () => {
  let world: AgentsWorld
  before(async () => {
    world = await startAgentsWorld()
  })
  afterEach(() => world.clear())
  after(() => world?.stop())

  const up = async (version?: string) => {
    const made = await world.create(version)
    const { state, error_cause: cause } = await world.run(made.operationId)
    assert.equal(state, 'succeeded', String(cause))
    return made
  }
  const gatewayOf = async (agentId: string) => {
    const { address } = await world.agent(agentId)
    const status = await world.services.agentd.json<{ gateway: { run: string; pid: number; state: string } }>(
      { agentId, address: String(address) },
      { path: '/v1/status' },
    )
    return status.gateway
  }

  /** For an engine that is never ready. Other tests need the full time on a busy machine. */
  const waitingFor = async <T>(ms: number, work: () => Promise<T>): Promise<T> => {
    const usual = world.services.config
    world.services.config = { ...usual, BERTH_AGENT_READY_SECONDS: ms / 1000 }
    try {
      return await work()
    } finally {
      world.services.config = usual
    }
  }

  it('an operation on an agent starts a new agent step by step', async () => {
    const { pool } = world.database
    await pool.query(`
      CREATE TABLE reported_step (operation_id uuid, step text);
      CREATE FUNCTION record_step() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO reported_step VALUES (NEW.id, NEW.step); RETURN NULL; END $$;
      CREATE TRIGGER record_step AFTER UPDATE OF step ON operation FOR EACH ROW EXECUTE FUNCTION record_step()`)
    const made = await world.create()
    await world.run(made.operationId)
    const { rows } = await pool.query<{ step: string }>(
      'SELECT step FROM reported_step WHERE operation_id = $1',
      [made.operationId],
    )
    const steps = rows.map(({ step }) => step)
    const agent = await world.agent(made.agentId)
    assert.deepEqual([agent.status, agent.status_reason, agent.epoch], ['running', null, 1])
    assert.match(String(agent.address), /^127\.0\.0\.1:\d+$/)
    assert.deepEqual(Object.keys(agent.scripts as object).sort(), ['build', 'start'])
    assert.ok(steps.includes('container') && steps.includes('gateway'), steps.join())
    assert.equal((await gatewayOf(made.agentId)).state, 'ready')
  })

  it('an operation on an agent starts it with the disk size of its plan', async () => {
    const { pool } = world.database
    const diskOf = async ({ agentId }: { agentId: string }) => {
      const target = { agentId, address: String((await world.agent(agentId)).address) }
      return (await readStatus(world.services.agentd, target, { timeoutMs: 10_000 })).disk.limitBytes
    }
    const made = await up()
    assert.equal(await diskOf(made), world.services.config.BERTH_AGENT_LIMITS.diskMb * 1_048_576)
    await pool.query('UPDATE plan SET agent_disk_mb = 300')
    try {
      assert.equal((await world.run(await world.insert(made, 'agent.restart'))).state, 'succeeded')
      assert.equal(await diskOf(made), 300 * 1_048_576)
    } finally {
      await pool.query('UPDATE plan SET agent_disk_mb = NULL')
    }
  })

  it('an operation on an agent keeps the gateway of an earlier attempt, and reports one start', async () => {
    const { agentId, operationId } = await up()
    const before = await gatewayOf(agentId)
    await world.database.pool.query(
      `UPDATE operation SET state = 'queued', finished_at = NULL, next_attempt_at = now() WHERE id = $1`,
      [operationId],
    )
    assert.equal((await world.run(operationId)).state, 'succeeded')
    const again = await gatewayOf(agentId)
    assert.deepEqual([again.run, again.pid], [before.run, before.pid])
    assert.equal((await world.agent(agentId)).epoch, 2)
    const { rows } = await world.database.pool.query(
      `SELECT data->>'status' AS status FROM event_pending WHERE type = 'agent.starting' AND resource_id = $1`,
      [agentId],
    )
    assert.deepEqual(rows, [{ status: 'starting' }])
  })

  for (const [what, version, code, reason] of [
    ['refuses its state', STAND_IN.refuses, 'engine_refused', /schema 18/],
    ['is not ready in time', STAND_IN.slow, 'gateway_failed', /not ready/],
    ['ends each time', STAND_IN.dies, 'gateway_failed', /./],
    ['babbles at its end', STAND_IN.babbles, 'engine_refused', /half of a pair/],
    ['is unavailable', '2026.1.99', 'no_image', /version/],
    ['needs another Node', STAND_IN.unfit, 'no_image', new RegExp(RegExp.escape(OBSTACLE))],
  ] as const) {
    it(`an operation on an agent fails and leaves it stopped if its engine ${what}`, {
      timeout: 180_000,
    }, async () => {
      const { agentId, operationId } = await world.create(version)
      const run = () => world.run(operationId)
      const operation = await (version === STAND_IN.slow ? waitingFor(3000, run) : run())
      assert.deepEqual([operation.state, operation.error], ['failed', 'Gateway failed to start'])
      assert.equal(operation.error_code, code, String(operation.error_cause))
      const agent = await world.agent(agentId)
      assert.equal(agent.status, 'not_running')
      assert.match(String(agent.status_reason), reason)
    })
  }

  it('an operation on an agent restarts it with another gateway, and reports the previous one', async () => {
    const made = await up()
    const before = await gatewayOf(made.agentId)
    const operation = await world.run(await world.insert(made, 'agent.restart'))
    const versions = { previousVersion: STAND_IN.good, version: STAND_IN.good }
    assert.deepEqual(
      [operation.state, operation.result],
      ['succeeded', { previousProcessId: before.pid, ...versions }],
    )
    const now = await gatewayOf(made.agentId)
    assert.equal(now.state, 'ready')
    assert.notEqual(now.pid, before.pid)
  })

  it('an operation on an agent moves an agent to another version', async () => {
    const made = await up()
    const restart = await world.insert(made, 'agent.restart', { version: STAND_IN.newer })
    const { state, result } = await world.run(restart)
    assert.equal(state, 'succeeded')
    const { previousVersion, version } = result as Record<string, string>
    assert.deepEqual([previousVersion, version], [STAND_IN.good, STAND_IN.newer])
    assert.equal((await world.agent(made.agentId)).engine_version, STAND_IN.newer)
    assert.equal((await world.runtime.inspect(made.agentId))?.engineVersion, STAND_IN.newer)
  })

  for (const [what, version, error, code] of [
    ['refuses to run it', STAND_IN.refuses, 'Invalid version', 'invalid_version'],
    ['is unavailable', '2026.1.99', 'Invalid version', 'invalid_version'],
    ['does not become ready', STAND_IN.slow, 'Restart failed', 'gateway_failed'],
  ] as const) {
    it(`an operation on an agent restores the previous version if another one ${what}`, {
      timeout: 180_000,
    }, async () => {
      const made = await up()
      const restart = await world.insert(made, 'agent.restart', { version })
      // The previous version has the same time.
      const operation = await waitingFor(12_000, () => world.run(restart))
      assert.deepEqual([operation.state, operation.error, operation.error_code], ['failed', error, code])
      assert.ok((operation.result as { detail: string }).detail)
      const agent = await world.agent(made.agentId)
      assert.deepEqual([agent.status, agent.engine_version], ['running', STAND_IN.good])
      assert.equal((await gatewayOf(made.agentId)).state, 'ready')
    })
  }

  it('a restart on a version that needs another Node fails before it touches the sandbox', async () => {
    const made = await up()
    const before = await world.runtime.inspect(made.agentId)
    const restart = await world.insert(made, 'agent.restart', { version: STAND_IN.unfit })
    const { state, error, error_code: code, result } = await world.run(restart)
    assert.deepEqual(
      [state, error, code, result],
      ['failed', 'Invalid version', 'invalid_version', { detail: OBSTACLE }],
    )
    assert.deepEqual(await world.runtime.inspect(made.agentId), before)
    const { status, engine_version: version } = await world.agent(made.agentId)
    assert.deepEqual([status, version], ['running', STAND_IN.good])
  })

  it('`berth engines` shows which versions can run and why others cannot', async () => {
    const { DATABASE_URL, BERTH_DATA_DIR, BERTH_ENGINES_DIR } = world.services.config
    const berth = cli({
      PATH: process.env.PATH,
      DATABASE_URL,
      BERTH_DATA_DIR,
      BERTH_ENGINES_DIR,
      BERTH_RUNTIME: 'process',
    })
    const rows: { version: string; obstacle: string | null }[] = JSON.parse(
      await berth('engines', 'list', '--json'),
    )
    const obstacleTo = (version: string) => rows.find((row) => row.version === version)?.obstacle
    assert.deepEqual([obstacleTo(STAND_IN.good), obstacleTo(STAND_IN.unfit)], [null, OBSTACLE])
    const lines = (await berth('engines', 'list')).split('\n')
    assert.deepEqual(
      lines.filter((line) => line.endsWith(OBSTACLE)).map((line) => line.split(' ')[0]),
      [STAND_IN.unfit],
    )
    await assert.rejects(berth('engines', 'build', STAND_IN.unfit), new RegExp(RegExp.escape(OBSTACLE)))
  })

  it('an operation on an agent builds again what a restart interrupts', { timeout: 180_000 }, async () => {
    const made = await up()
    const { agentd } = world.services
    const targetNow = async () => ({
      agentId: made.agentId,
      address: String((await world.agent(made.agentId)).address),
    })
    const file = (name: string) => `/v1/file?path=${name}`
    const scripts = { build: 'echo begun >> begun; until [ -e go ]; do sleep 0.1; done; echo built > built' }
    await agentd.bytes(await targetNow(), {
      method: 'PUT',
      path: file('manifest.json'),
      body: Buffer.from(JSON.stringify({ scripts })),
    })
    assert.equal((await world.run(await world.insert(made, 'agent.scripts'))).state, 'succeeded')
    await until('it builds', async () =>
      agentd.bytes(await targetNow(), { path: file('begun') }).catch(() => undefined),
    )
    const restart = await world.insert(made, 'agent.restart')
    assert.equal((await world.run(restart)).state, 'succeeded')
    // Once more, as if a worker had died just before it finished.
    await world.database.pool.query(
      `UPDATE operation SET state = 'queued', finished_at = NULL, next_attempt_at = now() WHERE id = $1`,
      [restart],
    )
    assert.equal((await world.run(restart)).state, 'succeeded')
    await agentd.bytes(await targetNow(), { method: 'PUT', path: file('go'), body: Buffer.from('') })
    await until('it is built', async () =>
      agentd.bytes(await targetNow(), { path: file('built') }).catch(() => undefined),
    )
    const { body } = await agentd.bytes(await targetNow(), { path: file('begun') })
    assert.equal(body.toString(), 'begun\nbegun\n')
  })

  it('an operation on an agent restarts an agent that failed to start', async () => {
    const made = await world.create(STAND_IN.dies)
    assert.equal((await world.run(made.operationId)).state, 'failed')
    const restart = await world.insert(made, 'agent.restart', { version: STAND_IN.good })
    assert.equal((await world.run(restart)).state, 'succeeded')
    assert.equal((await world.agent(made.agentId)).status, 'running')
  })

  it('an operation on an agent waits for the agent proxy and resumes', async () => {
    const made = await world.create()
    await world.host.close()
    const tried = await world.run(made.operationId)
    await world.host.open()
    assert.deepEqual([tried.state, tried.error_code, tried.error_count], ['queued', 'outage', 0])
    assert.equal((await world.agent(made.agentId)).status, 'starting')
    await world.database.pool.query('UPDATE operation SET next_attempt_at = now() WHERE id = $1', [
      made.operationId,
    ])
    assert.equal((await world.run(made.operationId)).state, 'succeeded')
  })

  it('an operation fails if its sandbox ends at each attempt [report: broken sandboxes]', async () => {
    const made = await world.create(STAND_IN.slow)
    const endedTry = async (ends: number) => {
      await world.database.pool.query(
        `UPDATE operation SET attempts = 30, error_count = $2, started_at = now() - interval '20 minutes',
           next_attempt_at = now()
         WHERE id = $1`,
        [made.operationId, ends],
      )
      const running = world.run(made.operationId)
      await until('the gateway starts', async () => {
        const { address } = await world.agent(made.agentId)
        return (
          address !== null && (await gatewayOf(made.agentId).catch(() => undefined))?.state === 'starting'
        )
      })
      await world.runtime.stop(made.agentId, { graceMs: 0 })
      const { state, error_code: code } = await running
      return [state, code]
    }
    assert.deepEqual(await endedTry(0), ['queued', 'outage'])
    const { status, status_reason: reason } = await world.agent(made.agentId)
    assert.equal(status, 'starting')
    assert.match(String(reason), /^the agent's container ended/)
    assert.deepEqual(await endedTry(4), ['failed', 'sandbox_ended'])
    assert.equal((await world.agent(made.agentId)).status, 'not_running')
  })

  it('an operation on an agent removes everything of a deleted agent', async () => {
    const made = await up()
    const { pid } = await gatewayOf(made.agentId)
    const removal = await world.insert(made, 'agent.delete')
    await world.database.pool.query('UPDATE agent SET deleted_at = now() WHERE id = $1', [made.id])
    assert.equal((await world.run(removal)).state, 'succeeded')
    assert.ok((await world.agent(made.agentId)).purged_at)
    const { sandboxes, volumes } = await world.runtime.list()
    assert.ok(!sandboxes.some((one) => one.agentId === made.agentId))
    assert.ok(!volumes.includes(made.agentId))
    await until('the gateway is gone', () => !isThere(pid))
    // A second removal finds nothing, and succeeds.
    await world.database.pool.query(
      `UPDATE operation SET state = 'queued', finished_at = NULL, next_attempt_at = now() WHERE id = $1`,
      [removal],
    )
    assert.equal((await world.run(removal)).state, 'succeeded')
  })

  it('an operation on an agent is cancelled at once if the agent was deleted', async () => {
    const made = await world.create()
    await world.database.pool.query('UPDATE agent SET deleted_at = now() WHERE id = $1', [made.id])
    assert.equal((await world.run(made.operationId)).state, 'canceled')
    assert.equal(await world.runtime.inspect(made.agentId), undefined)
  })

  it('an operation on an agent stops soon if it is cancelled during the start of the gateway', async () => {
    const made = await world.create(STAND_IN.slow)
    const running = world.run(made.operationId)
    await until('the gateway starts', async () => {
      const { rows } = await world.database.pool.query<{ step: string | null }>(
        'SELECT step FROM operation WHERE id = $1',
        [made.operationId],
      )
      return rows[0]?.step === 'gateway'
    })
    await world.database.pool.query('UPDATE operation SET cancel_requested = true WHERE id = $1', [
      made.operationId,
    ])
    const began = performance.now()
    assert.equal((await running).state, 'canceled')
    assert.ok(performance.now() - began < 20_000)
  })

  it('an operation on an agent is released by a worker that shuts down', async () => {
    const made = await world.create(STAND_IN.slow)
    const runner = world.runner()
    const running = runner.run(made.operationId)
    await until('it runs', async () => {
      const { rows } = await world.database.pool.query<{ step: string | null }>(
        'SELECT step FROM operation WHERE id = $1',
        [made.operationId],
      )
      return rows[0]?.step != null
    })
    runner.shutdown()
    await running
    const { rows } = await world.database.pool.query('SELECT state, attempts FROM operation WHERE id = $1', [
      made.operationId,
    ])
    assert.deepEqual(rows, [{ state: 'queued', attempts: 0 }])
  })

  it('an operation on an agent writes nothing once its worker has lost the lease', async () => {
    const made = await world.create(STAND_IN.slow)
    const running = world.run(made.operationId)
    await until('the gateway starts', async () => (await world.agent(made.agentId)).epoch === 1)
    await world.database.pool.query(`UPDATE operation SET epoch = epoch + 1 WHERE id = $1`, [
      made.operationId,
    ])
    await running
    assert.equal((await world.agent(made.agentId)).status, 'starting')
  })

  it('an agent from a template starts without parts that its engine rejects, and reports them', async () => {
    const template = (await bundledTemplates()).find(({ slug }) => slug === 'assistant')
    const { id, operationId } = await world.create()
    await world.database.pool.query('UPDATE agent SET template_id = $2 WHERE id = $1', [id, template?.id])
    const { state, result } = await world.run(operationId)
    assert.equal(state, 'succeeded')
    // The stand-in engine has no tasks.
    assert.match((result as { problems: string[] }).problems.join('\n'), /^tasks/m)
  })
})

function isThere(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch {
    return false
  }
}
