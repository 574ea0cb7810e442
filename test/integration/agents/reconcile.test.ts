/** The agent reconciler repairs agents and sandboxes that died, were removed by hand or outlived their agent. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { NO_MODEL } from '../../../agentd/protocol.ts'
import { readStatus } from '../../../src/agents/agentd-status.ts'
import { createPool } from '../../../src/db/pool.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { keepVersions } from '../../../src/db/statements/worker-agents.ts'
import { SANDBOX_DRIVERS } from '../../../src/sandboxes/port.ts'
import { createAgentReconciler, startAgentLoop } from '../../../workers/reconcile/agents.ts'
import { until } from '../../support/processes.ts'
import { startReconciled } from './reconciled.ts'
import { STAND_IN } from './stand-in.ts'

const { world, signal, sql, up, waiting, repairs, runWaiting, pass } = await startReconciled()

/** Runs passes until the check holds, because a pass changes nothing if agentd responds too slowly. */
const passUntil = <T>(what: string, check: () => Promise<T | undefined | false>) =>
  until(what, async () => {
    await pass()
    return check()
  })

describe('the agent reconciler', () => {
  it('the agent reconciler changes nothing if all is well', async () => {
    const { agentId } = await up()
    // The row shows shortly after the start whether the agent has scripts.
    await passUntil(
      'its scripts are known',
      async () => !JSON.stringify((await world.agent(agentId)).scripts).includes('"pending"'),
    )
    const before = await world.agent(agentId)
    await pass()
    assert.deepEqual(await world.agent(agentId), before)
    assert.deepEqual([await waiting(agentId), await repairs(agentId)], [[], []])
  })

  it('the agent reconciler records the usage of agents', async () => {
    const { id } = await up()
    const read = async () => (await sql('SELECT * FROM agent_usage WHERE agent_id = $1', [id]))[0]
    const first = await passUntil('it was measured', read)
    // Node itself takes some 40 MB, twice: agentd and the engine.
    assert.ok(Number(first.memory_bytes) > 3e7 && Number(first.memory_bytes) < 1e9, `${first.memory_bytes}`)
    assert.equal(first.memory_limit_bytes, null, 'as a process it has no limit')
    await passUntil('it is measured again', async () => ((await read())?.at as Date) > (first.at as Date))
  })

  for (const [what, reason, harm] of [
    ['whose sandbox ended', 'container ended', (id: string) => world.runtime.stop(id, { graceMs: 0 })],
    [
      'whose sandbox was removed by hand',
      'container missing',
      (id: string) => world.runtime.remove(id, { volume: false }),
    ],
    [
      'whose sandbox was restarted by hand',
      'gateway missing',
      async (id: string) => {
        await world.runtime.stop(id, { graceMs: 0 })
        await world.runtime.start(id)
      },
    ],
  ] as const) {
    it(`the agent reconciler restarts an agent ${what}, once`, async () => {
      const { agentId } = await up()
      await harm(agentId)
      await pass()
      await pass()
      assert.deepEqual(
        (await waiting(agentId)).map(({ kind, input }) => [kind, input]),
        [['agent.restart', { reason }]],
      )
      assert.equal((await world.agent(agentId)).status, 'starting')
      assert.deepEqual(await repairs(agentId), [reason])
      assert.equal((await runWaiting(agentId)).state, 'succeeded')
      await pass()
      assert.equal((await world.agent(agentId)).status, 'running')
      assert.deepEqual(await waiting(agentId), [])
    })
  }

  it('the agent reconciler leaves an agent alone that failed to start', async () => {
    const { agentId, operationId } = await world.create(STAND_IN.refuses)
    assert.equal((await world.run(operationId)).state, 'failed')
    const before = await world.agent(agentId)
    await pass()
    await world.runtime.remove(agentId, { volume: false })
    await pass()
    assert.deepEqual(await waiting(agentId), [])
    assert.deepEqual((await world.agent(agentId)).status_reason, before.status_reason)
  })

  it('an agent whose engine knows no model runs and reports it [report: no model]', async () => {
    const { agentId, operationId } = await world.create(STAND_IN.modelless)
    assert.equal((await world.run(operationId)).state, 'succeeded')
    const expected = ['running', NO_MODEL]
    for (let i = 0; i < 2; i++) {
      const { status, status_reason: reason } = await world.agent(agentId)
      assert.deepEqual([status, reason], expected)
      await pass()
    }
  })

  it('the agent reconciler leaves a failed agent’s build to its next start', async () => {
    const made = await world.create(STAND_IN.late)
    const usual = world.services.config
    world.services.config = { ...usual, BERTH_AGENT_READY_SECONDS: 1 }
    assert.equal((await world.run(made.operationId)).state, 'failed')
    world.services.config = usual
    await pass()
    const { status, scripts } = await world.agent(made.agentId)
    assert.deepEqual([status, scripts], ['not_running', {}])
    const [agent] = await sql('SELECT address FROM agent WHERE id = $1', [made.id])
    const target = { agentId: made.agentId, address: String(agent?.address) }
    const manifest = Buffer.from('{"version":1,"scripts":{"build":"echo built"}}')
    await world.services.agentd.json(target, {
      method: 'PUT',
      path: '/v1/file?path=manifest.json',
      body: manifest,
    })
    assert.equal((await world.run(await world.insert(made, 'agent.restart'))).state, 'succeeded')
    await until('it is built', async () => {
      const now = { ...target, address: String((await world.agent(made.agentId)).address) }
      const { scripts } = await readStatus(world.services.agentd, now, { timeoutMs: 10_000 })
      return scripts.build.state === 'success'
    })
  })

  it('the agent reconciler restarts an agent that was lost in an outage', async () => {
    const { agentId, id } = await up()
    await sql(`UPDATE agent SET status = 'not_running', status_reason = 'Docker is away' WHERE id = $1`, [id])
    await sql(`UPDATE operation SET state = 'failed', error_code = 'outage' WHERE agent_id = $1`, [agentId])
    await world.runtime.stop(agentId, { graceMs: 0 })
    // Somebody tries to help.
    assert.equal((await world.run(await world.insert({ id, agentId }, 'agent.scripts'))).state, 'failed')
    await pass()
    assert.equal((await runWaiting(agentId)).state, 'succeeded')
    assert.equal((await world.agent(agentId)).status, 'running')
  })

  it('the agent reconciler gives up an agent that keeps ending', async () => {
    const { agentId } = await up()
    /** Moves the end of the agent's operations into the past. */
    const endedAgo = (interval: string) =>
      sql(`UPDATE operation SET finished_at = now() - $2::interval WHERE agent_id = $1`, [agentId, interval])
    for (let i = 0; i < 5; i++) {
      await world.runtime.stop(agentId, { graceMs: 0 })
      await endedAgo('-1 minute')
      await pass()
      assert.equal(
        (await waiting(agentId)).length,
        i === 0 ? 1 : 0,
        'the first restart at once, others later',
      )
      await endedAgo('2 minutes')
      await pass()
      assert.equal((await runWaiting(agentId)).state, 'succeeded')
    }
    await world.runtime.stop(agentId, { graceMs: 0 })
    await pass()
    const { status, status_reason: reason } = await world.agent(agentId)
    assert.equal(status, 'not_running')
    assert.match(String(reason), /keeps ending/)
    assert.deepEqual(await waiting(agentId), [])
    assert.equal((await repairs(agentId)).at(-1), 'keeps ending')
  })

  it('automatic restarts are counted since the last requested one [report: broken sandboxes]', async () => {
    const made = await up()
    const { agentId } = made
    for (let i = 0; i < 5; i++) await world.insert(made, 'agent.restart', { reason: 'container ended' })
    await sql(
      `UPDATE operation SET state = 'succeeded', finished_at = now() - interval '2 minutes' WHERE agent_id = $1`,
      [agentId],
    )
    await world.runtime.remove(agentId, { volume: false })
    await pass()
    assert.deepEqual(
      (await waiting(agentId)).map(({ input }) => input),
      [{ reason: 'container missing' }],
    )
    assert.equal((await runWaiting(agentId)).state, 'succeeded')
    assert.equal((await world.run(await world.insert(made, 'agent.restart'))).state, 'succeeded')
    await world.runtime.stop(agentId, { graceMs: 0 })
    await pass()
    assert.deepEqual(
      (await waiting(agentId)).map(({ input }) => input),
      [{ reason: 'container ended' }],
    )
    const { status, status_reason: reason } = await world.agent(agentId)
    assert.equal(status, 'starting')
    assert.match(String(reason), /^the agent's container ended: /)
  })

  it('the agent reconciler restarts an agent at once after each restart of Berth', async () => {
    const { agentId } = await up()
    for (let i = 0; i < 6; i++) {
      await world.runtime.stop(agentId, { graceMs: 0 })
      await createAgentReconciler(world.services, world.database.log).pass(signal)
      assert.equal((await waiting(agentId)).length, 1, `start ${i}`)
      assert.equal((await runWaiting(agentId)).state, 'succeeded')
    }
  })

  it('the agent reconciler updates the status and address in the agent’s row', async () => {
    const { agentId, id } = await up()
    await sql(`UPDATE agent SET status = 'starting' WHERE id = $1`, [id])
    await passUntil('its status is known', async () => (await world.agent(agentId)).status === 'running')
    await sql(`UPDATE agent SET address = '127.0.0.1:9' WHERE id = $1`, [id])
    const address = (await world.runtime.inspect(agentId))?.address
    await passUntil('its address is known', async () => (await world.agent(agentId)).address === address)
    assert.deepEqual(await repairs(agentId), [])
  })

  it('the agent reconciler restarts an agent that started before the agent proxy’s key changed', async () => {
    const { agentId } = await up()
    await world.changeProxyKey()
    const reconciler = createAgentReconciler(world.services, world.database.log)
    await until('it is repaired', async () => {
      await reconciler.pass(signal)
      return (await repairs(agentId)).length > 0
    })
    assert.deepEqual(await repairs(agentId), ['agentd has another key'])
    assert.equal((await runWaiting(agentId)).state, 'succeeded')
    await reconciler.pass(signal)
    assert.deepEqual(await repairs(agentId), ['agentd has another key'])
    assert.equal((await world.agent(agentId)).status, 'running')
  })

  it('the agent reconciler ends a pass if PostgreSQL stops responding', {
    timeout: 300_000,
  }, async () => {
    const { port, hostname } = new URL(world.database.url)
    const sockets = new Set<Socket>()
    // A database behind a network that drops everything after the handshake.
    const server = createServer((client) => {
      const upstream = connect(Number(port), hostname)
      sockets.add(client).add(upstream)
      for (const socket of [client, upstream]) socket.on('error', () => {})
      client.on(
        'data',
        (bytes) => bytes.toString('latin1').includes('pg_try_advisory') || upstream.write(bytes),
      )
      upstream.pipe(client)
    }).listen(0, '127.0.0.1')
    await once(server, 'listening')
    const url = new URL(world.database.url)
    url.port = String((server.address() as AddressInfo).port)
    const pool = createPool(url.href, 2, world.database.log)
    const reconciler = createAgentReconciler(
      { ...world.services, pool, prisma: createPrisma(pool) },
      world.database.log,
    )
    await assert.rejects(reconciler.pass(signal), /timeout/i)
    for (const socket of sockets) socket.destroy()
    await pool.end()
    server.close()
  })

  it('the agent reconciler leaves an agent alone that has a pending operation', async () => {
    const made = await up()
    await world.insert(made, 'agent.restart')
    await world.runtime.remove(made.agentId, { volume: false })
    await pass()
    assert.equal((await waiting(made.agentId)).length, 1)
    assert.deepEqual(await repairs(made.agentId), [])
  })

  it('the agent reconciler removes a sandbox that outlived its agent, with its volume', async () => {
    const { agentId, id } = await up()
    await sql('UPDATE agent SET deleted_at = now(), purged_at = now() WHERE id = $1', [id])
    await pass()
    const { sandboxes, volumes } = await world.runtime.list()
    assert.ok(![...sandboxes.map((one) => one.agentId), ...volumes].includes(agentId))
    assert.deepEqual(await repairs(agentId), ['outlived its agent'])
  })

  it('the agent reconciler completes a deletion whose operation ended without it', async () => {
    const { agentId, id } = await up()
    await sql('UPDATE agent SET deleted_at = now() WHERE id = $1', [id])
    await pass()
    assert.ok((await world.agent(agentId)).purged_at)
    assert.equal(await world.runtime.inspect(agentId), undefined)
  })

  it('the agent reconciler removes a sandbox that belongs to no agent, and keeps its volume', async () => {
    const { agentId, id } = await up()
    await sql('DELETE FROM operation WHERE agent_id = $1', [agentId])
    await sql('DELETE FROM agent WHERE id = $1', [id])
    await pass()
    await pass()
    const { sandboxes, volumes } = await world.runtime.list()
    assert.ok(!sandboxes.some((one) => one.agentId === agentId))
    assert.ok(volumes.includes(agentId))
    assert.deepEqual(await repairs(agentId), ['of no agent'])
  })

  it('the agent reconciler records its engine versions, and which ones cannot run', async () => {
    await sql(
      `INSERT INTO engine_version (engine, version, runtime) VALUES ('openclaw', '2020.1.1', 'process')`,
    )
    await sql(`UPDATE engine_version SET obstacle = 'its Node was older'`)
    await pass()
    const rows = await sql(
      `SELECT version, obstacle FROM engine_version WHERE runtime = 'process' ORDER BY version`,
    )
    assert.deepEqual(
      rows.map(({ version }) => version),
      Object.values(STAND_IN).sort(),
    )
    assert.deepEqual(
      rows.filter(({ obstacle }) => obstacle !== null).map(({ version }) => version),
      [STAND_IN.unfit],
    )
  })

  for (const driver of SANDBOX_DRIVERS)
    it(`the database accepts the engine versions of workers with the driver ${driver}`, async () => {
      await keepVersions.run(world.database.pool, driver, ['2020.1.2'], [''])
      const rows = await sql(`SELECT FROM engine_version WHERE version = '2020.1.2'`)
      await keepVersions.run(world.database.pool, driver, [], [])
      assert.equal(rows.length, 1)
    })

  it('the agent reconciler notices at once that a sandbox has ended', async () => {
    const { agentId } = await up()
    const services = {
      ...world.services,
      config: {
        ...world.services.config,
        BERTH_INTERVALS: { ...world.services.config.BERTH_INTERVALS, agents: 3600 },
      },
    }
    await sql('DELETE FROM engine_version')
    const loop = startAgentLoop(services, world.database.log)
    try {
      // By then the first pass is over, and the next one is an hour away.
      await until('it has compared', async () => (await sql('SELECT FROM engine_version')).length > 0)
      await world.runtime.stop(agentId, { graceMs: 0 })
      await until('a restart', async () => (await waiting(agentId)).length === 1)
    } finally {
      await loop.stop()
    }
  })
})
