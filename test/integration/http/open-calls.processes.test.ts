/** Open connections end with the key or token that opened them, in every web process. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, before, describe, it, mock, type TestContext } from 'node:test'
import { SignJWT } from 'jose'
import { uuidv7 } from 'uuidv7'
import { tokenFingerprint } from '../../../src/agents/access.ts'
import { loadSigningKey } from '../../../src/lib/signing-keys.ts'
import { AgentHost } from '../../support/agent-host.ts'
import { onDemand } from '../../support/clock.ts'
import { until } from '../../support/processes.ts'
import { JWT_KEY, startWorld, type World } from '../vhosts/agents/world.ts'

/** How often each process checks its open connections. */
const POLL_MS = 3000

/** Makes both processes check. */
let look: () => number
let world: World
/** A second web process on the same database. */
let second: { url: string; stop(): Promise<void> }
/** The stream of this key stays open throughout. */
let other: Key
before(async () => {
  look = onDemand({ mock }, POLL_MS)
  world = await startWorld()
  second = await world.openWeb()
  other = await world.key({ elsewhere: true })
})
after(async () => {
  await second?.stop()
  await world?.stop()
})

type Key = { id: string; token: string; userId: string; workspaceId: string }
const both = () => [world.url, second.url]
const bearer = (token: string) => ({ headers: { authorization: `Bearer ${token}` } })

/**
 * Waits until a process rejects a token. A process that missed the news trusts its cached key for up to five seconds.
 */
const refused = (url: string, token: string) =>
  until('the token is refused', async () => {
    const { status } = await fetch(`${url}/v0/operations`, bearer(token))
    return status === 401
  })

/** An operation of an agent or a file that nobody runs. */
async function waiting(workspaceId: string, agentId?: string): Promise<string> {
  const id = uuidv7()
  await world.pool.query(
    `INSERT INTO operation (id, workspace_id, kind, queue, target_id, agent_id, next_attempt_at)
     VALUES ($1, $2, $3, 'nobody', $1, $4, now() + interval '1 day')`,
    [id, workspaceId, agentId ? 'agent.sync' : 'pin.add', agentId ?? null],
  )
  return `/v0/operations/${id}`
}

/** Opens an event stream. Resolves after its first event, to a promise of its end. */
async function openEvents(url: string, path: string, token: string): Promise<{ ended: Promise<unknown> }> {
  const response = await fetch(`${url}${path}/events`, bearer(token))
  assert.equal(response.status, 200)
  const reader = response.body?.getReader()
  await reader?.read()
  const drain = async (): Promise<void> => {
    while (!(await reader?.read())?.done);
  }
  return { ended: drain().catch(() => {}) }
}

/** In an hour, to which the test moves the clock, because tokens expire in whole seconds. */
const later = () => new Date(Math.ceil(Date.now() / 1000) * 1000 + 3_600_000)
const moveClock = (t: TestContext, now: Date) => t.mock.timers.enable({ apis: ['Date'], now })

/** Opens streams and long polls of a token in both processes: checks close them after `end`, and not before. */
async function endAll(path: string, token: string, end: () => unknown): Promise<void> {
  const streams = await Promise.all(both().map((url) => openEvents(url, path, token)))
  const polls = both().map((url) => fetch(`${url}${path}?wait=60`, bearer(token)))
  let count = 0
  const add = () => void count++
  for (const one of [...streams.map(({ ended }) => ended), ...polls]) void one.then(add, add)
  look()
  const bystander = await openEvents(second.url, await waiting(other.workspaceId), other.token)
  let isOver = false
  void bystander.ended.then(() => {
    isOver = true
  })
  assert.equal(count, 0, 'something was ended too early')
  await end()
  // Several checks, because a poll may still be on its way and its key still be cached.
  await until('all of them have ended', () => look() > 0 && count === streams.length + polls.length)
  for (const poll of polls) assert.equal((await poll).status, 401)
  assert.equal(isOver, false, 'the stream of another key was ended')
  for (const url of both()) await refused(url, token)
}

