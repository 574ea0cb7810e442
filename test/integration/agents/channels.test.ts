/** Channels as they are stored, with the operations that give them to the gateway. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { type Agent, findAgent, newAgentId, newGatewayToken } from '../../../src/agents/agent.ts'
import { removeChannel, saveChannel } from '../../../src/agents/channels/service.ts'
import { readChannels } from '../../../src/agents/channels/store.ts'
import { Sealer } from '../../../src/sealer.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'

describe('a channel saved under an Idempotency-Key', () => {
  const sealer = new Sealer('s'.repeat(32))
  let database: TestDatabase
  let agent: Agent
  before(async () => {
    database = await startDatabase()
    const agentId = newAgentId()
    await database.pool.query(
      `INSERT INTO agent (id, agent_id, workspace_id, user_id, name, engine, engine_version, gateway_token, status)
       VALUES ($1, $2, $3, $4, 'Ann', 'openclaw', '2026.9.6', $5, 'running')`,
      [uuidv7(), agentId, await database.createWorkspace(), uuidv7(), newGatewayToken()],
    )
    agent = (await findAgent(database.pool, agentId)) as Agent
  })
  after(() => database?.stop())

  const save = (botToken: string, key?: string) =>
    saveChannel({ pool: database.pool, sealer }, agent, 'discord', { botToken }, key)
  const stored = async () =>
    (await readChannels(database.pool, sealer, agent)).map(({ tokens }) => tokens?.botToken)

  it('is saved once: a repeat takes nothing back that came later', async () => {
    const first = await save('one', 'key')
    await save('two')
    assert.equal(await save('one', 'key'), first)
    assert.deepEqual(await stored(), ['two'])
    await removeChannel({ pool: database.pool, sealer }, agent, 'discord')
    assert.equal(await save('one', 'key'), first)
    assert.deepEqual(await stored(), [])
  })
  it('is 422 for another request', async () => {
    await assert.rejects(save('three', 'key'), { status: 422 })
    const change = { botToken: 'one', skipRestart: true }
    await assert.rejects(saveChannel({ pool: database.pool, sealer }, agent, 'discord', change, 'key'), {
      status: 422,
    })
    assert.deepEqual(await stored(), [])
  })
})
