/** The environment that starts an agent's gateway, built from the database. */
import assert from 'node:assert/strict'
import { after, before, beforeEach, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { type Agent, findAgent } from '../../../src/agents/agent.ts'
import { attachSecrets, detachSecret } from '../../../src/agents/secrets/attachments.ts'
import { createSecret, updateSecret } from '../../../src/agents/secrets/secret-service.ts'
import { loadConfig } from '../../../src/config.ts'
import { createPrisma, inTransaction, type PrismaClient } from '../../../src/db/prisma.ts'
import { Encryption } from '../../../src/lib/encryption.ts'
import { StartFailed } from '../../../workers/agents/failure.ts'
import { agentEnvironment } from '../../../workers/agents/gateway.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'

const config = loadConfig({ PUBLIC_URL: 'https://berth.example', BERTH_AGENT_DOMAIN: 'agents.example' })
const encryption = new Encryption('s'.repeat(32))

describe('the environment of an agent', () => {
  let database: TestDatabase
  let prisma: PrismaClient
  let workspaceId: string
  let agent: Agent

  const owner = () => ({ workspaceId, userId: uuidv7() })
  const create = (name: string, value: string) =>
    createSecret(prisma, encryption, owner(), { name, value, type: 'secret' })
  const attach = (...ids: string[]) => inTransaction(prisma, (tx) => attachSecrets(tx, agent, ids))
  const environment = (opener = encryption, hasProxy = true) =>
    agentEnvironment({ prisma, encryption: opener, config, hasProxy }, agent)

  before(async () => {
    database = await startDatabase()
    prisma = createPrisma(database.pool)
  })
  after(() => database?.stop())
  beforeEach(async () => {
    workspaceId = await database.createWorkspace()
    const row = { workspaceId, name: 'Ann', emoji: '📚', userName: 'Bob', status: 'starting' }
    const { agentId } = await insertAgentRow(database.pool, row)
    agent = (await findAgent(database.pool, agentId)) as Agent
  })

  it('the environment of an agent names the agent, its addresses and its user', async () => {
    assert.deepEqual(await environment(), {
      env: {
        AGENT_ID: agent.agentId,
        AGENT_NAME: 'Ann',
        AGENT_EMOJI: '📚',
        AGENT_VIBE: '',
        AGENT_URL: `https://${agent.agentId}.agents.example`,
        AGENTS_API_URL: 'https://agents.example',
        OPENCLAW_GATEWAY_TOKEN: agent.gatewayToken,
        USER_NAME: 'Bob',
        USER_EMAIL: '',
      },
      names: [],
      secretVersions: {},
      hasLlmKey: false,
    })
  })

  it('the environment of an agent has the current values and versions of its attached secrets', async () => {
    const [a, b] = [await create('A', 'one'), await create('B', 'zwei\n"ü"')]
    await create('C', 'of nobody')
    await attach(a.id, b.id)
    await updateSecret(prisma, encryption, workspaceId, a.id, { value: 'another one' })
    const { env, secretVersions } = await environment()
    assert.deepEqual([env.A, env.B, env.C], ['another one', 'zwei\n"ü"', undefined])
    assert.deepEqual(secretVersions, { [a.id]: 2, [b.id]: 1 })
    await detachSecret(prisma, agent, b.id)
    const later = await environment()
    assert.deepEqual([later.env.B, later.secretVersions], [undefined, { [a.id]: 2 }])
  })

  it('secrets with hosts are placeholders behind an egress proxy, and values in processes', async () => {
    const value = 'sk-proj-0123456789'
    const secret = { name: 'KEY', value, type: 'secret' as const, hosts: ['api.example.com'] }
    const { id } = await createSecret(prisma, encryption, owner(), secret)
    await attach(id)
    const { env } = await environment()
    assert.match(env.KEY ?? '', /^sk-proj-\d{10}$/)
    assert.ok(!JSON.stringify(env).includes('0123456789'))
    assert.equal((await environment(encryption, false)).env.KEY, value)
  })

  it('a secret cannot override a variable of the environment of an agent, whatever its name', async () => {
    const { id } = await create('AGENT_ID', 'another')
    await attach(id)
    assert.equal((await environment()).env.AGENT_ID, agent.agentId)
  })

  it('the environment of an agent is refused if secrets cannot be decrypted, and they are named', async () => {
    const made = [await create('A', 'one'), await create('B', 'two'), await create('C', 'three')]
    await attach(...made.map(({ id }) => id))
    const [a, b] = made
    // Each ciphertext belongs to another secret.
    await database.pool.query(
      'UPDATE secret s SET ciphertext = o.ciphertext FROM secret o WHERE s.id = ANY($1) AND o.id = ANY($1) AND o.id <> s.id',
      [[a?.id, b?.id]],
    )
    const refused = (names: string) => (error: Error) =>
      error instanceof StartFailed &&
      error.code === 'secrets_unreadable' &&
      error.message.startsWith(`SECRETS_KEY does not open ${names}: `)
    await assert.rejects(environment(), refused('A, B'))
    await assert.rejects(environment(new Encryption('t'.repeat(32))), refused('A, B, C'))
    await assert.rejects(environment(new Encryption('')), refused('A, B, C'))
    await updateSecret(prisma, encryption, workspaceId, a?.id ?? '', { value: 'one' })
    await detachSecret(prisma, agent, b?.id ?? '')
    assert.equal((await environment()).env.A, 'one')
  })
})
