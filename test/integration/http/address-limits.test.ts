/** Limits of an address without a valid key, on a web process behind a trusted proxy. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, describe, it } from 'node:test'
import { KeyService } from '../../../src/accounts/keys.ts'
import { createLoginLink } from '../../../src/accounts/sessions.ts'
import { createWorkspace } from '../../../src/accounts/workspaces.ts'
import { loadConfig } from '../../../src/config.ts'
import { createPrisma } from '../../../src/db/prisma.ts'
import { newAgentId } from '../../../src/lib/agent-id.ts'
import { loadSigningKey } from '../../../src/lib/signing-keys.ts'
import { openWeb } from '../../../src/roles/web.ts'
import { insertAgentRow } from '../../support/agent-row.ts'
import { startDatabase } from '../../support/database.ts'
import { serve } from '../../support/gateway.ts'

const REQUESTS = 4
const FAILURES = 3

const database = await startDatabase()
const dataDir = await mkdtemp(join(tmpdir(), 'berth-addresses-'))
const web = await openWeb(
  loadConfig({
    PORT: '0',
    DATABASE_URL: database.url,
    BERTH_DATA_DIR: dataDir,
    BERTH_IPFS_ROUTING_URL: '',
    BERTH_TRUST_PROXY: '1',
    BERTH_ADDRESS_LIMITS: `requests=${REQUESTS},failedLogins=${FAILURES}`,
  }),
  database.log,
)
after(async () => {
  await web.stop()
  await database.stop()
  await rm(dataDir, { recursive: true, force: true })
})
const url = web.url ?? ''
const prisma = createPrisma(database.pool)
const { id: workspaceId, ownerId: userId } = await createWorkspace(prisma, {
  name: 'ours',
  plan: 'unlimited',
  owner: 'owner',
})
const keys = new KeyService(prisma, loadSigningKey(undefined, dataDir))
const newKey = async () => keys.create({ workspaceId, userId, name: 'test', scopes: ['admin'] })

/** An agent that exists only as a row. */
async function newAgent() {
  const { agentId, gatewayToken } = await insertAgentRow(database.pool, {
    workspaceId,
    status: 'not_running',
  })
  return { agentId, token: gatewayToken }
}

let last = 0
/** An address that has not been seen yet. */
const newAddress = () => `203.0.113.${++last}`

async function ask(
  address: string | undefined,
  path: string,
  { token, host = 'localhost', method = 'GET' }: { token?: string; host?: string; method?: string } = {},
) {
  const { status, headers, text } = await serve(url, method, path, {
    host,
    ...(address && { 'x-forwarded-for': address }),
    ...(token && { authorization: `Bearer ${token}` }),
  })
  if (status === 429) {
    const seconds = Number(headers['retry-after'])
    assert.ok(seconds >= 1 && seconds <= 60, `${seconds}`)
    assert.equal(headers['error-code'], 'rate_limited')
  }
  return { status, text }
}

const FILES = '/v3/files/public'
const AGENT = '/v0/agents'