/** Changes the database without notifying the web processes. */
const silently = (text: string, values: unknown[]) => world.pool.query(text, values)

describe('event streams and long polls end', () => {
  it('event streams and long polls end when their key is revoked', async () => {
    const key = await world.key()
    await endAll(await waiting(key.workspaceId), key.token, () => world.revoke(key.id))
  })
  it('event streams and long polls end when their key is revoked and the notification is lost', async () => {
    const key = await world.key()
    const path = await waiting(key.workspaceId)
    await endAll(path, key.token, () =>
      silently('UPDATE api_key SET revoked_at = now() WHERE id = $1', [key.id]),
    )
  })
  it('event streams and long polls end when their key expires', async (t) => {
    const expiresAt = later()
    const key = await world.key({ expiresAt })
    await endAll(await waiting(key.workspaceId), key.token, () => moveClock(t, expiresAt))
  })
  it('event streams and long polls end when their user leaves the workspace', async () => {
    const key = await world.key({ elsewhere: true })
    const path = await waiting(key.workspaceId)
    await endAll(path, key.token, () =>
      silently('DELETE FROM membership WHERE user_id = $1 AND workspace_id = $2', [
        key.userId,
        key.workspaceId,
      ]),
    )
  })
  it('event streams and long polls end when the agent is deleted or its gateway token rotated', async () => {
    const { workspaceId } = await world.key()
    for (const how of ['rotated', 'rotated unheard', 'deleted']) {
      const agent = await world.agent()
      await endAll(await waiting(workspaceId, agent.agentId), agent.token, () =>
        how === 'deleted' ? agent.set('deleted_at', new Date()) : agent.rotate(how === 'rotated'),
      )
    }
  })
  it('event streams and long polls of a platform token end when its gateway token is rotated', async () => {
    const { workspaceId } = await world.key()
    const agent = await world.agent()
    const { body } = await agent.host.post('/v0/platform/token', undefined)
    const path = await waiting(workspaceId, agent.agentId)
    await endAll(path, body.token, () => agent.rotate())
  })
})

describe('a platform token', () => {
  it('an expired platform token closes what it has open, on the API and on the agent’s host', async (t) => {
    const { workspaceId } = await world.key()
    const agent = await world.agent()
    const expiresAt = later()
    const token = await new SignJWT({ mark: tokenFingerprint(agent.token) })
      .setProtectedHeader({ alg: 'HS256' })
      .setSubject(agent.agentId)
      .setAudience('berth:platform')
      .setExpirationTime(expiresAt)
      .sign(loadSigningKey(JWT_KEY, ''))
    const chat = new AgentHost(world.url, agent.agentId, token).socket('/')
    await chat.opened
    await endAll(await waiting(workspaceId, agent.agentId), token, () => moveClock(t, expiresAt))
    assert.equal((await chat.closed).code, 1008)
  })
})

describe('a request', () => {
  it('a request that revokes its own key gets its response', async () => {
    for (const url of both()) {
      const { id, token } = await world.key()
      const response = await fetch(`${url}/v3/api_keys/${id}`, { method: 'DELETE', ...bearer(token) })
      assert.deepEqual([response.status, await response.json()], [200, 'Revoked'])
    }
  })
  it('a request whose body arrives after its key was revoked changes nothing', async () => {
    const { id, token } = await world.key()
    const name = randomUUID()
    const body = new TransformStream<Uint8Array, Uint8Array>()
    const writer = body.writable.getWriter()
    const asked = fetch(`${second.url}/v3/pinata/keys`, {
      method: 'POST',
      ...bearer(token),
      body: body.readable,
      duplex: 'half',
    } as RequestInit)
    const text = JSON.stringify({ keyName: name, permissions: { admin: true } })
    await writer.write(Buffer.from(text.slice(0, 10)))
    await world.revoke(id)
    await refused(second.url, token)
    await writer.write(Buffer.from(text.slice(10)))
    await writer.close()
    assert.equal((await asked).status, 401)
    const { rows } = await world.pool.query('SELECT FROM api_key WHERE name = $1', [name])
    assert.equal(rows.length, 0)
  })
})
