/** Dashboard sessions: a link works once, and its cookie is valid for its user, only from the dashboard. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { AgentHost } from '../support/agent-host.ts'
import { assertError, type Reply, soon } from '../support/client.ts'
import { openContext, type Workspace } from './context.ts'
import { ENDED, OTHER, openSession, SESSION_NEEDED } from './session-client.ts'
import { addMember } from './workspaces/rows.ts'

const context = await openContext()
const { anonymous, berth, sql, url, workspace } = context
const SPENT = 'The link was used or is too old: make a new one with `npx berth login-link`'
const signIn = (own: Workspace, user?: string) => openSession(anonymous, own, user)

describe('a login link', () => {
  it('berth login-link prints a link with the token in the fragment, which browsers do not send', async () => {
    const { name } = await workspace()
    const printed = await berth('login-link', '-w', name)
    assert.match(printed, /^http.*\/login#token=login_[\w-]{43}$/)
    assert.equal(new URL(printed).port, new URL(url).port)
  })
  it('a login link works once, even if many try at the same time', async () => {
    const token = await (await workspace()).loginToken()
    const replies = await Promise.all(Array.from({ length: 8 }, () => anonymous.post('/v0/login', { token })))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(7).fill(401)])
    assertError(await anonymous.post('/v0/login', { token }), 401, SPENT)
  })
  it('a login link expires, and stops working when its member is removed', async () => {
    const own = await workspace()
    const token = await own.loginToken()
    const [row] = await sql(
      `UPDATE login_link SET expires_at = now() WHERE workspace_id = $1
       RETURNING round(extract(epoch FROM expires_at - now())) AS s, login_link::text AS text`,
      [own.id],
    )
    assert.ok(row && !String(row.text).includes(token))
    assertError(await anonymous.post('/v0/login', { token }), 401, SPENT)
    const member = await addMember(own, 'member')
    const theirs = await own.loginToken(member.name)
    await own.api.delete(`/v0/workspaces/${own.id}/members/${member.id}`)
    assertError(await anonymous.post('/v0/login', { token: theirs }), 401, SPENT)
  })
  it('a page of another origin signs nobody in, and the link stays valid', async () => {
    const token = await (await workspace()).loginToken()
    for (const headers of [{ origin: 'https://evil.example' }, { origin: 'null' }])
      assertError(await anonymous.post('/v0/login', { token }, headers), 403, OTHER)
    assertError(await anonymous.post('/v0/login', { token }, { 'sec-fetch-site': 'same-site' }), 403, OTHER)
    const own = { origin: new URL(url).origin, 'sec-fetch-site': 'same-origin' }
    assert.equal((await anonymous.post('/v0/login', { token }, own)).status, 200)
  })
  it('an invalid login token is refused', async () => {
    assertError(await anonymous.post('/v0/login', { token: '' }), 400, 'token: must not be empty')
    assertError(await anonymous.post('/v0/login', {}), 400, /^token: /)
    assertError(await anonymous.post('/v0/login', { token: 'login_x' }), 401, SPENT)
  })
})

describe('a session', () => {
  it('the session cookie is HttpOnly, SameSite=Strict, and Secure on this machine', async () => {
    const { setCookie } = await signIn(await workspace())
    assert.match(
      setCookie,
      /^__Host-berth-session=[\w.-]+; Path=\/; Expires=.+ GMT; HttpOnly; Secure; SameSite=Strict$/,
    )
  })
  for (const [role, scopes, write] of [
    ['owner', ['admin'], 200],
    ['member', ['admin'], 200],
    ['viewer', ['org:read'], 403],
  ] as const)
    it(`a session of a ${role} may do what the role allows`, async () => {
      const own = await workspace()
      const user = await addMember(own, role)
      const { ask, id } = await signIn(own, user.name)
      const { body } = await ask('GET', '/v0/me')
      assert.deepEqual(
        [body.data.user.id, body.data.workspace.id, body.data.role, body.data.scopes, body.data.session.id],
        [user.id, own.id, role, scopes, id],
      )
      const made = await ask('POST', '/v3/groups/public', {}, { name: 'mine' })
      assert.equal(made.status, write)
    })
  it('a session creates keys that outlive it, or that expire as requested', async () => {
    const own = await workspace()
    const { ask } = await signIn(own)
    for (const body of [{ keyName: 'stays' }, { keyName: 'ends', expiresInHours: 24 * 365 }]) {
      const made = await ask('POST', '/v3/pinata/keys', {}, { ...body, permissions: { admin: true } })
      assert.equal(made.status, 200)
    }
    const { body } = await ask('GET', `/v0/workspaces/${own.id}/keys`)
    const [ends, stays] = body.data.keys
    assert.deepEqual([ends.name, stays.name, stays.expiresAt], ['ends', 'stays', null])
    assert.ok(Date.parse(ends.expiresAt) - Date.now() > 364 * 86_400_000, ends.expiresAt)
  })
  it('a session of an instance admin can administer the instance', async () => {
    const own = await workspace()
    const user = await addMember(own, 'viewer')
    const { ask } = await signIn(own, user.name)
    assert.equal((await ask('GET', '/v0/admin/workspaces')).status, 403)
    await berth('users', 'admin', user.name)
    // The web process learns of the command a moment later.
    const isAdmin = ({ body }: Reply) => body.data.scopes.includes('instance:write')
    const { body } = await soon(() => ask('GET', '/v0/me'), isAdmin)
    assert.deepEqual(body.data.scopes, ['org:read', 'instance:write'])
    assert.equal((await ask('GET', '/v0/admin/workspaces')).status, 200)
  })
  it('a key can read its own identity, and has no session to end', async () => {
    const { api, name } = await workspace()
    const { body } = await api.get('/v0/me')
    assert.deepEqual([body.data.workspace.name, body.data.session], [name, null])
    assertError(await api.post('/v0/logout', undefined), 403, SESSION_NEEDED)
  })
  it('a session needs the dashboard header for changes, and its own origin even for reads', async () => {
    const { ask, cookie } = await signIn(await workspace())
    const bare = await anonymous.request('POST', '/v3/groups/public', {
      json: { name: 'a' },
      headers: { cookie },
    })
    assertError(bare, 403, OTHER)
    for (const headers of [
      { origin: 'https://evil.example' },
      { 'sec-fetch-site': 'cross-site' },
      { 'sec-fetch-site': 'same-site' },
    ] as Record<string, string>[]) {
      assertError(await ask('GET', '/v0/me', headers), 403, OTHER)
      assertError(await ask('POST', '/v3/groups/public', headers, { name: 'a' }), 403, OTHER)
    }
    assert.equal((await ask('GET', '/v0/me', { 'sec-fetch-site': 'none' })).status, 200)
  })
  it('hosts of agents and gateways accept no session', async () => {
    const { cookie } = await signIn(await workspace())
    for (const domain of ['agents.localhost', 'gateway.localhost']) {
      const host = new AgentHost(url, 'x7f3k2ab', undefined, domain)
      const { status, text } = await host.ask('GET', '/v0/me', { headers: { cookie } })
      assert.ok([401, 404].includes(status), `${domain}: ${status} ${text}`)
    }
  })
  it('a key takes precedence over a cookie', async () => {
    const [one, other] = [await workspace(), await workspace()]
    const { cookie } = await signIn(one)
    assert.equal((await other.api.get('/v0/me', undefined, { cookie })).body.data.workspace.id, other.id)
  })
  it('an invalid session cookie is refused', async () => {
    const { cookie } = await signIn(await workspace())
    for (const value of ['x', `${cookie.split('=')[1]?.split('.')[0]}.${'0'.repeat(64)}`])
      assertError(
        await anonymous.get('/v0/me', undefined, { cookie: `__Host-berth-session=${value}` }),
        401,
        ENDED,
      )
  })
  it('a session is not listed as a key, and its secret is not stored', async () => {
    const own = await workspace()
    const { id, cookie } = await signIn(own)
    const keys = (await own.api.get(`/v0/workspaces/${own.id}/keys`)).body.data.keys
    assert.deepEqual(
      keys.map((key: { name: string }) => key.name),
      ['first key'],
    )
    assertError(await own.api.delete(`/v0/workspaces/${own.id}/keys/${id}`), 404, /key/)
    const [row] = await sql('SELECT k::text AS text FROM api_key k WHERE id = $1', [id])
    assert.ok(row && !String(row.text).includes(cookie.split('.')[1] ?? ''))
  })
})

describe('ending sessions', () => {
  it('sessions are listed, and can be ended at once', async () => {
    const own = await workspace()
    const [first, second] = [await signIn(own), await signIn(own)]
    const { sessions } = (await second.ask('GET', '/v0/sessions')).body.data
    assert.deepEqual(
      sessions.map((one: { id: string; current: boolean }) => [one.id, one.current]),
      [
        [second.id, true],
        [first.id, false],
      ],
    )
    assert.equal((await second.ask('DELETE', `/v0/sessions/${first.id}`)).status, 200)
    assertError(await first.ask('GET', '/v0/me'), 401, ENDED)
    assert.equal((await second.ask('GET', '/v0/sessions')).body.data.sessions.length, 1)
    assert.equal((await own.api.delete(`/v0/sessions/${second.id}`)).status, 200)
    assertError(await second.ask('GET', '/v0/me'), 401, ENDED)
  })
  it('a cookie with an unknown session id returns 401', async () => {
    for (const id of ['-'.repeat(36), 'a'.repeat(36)]) {
      const cookie = `__Host-berth-session=${id}.${'a'.repeat(64)}`
      assertError(await anonymous.request('GET', '/v0/me', { headers: { cookie } }), 401, ENDED)
    }
  })
  it('another user’s session returns 404, and only a key with admin may end sessions', async () => {
    const own = await workspace()
    const user = await addMember(own, 'owner')
    const [mine, theirs] = [await signIn(own), await signIn(own, user.name)]
    assertError(await mine.ask('DELETE', `/v0/sessions/${theirs.id}`), 404, 'There is no such session')
    assertError(await mine.ask('DELETE', '/v0/sessions/x'), 404, 'There is no such session')
    const files = await own.keyed('org:files:write')
    assertError(await files.delete(`/v0/sessions/${mine.id}`), 403, 'Missing scope: admin')
    assert.equal((await mine.ask('GET', '/v0/me')).status, 200)
  })
  it('logout ends the session and deletes the cookie', async () => {
    const { ask } = await signIn(await workspace())
    const { status, headers } = await ask('POST', '/v0/logout')
    assert.equal(status, 200)
    assert.match(headers.get('set-cookie') ?? '', /^__Host-berth-session=; Path=\/; Expires=Thu, 01 Jan 1970/)
    assertError(await ask('GET', '/v0/me'), 401, ENDED)
  })
  it('a removed member’s session ends at once, and stays ended if the member rejoins', async () => {
    const own = await workspace()
    const user = await addMember(own, 'member')
    const { ask } = await signIn(own, user.name)
    assert.equal((await ask('GET', '/v0/me')).status, 200)
    await own.api.delete(`/v0/workspaces/${own.id}/members/${user.id}`)
    assertError(await ask('GET', '/v0/me'), 401, ENDED)
    await berth('users', 'add', user.name, '-w', own.name)
    assertError(await ask('GET', '/v0/me'), 401, ENDED)
  })
  for (const [why, change] of [
    ['its lifetime', "expires_at = now() - interval '1 second'"],
    ['a day without use', "last_used_at = now() - interval '25 hours'"],
  ] as const)
    it(`a session ends after ${why}`, async () => {
      const { id, ask } = await signIn(await workspace())
      await sql(
        `WITH changed AS (UPDATE api_key SET ${change} WHERE id = $1)
        SELECT pg_notify('berth_api_key', $1::text)`,
        [id],
      )
      assertError(await ask('GET', '/v0/me'), 401, ENDED)
    })
  it('the audit names the session, and no key events report it', async () => {
    const { id, ask } = await signIn(await workspace())
    assert.equal((await ask('POST', '/v3/groups/public', {}, { name: 'by a session' })).status, 200)
    const entries = await sql(
      'SELECT action, via FROM audit WHERE key_id = $1 AND user_id IS NOT NULL ORDER BY id',
      [id],
    )
    assert.deepEqual(
      entries.map(({ action, via }) => [action, via]),
      [
        ['login', 'link'],
        ['createGroup', 'session'],
      ],
    )
    const events = await sql(
      `SELECT type FROM event WHERE resource_id = $1 UNION ALL SELECT type FROM event_pending WHERE resource_id = $1`,
      [id],
    )
    assert.deepEqual(events, [])
  })
})