describe('requests without a key', () => {
  const kinds: Record<string, { path: string; host?: string; method?: string; status: number }> = {
    'the documentation': { path: '/docs', status: 200 },
    readiness: { path: '/readyz', status: 200 },
    'a signed URL': { path: `/v3/files/${randomUUID()}`, method: 'POST', status: 401 },
    'a resumable upload': { path: `/v3/files/tus/${randomUUID()}/token`, method: 'HEAD', status: 404 },
    'a gateway': { path: '/ipfs/x', host: 'nobody.gateway.localhost', status: 404 },
    "an agent's host": { path: '/', host: `${newAgentId()}.agents.localhost`, status: 404 },
    "an agent's pages": { path: '/', host: 'nobody.apps.localhost', status: 404 },
    'a route that needs a key': { path: FILES, status: 401 },
  }
  for (const [what, { status, path, ...more }] of Object.entries(kinds))
    it(`requests without a key are limited per address: ${what}`, async () => {
      const address = newAddress()
      for (let i = 0; i < REQUESTS; i++) assert.equal((await ask(address, path, more)).status, status)
      const refused = await ask(address, path, more)
      assert.equal(refused.status, 429)
      if (more.method !== 'HEAD')
        assert.deepEqual(JSON.parse(refused.text), {
          error: 'Too many requests from your address: 4 a minute without a key',
        })
      assert.equal((await ask(newAddress(), path, more)).status, status)
    })

  it('requests without a key are counted together, and per /64 of IPv6', async () => {
    for (let i = 0; i < REQUESTS; i++) await ask(`2001:db8:0:7::${i + 1}`, i % 2 ? '/docs' : FILES)
    assert.equal((await ask('2001:db8:0:7:ffff::1', '/docs')).status, 429)
    assert.equal((await ask('2001:db8:0:8::1', '/docs')).status, 200)
  })
  it('requests without a key use none of the quota of requests with a key', async () => {
    const address = newAddress()
    for (let i = 0; i <= REQUESTS; i++) await ask(address, '/docs')
    const { token } = await newKey()
    for (let i = 0; i < 10; i++) assert.equal((await ask(address, FILES, { token })).status, 200)
  })
  it('requests without a key are not counted on loopback', async () => {
    for (let i = 0; i < 30; i++) assert.equal((await ask(undefined, '/docs')).status, 200)
  })
})

describe('failed logins', () => {
  const MESSAGE = '{"error":"Too many requests without a good key from your address: 3 a minute"}'

  it('failed logins are limited per address, whatever token is tried', async () => {
    const address = newAddress()
    const { token, id } = await newKey()
    await keys.revoke(id)
    const { agentId } = await newAgent()
    for (const bad of ['nonsense', randomUUID(), token])
      assert.equal((await ask(address, FILES, { token: bad })).status, 401)
    for (const bad of ['nonsense', randomUUID(), token])
      assert.deepEqual(await ask(address, FILES, { token: bad }), { status: 429, text: MESSAGE })
    const host = `${agentId}.agents.localhost`
    assert.equal((await ask(address, '/v1/models', { host, token: randomUUID() })).status, 429)
    assert.equal((await ask(newAddress(), FILES, { token: 'nonsense' })).status, 401)
  })
  it('refused sign-ins of all kinds count as failed logins, and block a valid sign-in too', async () => {
    const address = newAddress()
    const signIn = async (path: string, body: object) => {
      const response = await fetch(`${url}${path}`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', 'x-forwarded-for': address },
        body: JSON.stringify(body),
      })
      return { status: response.status, text: await response.text() }
    }
    const link = await createLoginLink(database.pool, url, { workspaceId, userId })
    const credential = {
      ...{ id: 'x', rawId: 'x', type: 'public-key' },
      response: { clientDataJSON: 'x', authenticatorData: 'x', signature: 'x', userHandle: 'x' },
    }
    assert.equal((await signIn('/v0/login', { token: 'login_x' })).status, 401)
    for (let i = 1; i < FAILURES; i++)
      assert.equal((await signIn('/v0/login/passkey', { credential })).status, 401)
    const token = link.split('#token=')[1]
    assert.deepEqual(await signIn('/v0/login', { token }), { status: 429, text: MESSAGE })
  })
  it('failed logins do not affect valid keys of the same address', async () => {
    const address = newAddress()
    const known = await newAgent()
    const path = `${AGENT}/${known.agentId}`
    assert.equal((await ask(address, path, known)).status, 200)
    for (let i = 0; i <= FAILURES; i++) await ask(address, FILES, { token: randomUUID() })
    const { token } = await newKey()
    assert.equal((await ask(address, FILES, { token })).status, 200)
    assert.equal((await ask(address, path, known)).status, 200)
  })
  it('beyond the limit of failed logins, an unknown gateway token is not looked up', async () => {
    const address = newAddress()
    for (let i = 0; i <= FAILURES; i++) await ask(address, FILES, { token: randomUUID() })
    const other = await newAgent()
    const path = `${AGENT}/${other.agentId}`
    assert.equal((await ask(address, path, other)).status, 429)
    assert.equal((await ask(newAddress(), path, other)).status, 200)
    // The token is known from then on, including at this address.
    assert.equal((await ask(address, path, other)).status, 200)
  })
})
