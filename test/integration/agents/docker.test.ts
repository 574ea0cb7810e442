/** Agents in Docker whose containers are broken by hand or run out of memory; with a stand-in for the engine. */
import assert from 'node:assert/strict'
import { after, afterEach, before, describe, it } from 'node:test'
import type { ExecRequest, ExecResult } from '../../../agentd/protocol.ts'
import { readStatus } from '../../../src/agents/agentd-status.ts'
import { nameOf } from '../../../src/sandboxes/names.ts'
import { createAgentReconciler } from '../../../workers/reconcile/agents.ts'
import { docker } from '../../support/docker.ts'
import { until } from '../../support/processes.ts'
import { SUBNETS, whyNotDocker } from '../sandboxes/docker-subject.ts'
import { STAND_IN, tagStandInBase } from './stand-in.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

const MEMORY_MB = 192

describe('an agent in Docker', { skip: await whyNotDocker() }, () => {
  let world: AgentsWorld
  before(async () => {
    world = await startAgentsWorld({
      BERTH_RUNTIME: 'docker',
      BERTH_BASE_IMAGE: await tagStandInBase(),
      BERTH_AGENT_SUBNETS: SUBNETS,
    })
    // Less than the setting allows, because the tests fill it.
    const { config } = world.services
    const limits = { ...config.BERTH_AGENT_LIMITS, memoryMb: MEMORY_MB }
    world.services.config = { ...config, BERTH_AGENT_LIMITS: limits }
  })
  afterEach(() => world.clear())
  after(() => world?.stop())

  const { signal } = new AbortController()
  const pass = () => createAgentReconciler(world.services, world.database.log).pass(signal)
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
  const exec = async (agentId: string, command: string) => {
    const json: ExecRequest = { command, timeoutMs: 60_000, outputBytes: 10_000 }
    const target = await targetOf(agentId)
    return world.services.agentd.json<ExecResult>(target, { method: 'POST', path: '/v1/exec', json })
  }
  const statusOf = async (agentId: string) =>
    readStatus(world.services.agentd, await targetOf(agentId), { timeoutMs: 10_000 })
  const container = (agentId: string) => docker.getContainer(nameOf(agentId))
  const row = async (agentId: string) => {
    const { status, status_reason: reason } = await world.agent(agentId)
    return [status, reason]
  }
  const runWaiting = async (agentId: string) => {
    const { rows } = await world.database.pool.query<{ id: string }>(
      `SELECT id FROM operation WHERE agent_id = $1 AND state = 'queued'`,
      [agentId],
    )
    assert.equal(rows.length, 1)
    return world.run(String(rows[0]?.id))
  }
  const events = async (agentId: string) => {
    const { rows } = await world.database.pool.query<{ type: string; reason: string | null }>(
      `SELECT type, data->>'statusReason' AS reason FROM event_pending WHERE resource_id = $1 ORDER BY 1`,
      [agentId],
    )
    return rows.map(({ type, reason }) => `${type} ${reason ?? ''}`)
  }

  const network = (agentId: string) => docker.getNetwork(nameOf(agentId))
  for (const [what, fault, harm] of [
    [
      'lost its network',
      'its container is not connected to its network',
      (agentId: string) => network(agentId).disconnect({ Container: nameOf(agentId), Force: true }),
    ],
    ['is paused', 'its container is paused', (agentId: string) => container(agentId).pause()],
  ] as const) {
    it(`an agent whose container ${what} reports it at once and is repaired [report: broken sandboxes]`, async () => {
      const { agentId } = await up()
      assert.equal((await exec(agentId, 'echo kept > ~/note')).exitCode, 0)
      await harm(agentId)
      await pass()
      assert.deepEqual(await row(agentId), ['starting', fault])
      assert.equal((await runWaiting(agentId)).state, 'succeeded')
      assert.deepEqual(await row(agentId), ['running', null])
      assert.equal((await exec(agentId, 'cat ~/note')).stdout, 'kept\n')
      await pass()
      assert.deepEqual(await row(agentId), ['running', null])
    })

    it(`a restart by the owner repairs a container that ${what} [report: broken sandboxes]`, async () => {
      const made = await up()
      await harm(made.agentId)
      assert.equal(
        (await world.run(await world.insert(made, 'agent.restart', { rebuild: true }))).state,
        'succeeded',
      )
      assert.equal((await exec(made.agentId, 'echo works')).stdout, 'works\n')
    })
  }

  it('a stopped container that lost its network is repaired [report: broken sandboxes]', async () => {
    const { agentId } = await up()
    await world.runtime.stop(agentId)
    await network(agentId).disconnect({ Container: nameOf(agentId), Force: true })
    await network(agentId).remove()
    await pass()
    assert.equal((await runWaiting(agentId)).state, 'succeeded')
    assert.equal((await exec(agentId, 'echo works')).stdout, 'works\n')
  })

  it('a restart recreates the container once, over any attempts [report: broken sandboxes]', async () => {
    const made = await up()
    const idOf = async () => (await container(made.agentId).inspect()).Id
    const first = await idOf()
    const restart = await world.insert(made, 'agent.restart', { rebuild: true })
    assert.equal((await world.run(restart)).state, 'succeeded')
    const second = await idOf()
    assert.notEqual(second, first)
    await world.database.pool.query(
      `UPDATE operation SET state = 'queued', finished_at = NULL, next_attempt_at = now() WHERE id = $1`,
      [restart],
    )
    assert.equal((await world.run(restart)).state, 'succeeded')
    assert.equal(await idOf(), second)
  })

  it('an agent whose image was pruned is started on a new one [report: broken sandboxes]', async () => {
    const { agentId } = await up()
    await world.runtime.stop(agentId)
    for (const { place } of await world.runtime.engines())
      if (place.includes(STAND_IN.good)) await docker.getImage(place).remove({ force: true })
    await pass()
    assert.equal((await runWaiting(agentId)).state, 'succeeded')
    assert.equal((await exec(agentId, 'echo works')).stdout, 'works\n')
  })

  it('a command that runs out of memory reports it with the limit [report: out of memory]', async () => {
    const { agentId } = await up()
    const reason = `out of memory: the kernel killed a process while this command ran, the agent's limit is ${MEMORY_MB} MiB`
    const killed = await exec(agentId, 'echo begun; tail /dev/zero; exit 3')
    assert.deepEqual([killed.exitCode, killed.reason, killed.stdout], [3, reason, 'begun\n'])
    assert.ok(killed.stderr.endsWith(`${reason}\n`), killed.stderr)
    assert.equal((await exec(agentId, 'tail /dev/zero')).reason, reason)
    const other = await exec(agentId, 'kill -9 $$')
    assert.deepEqual([other.exitCode, other.reason, other.stderr], [137, undefined, ''])
  })

  it('a script that runs out of memory reports it in the status [report: out of memory]', async () => {
    const made = await up()
    await world.services.agentd.bytes(await targetOf(made.agentId), {
      method: 'PUT',
      path: '/v1/file?path=manifest.json',
      body: Buffer.from(JSON.stringify({ scripts: { build: 'tail /dev/zero' } })),
    })
    assert.equal((await world.run(await world.insert(made, 'agent.scripts'))).state, 'succeeded')
    const { scripts } = await until('it has failed', async () => {
      const status = await statusOf(made.agentId)
      return status.scripts.build.state === 'failed' && status
    })
    assert.match(
      scripts.build.reason ?? '',
      /out of memory: .*script build ran, the agent's limit is 192 MiB/,
    )
    await pass()
    const { scripts: known } = await world.agent(made.agentId)
    assert.deepEqual((known as typeof scripts).build.reason, scripts.build.reason)
  })

  it('a gateway out of memory restarts, and status and event say why [report: out of memory]', async () => {
    const { agentId } = await up()
    const { pid } = (await statusOf(agentId)).gateway
    // The kernel first takes the process that this marks.
    await exec(agentId, `echo 1000 > /proc/${pid}/oom_score_adj; timeout 20 tail /dev/zero`)
    const { gateway } = await until('it is ready again', async () => {
      const status = await statusOf(agentId)
      return status.gateway.restarts === 1 && status.gateway.state === 'ready' && status
    })
    assert.match(gateway.outOfMemory ?? '', /^restarted at 20.*Z: out of memory: .*gateway.* 192 MiB$/)
    await pass()
    assert.deepEqual(await row(agentId), ['running', gateway.outOfMemory])
    const told = await events(agentId)
    assert.ok(told.includes(`agent.stopped ${gateway.outOfMemory}`), told.join())
    await pass()
    assert.deepEqual(await events(agentId), told)
  })

  it('a container that runs out of memory reports it in status and event [report: out of memory]', async () => {
    const { agentId } = await up()
    await exec(agentId, 'echo 1000 > /proc/$PPID/oom_score_adj; tail /dev/zero').catch(() => {})
    await until('it has ended', async () => (await world.runtime.inspect(agentId))?.state === 'exited')
    await pass()
    const reason = `out of memory: the kernel killed its container, the agent's limit is ${MEMORY_MB} MiB`
    assert.deepEqual(await row(agentId), ['starting', reason])
    assert.ok((await events(agentId)).includes(`agent.stopped ${reason}`))
    assert.equal((await runWaiting(agentId)).state, 'succeeded')
    assert.deepEqual(await row(agentId), ['running', null])
  })
})
