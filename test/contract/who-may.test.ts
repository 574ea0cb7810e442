/**
 * Rights of each sort of credential: each route of the document is asked with each of them. The table in
 * `docs/security.md` is the outcome; `npm run docs:security` writes it.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { invite } from '../../src/accounts/invitations.ts'
import { KeyService } from '../../src/accounts/keys.ts'
import { setInstanceAdmin, setRole } from '../../src/accounts/members.ts'
import { createWorkspace } from '../../src/accounts/workspaces.ts'
import { AgentAccess } from '../../src/agents/access.ts'
import { loadConfig } from '../../src/config.ts'
import { createPrisma } from '../../src/db/prisma.ts'
import { isOfInstance, SCOPES } from '../../src/http/principal.ts'
import { loadSigningKey } from '../../src/lib/signing-keys.ts'
import type { RunningRole } from '../../src/roles/running-role.ts'
import { openWeb } from '../../src/roles/web.ts'
import { insertAgentRow } from '../support/agent-row.ts'
import { startDatabase, type TestDatabase } from '../support/database.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { AGENT_PROXY_KEY, openTunnelServer, type StartedTunnelServer } from '../support/tunnel-server.ts'
import {
  ask,
  BEGIN,
  type Credential,
  END,
  type Outcome,
  type Outcomes,
  outcomeOf,
  routesOf,
  table,
} from './who-may.ts'

const PAGE = new URL('../../docs/security.md', import.meta.url)
const JWT_KEY = 'a key for the test of who may do what'
const SIDE_BY_SIDE = 8

/** Routes for API keys alone: by them, words that the agent reads could have it own the account, or widen its rights. */
const KEYS_ONLY = [
  ...['createKey', 'listKeys', 'revokeKey', 'deleteKey', 'signUpload', 'signDownload'],
  ...['deleteAgent', 'getGatewayToken', 'rotateGatewayToken', 'updateSecret', 'deleteSecret'],
  ...['addSkill', 'addSkillVersion', 'deleteSkill'],
  ...['updateTemplate', 'archiveTemplate', 'cancelOperation', 'deleteFile'],
]
/** Routes beyond its agent that the platform skill asks for: with BERTH_PLATFORM_TOKEN_SCOPE=workspace alone. */
const WIDENED = ['createAgent', 'createSecret', 'installHubSkill', 'createTemplate']
/** The route for its own agent that the platform skill may call with that setting alone. */
const WIDENED_OWN = 'attachSecrets'
const OF_AGENTS = ['gateway', 'platform', 'wide', 'other agent']

