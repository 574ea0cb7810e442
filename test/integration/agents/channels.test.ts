/** Channels as they are stored, with the operations that load them into the gateway. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { type Agent, findAgent } from '../../../src/agents/agent.ts'
import { removeChannel, saveChannel } from '../../../src/agents/channels/channel-service.ts'
import { readChannels } from '../../../src/agents/channels/channel-store.ts'
import { attachSecrets } from '../../../src/agents/secrets/attachments.ts'
import { createSecret } from '../../../src/agents/secrets/secret-service.ts'
import { createPrisma, inTransaction } from '../../../src/db/prisma.ts'
import { Encryption } from '../../../src/lib/encryption.ts'
import { applyChannels } from '../../../workers/agents/manifest/channels.ts'
import type { Applying } from '../../../workers/agents/manifest/part.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { useDatabase } from '../../support/database.ts'

const database = await useDatabase()
const prisma = createPrisma(database.pool)
const row = { workspaceId: await database.createWorkspace(), name: 'Ann' }
const { agentId } = await insertAgentRow(database.pool, row)
const agent = (await findAgent(database.pool, agentId)) as Agent

describe('a channel', () => {
  const encryption = new Encryption('s'.repeat(32))
  const save = (botToken: string, key?: string) =>
    saveChannel({ prisma, encryption }, agent, 'discord', { botToken }, key)
  const stored = async () =>
    (await readChannels(prisma, encryption, agent)).map(({ tokens }) => tokens?.botToken)

  it('a channel is saved once: a repeat reverts no later change', async () => {
    const first = await save('one', 'key')
    await save('two')
    assert.equal(await save('one', 'key'), first)
    assert.deepEqual(await stored(), ['two'])
    await removeChannel({ prisma, encryption }, agent, 'discord')
    assert.equal(await save('one', 'key'), first)
    assert.deepEqual(await stored(), [])
  })
  it('a channel key that is reused for another request returns 422', async () => {
    await assert.rejects(save('three', 'key'), { status: 422 })
    const change = { botToken: 'one', skipRestart: true }
    await assert.rejects(saveChannel({ prisma, encryption }, agent, 'discord', change, 'key'), {
      status: 422,
    })
    assert.deepEqual(await stored(), [])
  })
  it('a manifest’s channel queues one restart, even if applied again after a crash', async () => {
    const { pool } = database
    const own = { ...agent, ...(await insertAgentRow(pool, { workspaceId: agent.workspaceId })) }
    const owner = { workspaceId: own.workspaceId, userId: uuidv7() }
    const secret = await createSecret(prisma, encryption, owner, {
      name: 'TOKEN',
      value: 'a.b.c',
      type: 'secret',
    })
    await inTransaction(prisma, (tx) => attachSecrets(tx, own, [secret.id]))
    const applying = { services: { prisma, encryption, config: {} }, agent: own } as unknown as Applying
    for (let i = 0; i < 2; i++)
      assert.deepEqual(await applyChannels(applying, { discord: { botToken: 'env:TOKEN' } }), {
        problems: [],
      })
    const { rows } = await pool.query('SELECT kind, state FROM operation WHERE agent_id = $1', [own.agentId])
    assert.deepEqual(rows, [{ kind: 'agent.restart', state: 'queued' }])
  })
  it('a manifest’s channel gets no secret that stays outside of the agent', async () => {
    const own = { ...agent, ...(await insertAgentRow(database.pool, { workspaceId: agent.workspaceId })) }
    const owner = { workspaceId: own.workspaceId, userId: uuidv7() }
    const value = 'MTIzNDU2.abcdef.0123456789'
    const applying = { services: { prisma, encryption, config: {} }, agent: own } as unknown as Applying
    for (const given of [{ name: 'BROKERED', hosts: ['api.example.com'] }, { name: 'TOGETHER_API_KEY' }]) {
      const { id } = await createSecret(prisma, encryption, owner, { value, type: 'secret', ...given })
      await inTransaction(prisma, (tx) => attachSecrets(tx, own, [id]))
      const problem = `.discord: botToken: the value of ${given.name} stays outside of the agent`
      assert.deepEqual(await applyChannels(applying, { discord: { botToken: `env:${given.name}` } }), {
        problems: [problem],
      })
    }
    assert.deepEqual(await readChannels(prisma, encryption, own), [])
  })
})
