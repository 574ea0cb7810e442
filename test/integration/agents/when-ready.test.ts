/** Engine calls that fail because the gateway is not ready are repeated while that may help. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AgentdError } from '../../../src/agents/agentd-client.ts'
import { whenReady } from '../../../src/agents/engine-call.ts'
import { startReconciled } from './reconciled.ts'

const { world, signal, sql, up } = await startReconciled()

/** A running agent, and a call that its engine rejects the first `failures` times. */
async function refusing(failures: number, error = new AgentdError('not_ready', 'the gateway stalls')) {
  const { id, agentId } = await up()
  const [row] = await sql('SELECT address, epoch FROM agent WHERE id = $1', [id])
  const target = { agentId, address: String(row?.address) }
  const { agentd } = world.services
  let calls = 0
  const ask = (ms: number) =>
    whenReady(agentd, target, { ms, signal }, async () => {
      if (calls++ < failures) throw error
      return calls
    })
  const stop = () => agentd.json(target, { method: 'DELETE', path: '/v1/gateway', epoch: Number(row?.epoch) })
  return { ask, stop, calls: () => calls }
}

describe('an engine call', () => {
  it('an engine call is repeated until the engine is ready', async () => {
    const { ask } = await refusing(2)
    assert.equal(await ask(60_000), 3)
  })
  it('an engine call is given up when its time is over', async () => {
    const { ask, calls } = await refusing(Number.POSITIVE_INFINITY)
    await assert.rejects(ask(0), /stalls/)
    assert.equal(calls(), 1)
  })
  it('an engine call is given up if the gateway is ready all the time', async () => {
    const { ask, calls } = await refusing(Number.POSITIVE_INFINITY)
    await assert.rejects(ask(3_600_000), /stalls/)
    assert.ok(calls() > 1)
  })
  it('an engine call is not repeated after its gateway was stopped', async () => {
    const { ask, stop, calls } = await refusing(Number.POSITIVE_INFINITY)
    await stop()
    await assert.rejects(ask(3_600_000), /stalls/)
    assert.equal(calls(), 1)
  })
  it('an engine call that failed for another reason is not repeated', async () => {
    const { ask, calls } = await refusing(1, new AgentdError('engine', 'no such method'))
    await assert.rejects(ask(60_000), /no such method/)
    assert.equal(calls(), 1)
  })
})
