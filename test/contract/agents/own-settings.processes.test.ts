/** Routes of agents with different settings, and with a fake agentd, in the test's own web process. */

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdtemp, rm } from 'node:fs/promises'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { KeyService } from '../../../src/accounts/keys.ts'
import { createWorkspace } from '../../../src/accounts/workspaces.ts'
import { AgentAccess } from '../../../src/agents/access.ts'
import { type Agent, newGatewayToken } from '../../../src/agents/agent.ts'
import type { AgentServices } from '../../../src/agents/agent-route.ts'
import { tokenRoutes } from '../../../src/agents/tokens/token-routes.ts'
import { loadConfig } from '../../../src/config.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { ApiError } from '../../../src/errors.ts'
import { newAgentId } from '../../../src/lib/agent-id.ts'
import { loadSigningKey } from '../../../src/lib/signing-keys.ts'
import type { RunningRole } from '../../../src/roles/running-role.ts'
import { openWeb } from '../../../src/roles/web.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { assertError, Client } from '../../support/client.ts'
import { startDatabase, type TestDatabase } from '../../support/database.ts'
import { DocumentCheck } from '../../support/openapi.ts'
import { AGENT_PROXY_KEY, openTunnelServer, type StartedTunnelServer } from '../../support/tunnel-server.ts'

interface TestWorkspace {
  id: string
  api: Client
}

