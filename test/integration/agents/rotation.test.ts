/** `berth keys rotate-secrets`, and which secrets can be decrypted before, during and after it. */
import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { type Agent, findAgent } from '../../../src/agents/agent.ts'
import { saveChannel } from '../../../src/agents/channels/channel-service.ts'
import { readChannels } from '../../../src/agents/channels/channel-store.ts'
import { rotateSecrets } from '../../../src/agents/secrets/rotation.ts'
import { listSecrets } from '../../../src/agents/secrets/secret-service.ts'
import { createPrisma, type PrismaClient } from '../../../src/db/prisma.ts'
import { Encryption } from '../../../src/lib/encryption.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { runCli } from '../../support/stack.ts'

const [FIRST, SECOND, THIRD] = ['1'.repeat(32), '2'.repeat(32), '3'.repeat(32)] as [string, string, string]
/** More than two pages. */
const SECRETS = 1001

describe('berth keys rotate-secrets', () => {
  let database: TestDatabase
  let prisma: PrismaClient
  let agent: Agent
  let dir: string
  before(async () => {
    dir = await mkdtemp(join(tmpdir(), 'berth-rotation-'))
    database = await startDatabase()
    prisma = createPrisma(database.pool)
    const workspaceId = await database.createWorkspace()
    const { agentId } = await insertAgentRow(database.pool, { workspaceId })
    agent = (await findAgent(database.pool, agentId)) as Agent
    await insertSecrets(FIRST, SECRETS)
    const first = { prisma, encryption: new Encryption(FIRST) }
    await saveChannel(first, agent, 'discord', { botToken: 'of discord' }, undefined)
  })
  after(async () => {
    await database?.stop()
    await rm(dir, { recursive: true, force: true })
  })

  async function insertSecrets(key: string, count: number): Promise<void> {
    const { workspaceId } = agent
    const encryption = new Encryption(key)
    const before = await prisma.secret.count()
    await prisma.secret.createMany({
      data: Array.from({ length: count }, (_, i) => {
        const id = uuidv7()
        const ciphertext = Uint8Array.from(encryption.encrypt(workspaceId, id, `value ${before + i}`))
        return { id, workspaceId, userId: uuidv7(), name: `N${before + i}`, type: 'variable', ciphertext }
      }),
    })
  }
  async function assertOpens(encryption: Encryption, count: number): Promise<void> {
    const secrets = await listSecrets(prisma, encryption, agent.workspaceId)
    assert.equal(secrets.length, count)
    for (const { name, value } of secrets) assert.equal(value, `value ${name.slice(1)}`)
    const [channel] = await readChannels(prisma, encryption, agent)
    assert.equal(channel?.tokens?.botToken, 'of discord')
  }
  const berth = (env: NodeJS.ProcessEnv) =>
    runCli({ DATABASE_URL: database.url, BERTH_DATA_DIR: dir, ...env }, 'keys', 'rotate-secrets')

  it('berth keys rotate-secrets names the settings that it needs', async () => {
    for (const [env, name] of [
      [{ SECRETS_KEY: SECOND }, 'SECRETS_KEY_PREVIOUS'],
      [{ SECRETS_KEY: '', SECRETS_KEY_PREVIOUS: FIRST }, 'SECRETS_KEY'],
      [{ SECRETS_KEY: SECOND, SECRETS_KEY_PREVIOUS: 'short' }, 'SECRETS_KEY_PREVIOUS'],
    ] as const) {
      const { code, stderr } = await berth(env)
      assert.notEqual(code, 0)
      assert.match(stderr, new RegExp(`^${name}: `, 'm'))
    }
    await assertOpens(new Encryption(FIRST), SECRETS)
  })
  it('berth keys rotate-secrets re-encrypts all secrets, which can be decrypted throughout', async () => {
    await assertOpens(new Encryption(SECOND, FIRST), SECRETS)
    await insertSecrets(SECOND, 1)
    await assertOpens(new Encryption(SECOND, FIRST), SECRETS + 1)
    const env = { SECRETS_KEY: SECOND, SECRETS_KEY_PREVIOUS: FIRST }
    const { code, stdout } = await berth(env)
    assert.equal(code, 0)
    assert.match(
      stdout,
      new RegExp(`^${SECRETS + 1} encrypted anew, ${SECRETS + 2} have SECRETS_KEY now$`, 'm'),
    )
    await assertOpens(new Encryption(SECOND), SECRETS + 1)
    assert.match((await berth(env)).stdout, /^0 encrypted anew/m)
  })
  it('berth keys rotate-secrets renews secrets that another process writes with the previous key', async () => {
    const encryption = new Encryption(THIRD, SECOND)
    const rotating = rotateSecrets(prisma, encryption)
    await insertSecrets(SECOND, 1)
    await rotating
    await rotateSecrets(prisma, encryption)
    await assertOpens(new Encryption(THIRD), SECRETS + 2)
  })
  it('berth keys rotate-secrets names secrets that neither key decrypts, and fails', async () => {
    await prisma.secret.updateMany({ where: { name: 'N7' }, data: { ciphertext: new Uint8Array(60) } })
    const { code, stdout } = await berth({ SECRETS_KEY: FIRST, SECRETS_KEY_PREVIOUS: THIRD })
    assert.equal(code, 1)
    assert.match(stdout, new RegExp(`secret N7 of workspace ${agent.workspaceId}: neither key decrypts it`))
    assert.match(stdout, new RegExp(`^${SECRETS + 2} encrypted anew`, 'm'))
  })
})
