/** An agent whose engine takes longer to start than Berth waits (contract 2.4, 7). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openGate, STAND_IN } from '../../integration/agents/stand-in.ts'
import { assertError } from '../../support/client.ts'
import { stackKind } from '../../support/stack.ts'
import { openContext, startShared } from '../context.ts'
import { finalAnswer, remove } from './context.ts'

const AGENTS = '/v0/agents'

/** An engine that is ready once its gate is opened; in containers the real one, which takes ten seconds. */
const engine = stackKind === 'embedded' && { BERTH_ENGINE_VERSIONS: STAND_IN.gated }

describe('an agent that does not start in time', { timeout: 900_000 }, () => {
  it('an agent that does not start in time returns 500, is listed, and can be restarted', async () => {
    const stack = await startShared({ BERTH_AGENT_READY_SECONDS: '1', ...engine })
    const hasty = await openContext(stack)
    const { api } = await hasty.workspace()
    const reply = await finalAnswer(api, AGENTS, { name: 'Late' })
    assert.equal(reply.status, 500, JSON.stringify(reply.body))
    const { error, agent } = reply.body
    assert.equal(error, 'Gateway failed to start')
    assert.deepEqual([agent.name, agent.status], ['Late', 'not_running'])
    assert.match(agent.statusReason, /not ready/)
    assert.ok(reply.headers.get('operation-id'))
    const listed = (await api.get(AGENTS)).body.agents
    assert.deepEqual(
      listed.map((one: { agentId: string; status: string }) => [one.agentId, one.status]),
      [[agent.agentId, 'not_running']],
    )
    const restart = await finalAnswer(api, `${AGENTS}/${agent.agentId}/restart`, {})
    assertError(restart, 500, 'Restart failed')
    assert.match(restart.headers.get('error-detail') ?? '', /not ready/)
    const scripts = await api.post(`${AGENTS}/${agent.agentId}/scripts/retry`, undefined)
    assertError(scripts, 500, 'Script launch failed')

    // As an operator would: with a longer timeout, the same agent starts.
    stack.env.BERTH_AGENT_READY_SECONDS = '230'
    if (engine) await openGate(stack.env.BERTH_ENGINES_DIR ?? '')
    await stack.kill()
    await stack.restart()
    const again = await finalAnswer(api, `${AGENTS}/${agent.agentId}/restart`, {})
    assert.equal(again.status, 200, `${again.body.error}: ${again.headers.get('error-detail')}`)
    assert.equal((await api.get(`${AGENTS}/${agent.agentId}`)).body.agent.status, 'running')
    await remove(api, agent.agentId)
  })
})