describe('a web process', () => {
  let database: TestDatabase
  let dataDir: string
  let web: RunningRole
  let way: StartedTunnelServer
  let anonymous: Client

  before(async () => {
    database = await startDatabase()
    dataDir = await mkdtemp(join(tmpdir(), 'berth-agents-'))
    way = await openTunnelServer()
    web = await openWeb(
      loadConfig({
        PORT: '0',
        DATABASE_URL: database.url,
        BERTH_DATA_DIR: dataDir,
        SECRETS_KEY: '',
        BERTH_SNAPSHOT_NETWORK: 'none',
        BERTH_PLATFORM_TOKEN_SCOPE: 'workspace',
        BERTH_AGENT_PROXY_URL: way.url,
        AGENT_PROXY_KEY,
      }),
      database.log,
    )
    const url = web.url ?? ''
    anonymous = new Client(url, await DocumentCheck.load(url))
  })
  after(async () => {
    await web?.stop()
    await way?.tunnelServer.close()
    await database?.stop()
    await rm(dataDir, { recursive: true, force: true })
  })

  async function workspace(): Promise<TestWorkspace> {
    const prisma = createPrisma(database.pool)
    const keys = new KeyService(prisma, loadSigningKey(undefined, dataDir))
    const { id, ownerId } = await createWorkspace(prisma, {
      name: uuidv7(),
      plan: 'unlimited',
      owner: 'owner',
    })
    const { token } = await keys.create({ workspaceId: id, userId: ownerId, name: 'x', scopes: ['admin'] })
    return { id, api: anonymous.as(token) }
  }

  /** @param address of its agentd, if it has one. */
  async function insertAgent({ id }: TestWorkspace, address: string | null = null) {
    const row = { workspaceId: id, status: 'not_running', address }
    const { agentId, gatewayToken } = await insertAgentRow(database.pool, row)
    const path = `/v0/agents/${agentId}`
    const gateway = anonymous.as(gatewayToken)
    const minted = await gateway.post(`${path}/platform/token`, {})
    return { path, gateway, platform: anonymous.as(minted.body.token) }
  }

  describe('a web process without a SECRETS_KEY', () => {
    it('a web process without a SECRETS_KEY returns 503 after authentication and validation', async () => {
      const { api, id } = await workspace()
      const request = (client: Client, value = 'x') => client.post('/v0/secrets', { name: 'A', value })
      assertError(await request(anonymous), 401, /^Missing Authorization/)
      assertError(await request(api, ''), 400, 'value: must not be empty')
      const reply = await request(api)
      assertError(reply, 503, 'Secrets not configured')
      assert.equal(reply.headers.get('error-code'), 'secrets_not_configured')
      const missing = await api.put(`/v0/secrets/${uuidv7()}`, { value: 'x' })
      assertError(missing, 503, 'Secrets not configured')
      const { path } = await insertAgent({ id, api })
      const attached = await api.post(`${path}/secrets`, { secretIds: [uuidv7()] })
      assertError(attached, 503, 'Secrets not configured')
      assert.deepEqual((await api.get('/v0/secrets')).body, { secrets: [], secretLimit: null })
    })
  })

  describe('a web process without a snapshot network', () => {
    it('a web process without a snapshot network rejects a sync: 400 Storage not configured', async () => {
      const own = await workspace()
      const { path } = await insertAgent(own)
      const reply = await own.api.post(`${path}/snapshots/sync`, {})
      assertError(reply, 400, 'Storage not configured')
      assert.match(reply.headers.get('error-detail') ?? '', /BERTH_SNAPSHOT_NETWORK/)
      const { body } = await own.api.get(`${path}/snapshots/sync`)
      assert.deepEqual([body.configured, body.missing], [false, ['BERTH_SNAPSHOT_NETWORK']])
      const { rows } = await database.pool.query('SELECT FROM operation WHERE workspace_id = $1', [own.id])
      assert.equal(rows.length, 0, 'no operation was created')
    })
  })

  describe('a web process with workspace-wide platform tokens', () => {
    it('a workspace-wide platform token works only within its workspace', async () => {
      const [own, other] = [await workspace(), await workspace()]
      const [agent, sibling, foreign] = [
        await insertAgent(own),
        await insertAgent(own),
        await insertAgent(other),
      ]
      assert.equal((await agent.platform.get('/v0/secrets')).status, 200)
      const { body } = await agent.platform.get(`${sibling.path}/platform/whoami`)
      assert.equal(body.tokenKind, 'platform')
      const refused = 'Invalid, expired or revoked API key'
      assertError(await agent.platform.get(`${foreign.path}/platform/whoami`), 401, refused)
      assertError(await agent.gateway.get(`${sibling.path}/platform/whoami`), 401, refused)
      assert.equal((await agent.gateway.get('/v0/secrets')).status, 403)
      for (const path of ['/v3/files/public', '/v3/pinata/keys'])
        assert.equal((await agent.platform.get(path)).headers.get('error-code'), 'missing_scope')
    })
    it('a workspace-wide platform token hides tokens of other agents, and cannot act on them', async () => {
      const own = await workspace()
      const [agent, sibling] = [await insertAgent(own), await insertAgent(own)]
      const restarted = await own.api.post(`${sibling.path}/restart`, {}, { prefer: 'respond-async' })
      const operation = `/v0/operations/${restarted.headers.get('operation-id')}`
      for (const path of ['/v0/agents', sibling.path, '/v0/operations', operation]) {
        const { status, body } = await agent.platform.get(path)
        assert.equal(status, 200, path)
        assert.ok(!JSON.stringify(body).includes(sibling.gateway.key ?? '-'), path)
      }
      const refused: [path: string, body?: unknown][] = [
        [`${sibling.path}/console/exec`, { command: 'env' }],
        [`${sibling.path}/restart`, {}],
        [`${sibling.path}/platform/token`, {}],
        [`${agent.path}/platform/token`, {}],
        [`${agent.path}/gateway-token/rotate`, {}],
        [`${sibling.path}/secrets`, { secretIds: [uuidv7()] }],
        ['/v0/templates', { agentId: sibling.path.split('/').at(-1) }],
        ['/v0/templates', { agentId: agent.path.split('/').at(-1) }],
      ]
      for (const [path, body] of refused)
        assertError(await agent.platform.post(path, body), 403, "An agent's token cannot do this")
      for (const path of ['files?path=AGENTS.md', 'config', 'logs', 'gateway-token'])
        assertError(
          await agent.platform.get(`${sibling.path}/${path}`),
          403,
          "An agent's token cannot do this",
        )
      assertError(await agent.platform.delete(sibling.path), 403, "An agent's token cannot do this")
      assert.equal((await agent.gateway.post('/v0/agents', { name: 'Child' })).status, 403)
      const renamed = await agent.platform.request('PATCH', `${agent.path}/platform/metadata`, {
        json: { vibe: 'x' },
      })
      assert.equal(renamed.status, 200)
    })
    it('a workspace-wide platform token may create agents, secrets and templates', async () => {
      const own = await workspace()
      const agent = await insertAgent(own)
      const made = await agent.platform.post('/v0/agents', { name: 'Child' }, { prefer: 'respond-async' })
      assert.equal(made.status, 201)
      // Past the access check: this process has neither a secrets key nor a network for skills and templates.
      const asked: [client: Client, path: string, body: unknown, status: number][] = [
        [agent.platform, '/v0/secrets', { name: 'A', value: 'x' }, 503],
        [agent.platform, '/v0/templates', { gitUrl: 'https://127.0.0.1/x' }, 400],
        [agent.gateway, `${agent.path}/secrets`, { secretIds: [uuidv7()] }, 503],
        [agent.platform, `${agent.path}/secrets`, { secretIds: [uuidv7()] }, 503],
      ]
      for (const [client, path, body, status] of asked) {
        const reply = await client.post(path, body)
        assert.equal(reply.status, status, `${path}: ${JSON.stringify(reply.body)}`)
      }
    })
  })

  it('a command whose end is unknown returns 500: Execution failed', async (t) => {
    const own = await workspace()
    for (const nonsense of ['{}', '[]', 'no JSON', '{"exitCode":"0"}']) {
      const agentd = createServer((_req, res) => res.end(nonsense)).listen(0, '127.0.0.1')
      t.after(() => agentd.close())
      await once(agentd, 'listening')
      const { path } = await insertAgent(own, `127.0.0.1:${(agentd.address() as AddressInfo).port}`)
      const reply = await own.api.post(`${path}/console/exec`, { command: 'true' })
      assertError(reply, 500, 'Execution failed')
      assert.match(reply.headers.get('error-detail') ?? '', /^agentd sent no /)
    }
  })

  it('a web process returns 500 if it cannot sign a platform token', async () => {
    const access = new AgentAccess({
      pool: database.pool,
      signingKeys: [new Uint8Array()],
      platformScope: 'agent',
    })
    const services = { pool: database.pool, access } as unknown as AgentServices
    const route = tokenRoutes(services).find(({ id }) => id === 'createPlatformToken')
    const agent = { agentId: newAgentId(), gatewayToken: newGatewayToken() } as Agent
    const context = { agent, principal: {} }
    await assert.rejects(
      route?.handle(context as never) ?? assert.fail(),
      (error) =>
        error instanceof ApiError && error.status === 500 && error.message === 'Token generation failed',
    )
  })
})
