/** New agents that take over a spare (contract 4.3): only their speed differs from that of other agents. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { STAND_IN } from '../../integration/agents/stand-in.ts'
import { until } from '../../support/processes.ts'
import { stackKind } from '../../support/stack.ts'
import { openContext, startShared } from '../context.ts'
import { finalAnswer, remove } from './context.ts'

const AGENTS = '/v0/agents'
const FULL_MS = 600_000

/** In containers the real engine. */
const engine = stackKind === 'embedded' && { BERTH_ENGINE_VERSIONS: STAND_IN.good }

describe('a Berth with spare agents', { timeout: 900_000 }, () => {
  it('a Berth with spare agents gives each to one new agent, and shows only agents with an owner', async () => {
    const stack = await startShared({ BERTH_POOL: '1', ...engine })
    const context = await openContext(stack)
    const { api } = await context.workspace()
    const running = async () => {
      const rows = await context.sql('SELECT agent_id FROM agent WHERE name = $1 AND status = $2', [
        'spare',
        'running',
      ])
      return rows[0] as { agent_id: string } | undefined
    }
    const spare = await until('a spare is ready', running, FULL_MS)
    assert.deepEqual((await api.get(AGENTS)).body.agents, [])
    const path = `${AGENTS}/${spare.agent_id}`
    const strange = await api.get(path)
    assert.notEqual(strange.status, 200)

    const health = await until('the health shows the pool', async () => {
      const { parts } = (await context.shared.get('/v0/admin/health')).body.data
      return parts.find(
        (part: { name: string; detail: string }) => part.name === 'pool' && /^1/.test(part.detail),
      )
    })
    assert.deepEqual(health, { name: 'pool', status: 'ok', detail: '1 of 1 ready' })

    const create = async (name: string) => {
      const { status, body } = await finalAnswer(api, AGENTS, { name })
      assert.equal(status, 201, JSON.stringify(body))
      return body.agent as { agentId: string }
    }
    const first = await create('First')
    assert.equal(first.agentId, spare.agent_id)
    const { body } = await api.get(path)
    assert.deepEqual(
      [body.agent.name, body.agent.status, body.processStatus],
      ['First', 'running', 'running'],
    )
    const command = { command: 'echo $AGENT_NAME' }
    assert.equal((await api.post(`${path}/console/exec`, command)).body.stdout, 'First\n')
    const second = await create('Second')
    assert.notEqual(second.agentId, first.agentId)
    const listed = (await api.get(AGENTS)).body.agents as { name: string }[]
    assert.deepEqual(
      listed.map(({ name }) => name),
      ['First', 'Second'],
    )

    await until('another spare is ready', running, FULL_MS)
    await remove(api, first.agentId)
    await remove(api, second.agentId)
  })
})
