/** Agents whose agentd does not answer, because it hangs, or because the agent proxy is away or hangs. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { describe, it } from 'node:test'
import { createAgentReconciler } from '../../../workers/reconcile/agents.ts'
import { holdUp, until } from '../../support/processes.ts'
import { agentdPid, startReconciled } from './reconciled.ts'

const { world, signal, up, waiting, repairs, runWaiting, pass } = await startReconciled()

describe('an agentd that does not answer', () => {
  it('the agent reconciler restarts nothing while the agent proxy is away', async () => {
    const { agentId } = await up()
    await world.host.close()
    for (let i = 0; i < 4; i++) await pass()
    await world.host.open()
    assert.deepEqual(await waiting(agentId), [])
    assert.equal((await world.agent(agentId)).status, 'running')
  })

  it('no agent is restarted while the agent proxy hangs', async () => {
    const made = await up()
    const { agentId } = made
    const pid = await agentdPid(agentId)
    const hasty = createAgentReconciler(world.services, world.database.log, { silentMs: 0 })
    await world.host.close()
    const hanging = createServer((socket) => void sockets.push(socket.on('error', () => {})))
    const sockets: Socket[] = []
    await once(hanging.listen(world.services.config.BERTH_AGENT_PROXY_PORT, '127.0.0.1'), 'listening')
    try {
      await hasty.pass(signal)
      assert.deepEqual([await waiting(agentId), await repairs(agentId)], [[], []])
      const { state, error_code } = await world.run(
        await world.insert(made, 'agent.restart', { rebuild: true }),
      )
      assert.deepEqual([state, error_code], ['queued', 'outage'])
    } finally {
      for (const socket of sockets) socket.destroy()
      await new Promise((resolve) => hanging.close(resolve))
      await world.host.open()
    }
    assert.equal(await agentdPid(agentId), pid)
  })

  it('the agent reconciler restarts an agent whose agentd hangs', { timeout: 300_000 }, async () => {
    const made = await up()
    const hasty = createAgentReconciler(world.services, world.database.log, { silentMs: 0 })
    const pid = await agentdPid(made.agentId)
    await holdUp(pid)
    await hasty.pass(signal)
    await hasty.pass(signal)
    assert.deepEqual(await repairs(made.agentId), ['agentd silent'])
    assert.equal((await runWaiting(made.agentId)).state, 'succeeded')
    assert.notEqual(await agentdPid(made.agentId), pid)
    assert.equal((await world.agent(made.agentId)).status, 'running')
  })

  it('a restart of an agent resets the silence of its agentd', { timeout: 300_000 }, async () => {
    const made = await up()
    const reconciler = createAgentReconciler(world.services, world.database.log, { silentMs: 500 })
    const pid = await agentdPid(made.agentId)
    await holdUp(pid)
    const began = performance.now()
    await reconciler.pass(signal)
    process.kill(pid, 'SIGCONT')
    assert.equal(
      (await world.run(await world.insert(made, 'agent.restart', { rebuild: true }))).state,
      'succeeded',
    )
    await until('longer ago than the limit', () => performance.now() - began > 500)
    await holdUp(await agentdPid(made.agentId))
    await reconciler.pass(signal)
    assert.deepEqual(await repairs(made.agentId), [])
    await reconciler.pass(signal)
    assert.deepEqual(await repairs(made.agentId), ['agentd silent'])
  })
})