describe('who may do what', () => {
  let database: TestDatabase
  let dataDir: string
  let way: StartedTunnelServer
  /** Two web processes: in the second, platform tokens see their whole workspace. */
  const webs: RunningRole[] = []
  const asked: { route: ReturnType<typeof routesOf>[number]; outcomes: Outcomes }[] = []

  before(async () => {
    database = await startDatabase()
    dataDir = await mkdtemp(join(tmpdir(), 'berth-who-may-'))
    way = await openTunnelServer()
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
    await askAll()
  })
  after(async () => {
    for (const web of webs) await web.stop()
    await way?.tunnelServer.close()
    await database?.stop()
    await rm(dataDir, { recursive: true, force: true })
  })

  async function askAll(): Promise<void> {
    const [url = '', wideUrl = ''] = webs.map((web) => web.url ?? '')
    const { document } = await DocumentCheck.load(url)
    const { pool } = database
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

    /** Makes what a path names, where others than its workspace would find nothing of that name either. */
    const MADE: Record<string, () => Promise<{ id: string }>> = {
      userId: () => setRole(prisma, { workspaceId: own.id, user: randomUUID(), role: 'viewer' }),
      keyId: () => newKey('org:read'),
      invitationId: () =>
        invite(prisma, {
          ...{ workspaceId: own.id, invitedBy: own.ownerId, role: 'viewer', email: null },
          expiresAt: new Date(Date.now() + 3_600_000),
        }),
    }

    /** An agent that is a row only, with an operation that nobody runs, and what else the path of the route names. */
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
      const forAdmin = await ask(route, everything, await newTarget(route.path))
      for (const credential of others)
        outcomes[credential.name] = outcomeOf(
          await ask(route, credential, await newTarget(route.path)),
          forAdmin,
        )
      const forOwn = { gateway: [url], platform: [url, wideUrl] }
      for (const [name, urls] of Object.entries(forOwn)) {
        const found = new Set<Outcome>()
        for (const at of urls) {
          const agent = await newTarget(route.path)
          const token = name === 'gateway' ? agent.gatewayToken : await access.mintPlatformToken(agent)
          found.add(outcomeOf(await ask(route, { name, url: at, token }, agent), forAdmin))
        }
        // To its own agent, a platform token is the same in both, but where the setting widens it.
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
    for (const route of routes) asked.push({ route, outcomes: found.get(route.id) ?? {} })
  }

  const guarded = () => asked.filter(({ outcomes }) => outcomes.nobody !== 'in')

  it('all routes are 401 for nobody and for a revoked key, and those of an agent for another workspace’s key', () => {
    for (const { route, outcomes } of guarded()) {
      assert.deepEqual([outcomes.nobody, outcomes.revoked], [401, 401], route.id)
      if (route.path.includes('{agentId}')) {
        assert.equal(outcomes['other workspace'], 401, route.id)
        assert.equal(outcomes['other agent'], 401, route.id)
      }
      if (route.path.includes('{workspaceId}')) assert.equal(outcomes['other workspace'], 404, route.id)
    }
  })
  it('a token of an agent makes no keys or tokens and changes only what is its own; agents, secrets, skills and templates it makes with BERTH_PLATFORM_TOKEN_SCOPE=workspace alone', () => {
    for (const id of KEYS_ONLY) {
      const outcomes = asked.find(({ route }) => route.id === id)?.outcomes
      assert.ok(outcomes, `there is no route ${id}`)
      for (const name of OF_AGENTS) assert.notEqual(outcomes[name], 'in', `${id}: ${name}`)
    }
    const attach = asked.find(({ route }) => route.id === WIDENED_OWN)?.outcomes
    assert.deepEqual(
      OF_AGENTS.map((name) => attach?.[name]),
      [403, 403, 403, 401],
    )
    for (const { route, outcomes } of guarded().filter(({ route }) => WIDENED.includes(route.id)))
      assert.deepEqual(
        OF_AGENTS.map((name) => outcomes[name]),
        [403, 403, 'in', 403],
        route.id,
      )
    for (const { route, outcomes } of guarded().filter(({ route }) => !WIDENED.includes(route.id))) {
      if (route.method !== 'GET' && !['Issues', 'Feedback'].includes(route.tag))
        assert.notEqual(outcomes.wide, 'in', route.id)
      if (route.path.startsWith('/v3/') || route.path.startsWith('/psa'))
        for (const name of OF_AGENTS) assert.notEqual(outcomes[name], 'in', `${route.id}: ${name}`)
    }
  })
  it('a token of an agent, of whatever scope, sees nothing of workspaces, members, keys, webhooks or the instance', () => {
    const routes = guarded().filter(({ route }) =>
      /^\/v0\/(workspaces|webhooks|admin)|\/keys/.test(route.path),
    )
    assert.ok(routes.length > 5)
    for (const { route, outcomes } of routes)
      for (const name of OF_AGENTS) assert.equal(outcomes[name], 403, `${route.id}: ${name}`)
  })
  it('the instance is seen to by keys with its own scopes alone, and the members and webhooks of a workspace by its owners alone', () => {
    const ofInstance = guarded().filter(({ route }) => route.path.startsWith('/v0/admin/'))
    assert.ok(ofInstance.length > 5)
    for (const { route, outcomes } of ofInstance)
      for (const [name, outcome] of Object.entries(outcomes))
        assert.equal(
          outcome === 'in',
          isOfInstance(name) && (route.method === 'GET' || name.endsWith('write')),
          `${route.id}: ${name}`,
        )
    const ofOwners = guarded().filter(
      ({ route: { path, method } }) =>
        path.startsWith('/v0/webhooks') ||
        (/^\/v0\/workspaces\/\{workspaceId\}/.test(path) &&
          !path.includes('/keys') &&
          (path.endsWith('s') || method !== 'GET')),
    )
    assert.ok(ofOwners.length > 5)
    for (const { route, outcomes } of ofOwners)
      assert.deepEqual([outcomes.member, outcomes.viewer], [403, 403], route.id)
  })
  it('the table of who may do what is that of docs/security.md', async () => {
    const page = await readFile(PAGE, 'utf8')
    const [start, end] = [page.indexOf(BEGIN), page.indexOf(END)]
    assert.ok(start >= 0 && end > start, 'docs/security.md has no place for the table')
    const expected = `${page.slice(0, start)}${BEGIN}\n\n${table(asked)}\n\n${page.slice(end)}`
    if (process.env.BERTH_TEST_DOCS === 'write') await writeFile(PAGE, expected)
    else assert.equal(page, expected, 'run `npm run docs:security`')
  })
})
