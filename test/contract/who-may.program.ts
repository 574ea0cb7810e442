/**
 * Requests every route of the document with every kind of credential, and prints the outcomes: JSON of {@link Asked}[].
 * This is a program because its 6,000 or so requests take twice as long under the hooks of the test runner.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { uuidv7 } from 'uuidv7'
import { invite } from '../../src/accounts/invitations.ts'
import { KeyService } from '../../src/accounts/keys.ts'
import { setInstanceAdmin, setRole } from '../../src/accounts/members.ts'
import { createWorkspace } from '../../src/accounts/workspaces.ts'
import { AgentAccess } from '../../src/agents/access.ts'
import { loadConfig } from '../../src/config.ts'
import type { Pool } from '../../src/db/pool.ts'
import { createPrisma } from '../../src/db/prisma.ts'
import { SCOPES } from '../../src/http/principal.ts'
import { loadSigningKey } from '../../src/lib/signing-keys.ts'
import type { RunningRole } from '../../src/roles/running-role.ts'
import { openWeb } from '../../src/roles/web.ts'
import { insertAgentRow } from '../support/agent-row.ts'
import { startDatabase } from '../support/database.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { AGENT_PROXY_KEY, openTunnelServer } from '../support/tunnel-server.ts'
import {
  type Answered,
  ask,
  type Credential,
  type Outcome,
  type Outcomes,
  outcomeOf,
  routesOf,
  WIDENED_OWN,
} from './who-may.ts'

const JWT_KEY = 'a signing key for the test of access rights'
const SIDE_BY_SIDE = 8

async function askAll(
  { pool, dataDir }: { pool: Pool; dataDir: string },
  url: string,
  wideUrl: string,
): Promise<Answered[]> {
  const { document } = await DocumentCheck.load(url)
  const prisma = createPrisma(pool)
  const signingKey = loadSigningKey(JWT_KEY, dataDir)
  const keys = new KeyService(prisma, signingKey)
  const access = new AgentAccess({ pool, signingKeys: [signingKey], platformScope: 'agent' })
  const newWorkspace = () =>
    createWorkspace(prisma, { name: randomUUID(), plan: 'unlimited', owner: 'owner' })
  const [own, other] = [await newWorkspace(), await newWorkspace()]
  const viewer = await setRole(prisma, { workspaceId: own.id, user: 'viewer', role: 'viewer' })
  const member = await setRole(prisma, { workspaceId: own.id, user: 'member', role: 'member' })
  await setInstanceAdmin(prisma, 'owner', true)
  const newKey = (scopes: string, { id, ownerId } = own, userId = ownerId) =>
    keys.create({ workspaceId: id, userId, name: scopes, scopes: scopes.split(',') })

  const everything = { name: 'everything', url, token: (await newKey('admin,instance:write')).token }
  const admin = { name: 'admin', url, token: (await newKey('admin')).token }
  const fixed: Credential[] = [{ name: 'nobody', url }, admin]
  for (const scope of SCOPES.filter((scope) => scope !== 'admin'))
    fixed.push({ name: scope, url, token: (await newKey(scope)).token })
  fixed.push({ name: 'viewer', url, token: (await newKey('admin', own, viewer.id)).token })
  fixed.push({ name: 'member', url, token: (await newKey('admin', own, member.id)).token })
  fixed.push({ name: 'other workspace', url, token: (await newKey('admin', other)).token })
  const revoked = await newKey('admin')
  await keys.revoke(revoked.id)
  fixed.push({ name: 'revoked', url, token: revoked.token })

  /** Creates what a path names, if other workspaces would get a 404 for it. */
  const MADE: Record<string, () => Promise<{ id: string }>> = {
    userId: () => setRole(prisma, { workspaceId: own.id, user: randomUUID(), role: 'viewer' }),
    keyId: () => newKey('org:read'),
    invitationId: () =>
      invite(prisma, {
        ...{ workspaceId: own.id, invitedBy: own.ownerId, role: 'viewer', email: null },
        expiresAt: new Date(Date.now() + 3_600_000),
      }),
  }

  /**
   * An agent that is only a row, with an operation that never runs, and everything else that the route's path names.
   */
  async function newTarget(path = '') {
    const ids: Record<string, string> = {}
    for (const [name, make] of Object.entries(MADE))
      if (path.includes(`{${name}}`)) ids[name] = (await make()).id
    const row = { workspaceId: own.id, status: 'not_running', purgedAt: new Date() }
    const { id, agentId, gatewayToken } = await insertAgentRow(pool, row)
    const agent = { agentId, gatewayToken, operation: uuidv7(), workspaceId: own.id, ids }
    await pool.query(
      `INSERT INTO operation (id, workspace_id, kind, queue, target_id, agent_id, next_attempt_at)
       VALUES ($1, $2, 'agent.sync', 'nobody', $3, $4, now() + interval '1 day')`,
      [agent.operation, own.id, id, agent.agentId],
    )
    return agent
  }
  const sibling = await newTarget()
  const wide = { name: 'wide', url: wideUrl, token: await access.mintPlatformToken(sibling) }
  const others: Credential[] = [...fixed, wide, { name: 'other agent', url, token: sibling.gatewayToken }]

  const routes = routesOf(document)
  const outcomesOf = async (route: (typeof routes)[number]): Promise<Outcomes> => {
    const outcomes: Outcomes = {}
    let target = await newTarget(route.path)
    const outcomeFor = async (credential: Credential): Promise<Outcome> => {
      const outcome = outcomeOf(await ask(route, credential, target), forAdmin)
      // The request may have changed or deleted its target.
      if (outcome === 'in' && route.method !== 'GET') target = await newTarget(route.path)
      return outcome
    }
    const forAdmin = await ask(route, everything, await newTarget(route.path))
    for (const credential of others) outcomes[credential.name] = await outcomeFor(credential)
    const forOwn = { gateway: [url], platform: [url, wideUrl] }
    for (const [name, urls] of Object.entries(forOwn)) {
      const found = new Set<Outcome>()
      for (const at of urls) {
        const token = name === 'gateway' ? target.gatewayToken : await access.mintPlatformToken(target)
        found.add(await outcomeFor({ name, url: at, token }))
      }
      // For its own agent, a platform token has the same rights in both, except on the route that the setting widens.
      if (route.path.includes('{agentId}'))
        assert.equal(found.size, name === 'platform' && route.id === WIDENED_OWN ? 2 : 1, route.id)
      outcomes[name] = [...found][0] ?? 401
    }
    return outcomes
  }
  const left = [...routes]
  const found = new Map<string, Outcomes>()
  const worker = async () => {
    for (let route = left.shift(); route; route = left.shift()) found.set(route.id, await outcomesOf(route))
  }
  await Promise.all(Array.from({ length: SIDE_BY_SIDE }, worker))
  return routes.map((route) => ({ route, outcomes: found.get(route.id) ?? {} }))
}

const database = await startDatabase()
const dataDir = await mkdtemp(join(tmpdir(), 'berth-who-may-'))
const way = await openTunnelServer()
/** In the second one, platform tokens see their whole workspace. */
const webs: RunningRole[] = []
try {
  for (const BERTH_PLATFORM_TOKEN_SCOPE of ['agent', 'workspace'])
    webs.push(
      await openWeb(
        loadConfig({
          PORT: '0',
          DATABASE_URL: database.url,
          BERTH_DATA_DIR: dataDir,
          BERTH_AGENT_PROXY_URL: way.url,
          BERTH_IPFS_ROUTING_URL: '',
          BERTH_PLATFORM_TOKEN_SCOPE,
          AGENT_PROXY_KEY,
          JWT_KEY,
        }),
        database.log,
      ),
    )
  const [url = '', wideUrl = ''] = webs.map((web) => web.url ?? '')
  console.log(JSON.stringify(await askAll({ pool: database.pool, dataDir }, url, wideUrl)))
} finally {
  for (const web of webs) await web.stop()
  await way.tunnelServer.close()
  await database.stop()
  await rm(dataDir, { recursive: true, force: true })
}
