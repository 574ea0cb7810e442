/** Sign-in at an OpenID provider: who gets in, as which user, and responses that are not meant for this browser. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { assertError, Client, type Reply, soon } from '../support/client.ts'
import { DocumentCheck } from '../support/openapi.ts'
import {
  type Account,
  oidcSettings,
  passProvider,
  type StartedProvider,
  startProvider,
} from '../support/openid-provider.ts'
import { freePort } from '../support/processes.ts'
import { openContext, type Workspace } from './context.ts'
import { SESSION_NEEDED } from './session-client.ts'
import { startWebProcess } from './web-process.ts'

const context = await openContext()
const { env, sql, workspace } = context
const NOT_GOOD = 'The answer of the OpenID provider is not good: sign in again'
const NO_TRANSACTION = 'The sign-in took too long, or was begun in another browser: sign in again'
const UNKNOWN =
  'Nobody here is known by this sign-in: ask an owner for an invitation, or sign in another way and link it in your account'
const AWAY = 'The OpenID provider cannot be reached: try again later'
const OF_DASHBOARD = { 'berth-session': '1' }

const port = await freePort()
const joined = await workspace()
const web = await startWebProcess(env, {
  ...oidcSettings(port),
  BERTH_OIDC_JOIN: `joined.example:viewer:${joined.name}`,
})
after(() => web.running.end())
const page = `${web.url}/login`
const provider = await startProvider(page, { port })
after(() => provider.stop())
/** The API of the web process that uses the provider, without a key. */
const anonymous = new Client(web.url, await DocumentCheck.load(web.url))

const someone = (): Account => {
  const sub = randomUUID()
  return { sub, name: `ada-${sub}`, email: `${sub}@example.com`, email_verified: true }
}
const cookieOf = ({ headers }: Reply, name: string) =>
  headers
    .getSetCookie()
    .map((line) => line.split(';')[0] ?? '')
    .find((pair) => pair.startsWith(`__Host-berth-${name}=`) && !pair.endsWith('=')) ?? ''

/** Signs in up to the point where the provider sends the browser back. */
async function goToProvider(account: Account | null, body: object = {}) {
  const begun = await anonymous.post('/v0/login/oidc', body)
  assert.equal(begun.status, 200, JSON.stringify(begun.body))
  provider.account = account
  return {
    cookie: cookieOf(begun, 'oidc'),
    setCookie: begun.headers.get('set-cookie') ?? '',
    url: new URL(begun.body.data.url),
    query: await passProvider(begun.body.data.url, page),
  }
}
const finish = (query: string, cookie: string, headers: Record<string, string> = {}) =>
  anonymous.post('/v0/login/oidc/finish', { query }, { ...(cookie && { cookie }), ...headers })

async function signIn(account: Account, body: object = {}): Promise<Reply> {
  const { query, cookie } = await goToProvider(account, body)
  return finish(query, cookie)
}

/** Sends requests with the session that a sign-in opened. */
const asSession = (reply: Reply) => {
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  const cookie = cookieOf(reply, 'session')
  return (method: string, path: string, json?: unknown, more: string = '') =>
    anonymous.request(method, path, { json, headers: { cookie: `${cookie}${more}`, ...OF_DASHBOARD } })
}

const sessionOf = async (own: Workspace, name: string) =>
  asSession(await anonymous.post('/v0/login', { token: await own.loginToken(name) }))

/** Links an account up to the point where the provider sends the member back. */
async function link(own: Workspace, account: Account, name: string) {
  const session = await sessionOf(own, name)
  const begun = await session('POST', '/v0/identities/begin')
  assert.equal(begun.status, 200, JSON.stringify(begun.body))
  provider.account = account
  const query = await passProvider(begun.body.data.url, page)
  return { session, query, cookie: cookieOf(begun, 'oidc') }
}

const invite = async ({ id, api }: Workspace, role = 'member'): Promise<string> =>
  (await api.post(`/v0/workspaces/${id}/invitations`, { role })).body.data.token

describe('a sign-in at the OpenID provider', () => {
  it("the login page learns the provider's name, or that none is configured", async () => {
    assert.deepEqual((await anonymous.get('/v0/login')).body.data.oidc, { name: 'Example ID' })
    assert.equal((await context.anonymous.get('/v0/login')).body.data.oidc, null)
    assertError(await context.anonymous.post('/v0/login/oidc', {}), 404, /BERTH_OIDC_ISSUER/)
  })
  it('a sign-in starts with PKCE, state and nonce, and a Lax cookie that scripts cannot read', async () => {
    const { url, setCookie } = await goToProvider(someone())
    assert.equal(url.origin, provider.issuer)
    const { searchParams } = url
    assert.equal(searchParams.get('response_type'), 'code')
    assert.equal(searchParams.get('code_challenge_method'), 'S256')
    assert.equal(searchParams.get('redirect_uri'), page)
    for (const name of ['code_challenge', 'state', 'nonce'])
      assert.ok((searchParams.get(name) ?? '').length >= 43, name)
    assert.match(
      setCookie,
      /^__Host-berth-oidc=[\w-]{43}; Path=\/; Expires=.+ GMT; HttpOnly; Secure; SameSite=Lax$/,
    )
  })
  it('a linked identity signs its user in with a Strict cookie, and the audit records it', async () => {
    const own = await workspace()
    const account = someone()
    const member = await own.member('member')
    const { session, query, cookie } = await link(own, account, member.name)
    const linked = await session('POST', '/v0/identities', { query }, `; ${cookie}`)
    assert.equal(linked.status, 201, JSON.stringify(linked.body))
    assert.deepEqual([linked.body.data.issuer, linked.body.data.email], [provider.issuer, account.email])
    const reply = await signIn(account)
    assert.match(
      reply.headers.getSetCookie().at(-1) ?? '',
      /^__Host-berth-session=[\w.-]+; .*HttpOnly; Secure; SameSite=Strict$/,
    )
    const me = (await asSession(reply)('GET', '/v0/me')).body.data
    assert.deepEqual([me.user.id, me.workspace.id, me.session.id], [member.id, own.id, reply.body.data.id])
    const entries = await sql('SELECT action, via FROM audit WHERE key_id = $1', [reply.body.data.id])
    assert.deepEqual(entries, [{ action: 'loginWithOidc', via: 'session' }])
  })
  it('an unlinked identity is refused, and creates no user', async () => {
    const account = someone()
    assertError(await signIn(account), 403, UNKNOWN)
    assert.deepEqual(await sql('SELECT FROM app_user WHERE name = $1', [account.name]), [])
  })
  it("a sign-in accepts an invitation, and creates a user with the provider's name", async () => {
    const own = await workspace()
    const account = someone()
    const invitation = await invite(own)
    const reply = await signIn(account, { invitation })
    const me = (await asSession(reply)('GET', '/v0/me')).body.data
    assert.deepEqual([me.user.name, me.workspace.id, me.role], [account.name, own.id, 'member'])
    assertError(await anonymous.post('/v0/login/oidc', { invitation }), 404, 'There is no such invitation')
    // Another user with that name, and the same user in another workspace.
    const namesake = await signIn(
      { ...someone(), name: String(account.name) },
      { invitation: await invite(own) },
    )
    assert.equal((await asSession(namesake)('GET', '/v0/me')).body.data.user.name, `${account.name} 2`)
    const other = await workspace()
    const again = await signIn(account, { invitation: await invite(other, 'viewer') })
    const there = (await asSession(again)('GET', '/v0/me')).body.data
    assert.deepEqual([there.user.id, there.workspace.id, there.role], [me.user.id, other.id, 'viewer'])
  })
  it("the provider's own tokens open neither the API nor /mcp", async () => {
    const { status } = await signIn(someone(), { invitation: await invite(joined) })
    assert.equal(status, 200)
    assert.equal(provider.issued.filter(Boolean).length, 2)
    for (const token of provider.issued) {
      const call = { method: 'POST', body: '{}', headers: { authorization: `Bearer ${token}` } }
      for (const path of ['/v3/pinata/keys', '/mcp'])
        assert.equal((await fetch(`${web.url}${path}`, call)).status, 401)
    }
  })
  it('an invitation revoked during the sign-in lets nobody in', async () => {
    const own = await workspace()
    const made = (await own.api.post(`/v0/workspaces/${own.id}/invitations`, { role: 'member' })).body.data
    const account = someone()
    const { query, cookie } = await goToProvider(account, { invitation: made.token })
    await own.api.delete(`/v0/workspaces/${own.id}/invitations/${made.id}`)
    assertError(await finish(query, cookie), 404, 'There is no such invitation')
    assert.deepEqual(await sql('SELECT FROM app_user WHERE name = $1', [account.name]), [])
  })
  it('a user of several workspaces signs in to the one used last, or to the requested one', async () => {
    const account = someone()
    const [first, last] = [await workspace(), await workspace()]
    // Joined in the opposite order of their creation.
    await signIn(account, { invitation: await invite(last) })
    await signIn(account, { invitation: await invite(first) })
    const where = async (body: object) => {
      const { workspace } = (await asSession(await signIn(account, body))('GET', '/v0/me')).body.data
      return workspace.id
    }
    assert.equal(await where({}), first.id)
    assert.equal(await where({ workspaceId: last.id }), last.id)
    assert.equal(await where({}), last.id)
    assertError(await signIn(account, { workspaceId: joined.id }), 403, /no member of this workspace/)
    assertError(await anonymous.post('/v0/login/oidc', { workspaceId: 'x' }), 400, /^workspaceId: /)
  })
  it('a verified address at a BERTH_OIDC_JOIN domain makes the user a member, but only once', async () => {
    const account = { ...someone(), email: `${randomUUID()}@Joined.example` }
    assertError(await signIn({ ...account, email_verified: false }), 403, UNKNOWN)
    assertError(await signIn({ ...account, email: 'x@joined.example.com' }), 403, UNKNOWN)
    const session = asSession(await signIn(account))
    const me = (await session('GET', '/v0/me')).body.data
    assert.deepEqual([me.workspace.id, me.role], [joined.id, 'viewer'])
    await joined.api.delete(`/v0/workspaces/${joined.id}/members/${me.user.id}`)
    // The session belongs to another process than the one that removed the member.
    const ended = await soon(
      () => session('GET', '/v0/me'),
      ({ status }) => status !== 200,
    )
    assertError(ended, 401, 'The session has ended: sign in again')
    assertError(await signIn(account), 403, /no member of any workspace/)
  })
  it('a removed member cannot rejoin with an unlinked identity', async () => {
    const account = { ...someone(), email: `${randomUUID()}@joined.example` }
    const session = asSession(await signIn(account))
    const { user } = (await session('GET', '/v0/me')).body.data
    const [identity] = (await session('GET', '/v0/identities')).body.data.identities
    assert.equal((await session('DELETE', `/v0/identities/${identity.id}`)).status, 200)
    assert.deepEqual((await session('GET', '/v0/identities')).body.data.identities, [])
    await joined.api.delete(`/v0/workspaces/${joined.id}/members/${user.id}`)
    assertError(await signIn(account), 403, UNKNOWN)
    const invited = asSession(await signIn(account, { invitation: await invite(joined) }))
    assert.equal((await invited('GET', '/v0/identities')).body.data.identities.length, 1)
  })
  it('two sign-ins of a new user at the same time create one user', async () => {
    const account = { ...someone(), email: `${randomUUID()}@joined.example` }
    const [one, other] = [await goToProvider(account), await goToProvider(account)]
    const replies = await Promise.all([one, other].map(({ query, cookie }) => finish(query, cookie)))
    assert.ok(replies.some(({ status }) => status === 200))
    assert.ok(replies.every(({ status }) => [200, 409].includes(status)))
    const users = await sql('SELECT FROM app_user WHERE name LIKE $1', [`${account.name}%`])
    assert.equal(users.length, 1)
  })
})

describe('responses of the OpenID provider', () => {
  it('a response is valid once, in the browser that started the sign-in', async () => {
    const { query, cookie } = await goToProvider(someone())
    assertError(await finish(query, ''), 401, NO_TRANSACTION)
    const other = await goToProvider(someone())
    assertError(await finish(query, other.cookie), 401, NOT_GOOD)
    assertError(await finish(query, cookie), 403, UNKNOWN)
    assertError(await finish(query, cookie), 401, NO_TRANSACTION)
  })
  it('a response with a wrong state, code or issuer is refused, and ends the sign-in', async () => {
    for (const [name, value] of [
      ['state', 'login.other'],
      ['code', 'x'.repeat(43)],
      ['iss', 'https://evil.example'],
      ['iss', ''],
    ] as const) {
      const { query, cookie } = await goToProvider(someone())
      const changed = new URLSearchParams(query)
      changed.set(name, value)
      if (!value) changed.delete(name)
      assertError(await finish(`${changed}`, cookie), 401, NOT_GOOD)
      assertError(await finish(query, cookie), 401, NO_TRANSACTION)
    }
    const { cookie } = await goToProvider(someone())
    assertError(await finish('nonsense', cookie), 401, NOT_GOOD)
  })
  it('a token for another nonce is refused, and so is a code without its verifier', async () => {
    for (const column of ['nonce', 'code_verifier']) {
      const { query, cookie } = await goToProvider(someone())
      const state = new URLSearchParams(query).get('state')
      const changed = await sql(
        `UPDATE oidc_transaction SET ${column} = $2 WHERE state = $1 RETURNING state`,
        [state, 'x'.repeat(43)],
      )
      assert.equal(changed.length, 1)
      assertError(await finish(query, cookie), 401, NOT_GOOD)
    }
  })
  it('the provider refuses a code that was used before', async () => {
    const { query, cookie } = await goToProvider(someone())
    const [row] = await sql('SELECT t.* FROM oidc_transaction t WHERE state = $1', [
      new URLSearchParams(query).get('state'),
    ])
    assert.ok(row && !JSON.stringify(row).includes(cookie.split('=')[1] ?? ''))
    assertError(await finish(query, cookie), 403, UNKNOWN)
    await sql(
      `INSERT INTO oidc_transaction (token_hash, state, nonce, code_verifier, expires_at) VALUES ($1, $2, $3, $4, $5)`,
      [row.token_hash, row.state, row.nonce, row.code_verifier, row.expires_at],
    )
    assertError(await finish(query, cookie), 401, NOT_GOOD)
  })
  it('a late response is refused', async () => {
    const { query, cookie } = await goToProvider(someone())
    await sql('UPDATE oidc_transaction SET expires_at = now() WHERE state = $1', [
      new URLSearchParams(query).get('state'),
    ])
    assertError(await finish(query, cookie), 401, NO_TRANSACTION)
  })
  it('a code or issuer of another provider is refused', async () => {
    const foreign = await startProvider(page)
    try {
      foreign.account = someone()
      const { url, cookie } = await goToProvider(someone())
      const there = new URL(url.pathname + url.search, foreign.issuer)
      const query = await passProvider(there.href, page)
      assertError(await finish(query, cookie), 401, NOT_GOOD)
      const again = await goToProvider(someone())
      const second = new URLSearchParams(
        await passProvider(new URL(again.url.pathname + again.url.search, foreign.issuer).href, page),
      )
      second.set('iss', provider.issuer)
      assertError(await finish(`${second}`, again.cookie), 401, NOT_GOOD)
    } finally {
      await foreign.stop()
    }
  })
  it('a user who declines at the provider gets 401 with the reason', async () => {
    const { query, cookie } = await goToProvider(null)
    assertError(
      await finish(query, cookie),
      401,
      'The OpenID provider was told not to sign you in: sign in again',
    )
  })
  it('a page of another origin cannot start, finish or spoil a sign-in', async () => {
    const evil = { origin: 'https://evil.example' }
    const OTHER = 'Requests of a session come from the dashboard alone'
    assertError(await anonymous.post('/v0/login/oidc', {}, evil), 403, OTHER)
    const { query, cookie } = await goToProvider(someone())
    assertError(await finish(query, cookie, { 'sec-fetch-site': 'cross-site' }), 403, OTHER)
    assertError(await finish(query, cookie), 403, UNKNOWN)
  })
})

describe('identities', () => {
  it('an identity is listed, signs in no other user, and can be unlinked', async () => {
    const own = await workspace()
    const account = someone()
    const [member, other] = [await own.member('member'), await own.member('member')]
    const { session, query, cookie } = await link(own, account, member.name)
    const { id } = (await session('POST', '/v0/identities', { query }, `; ${cookie}`)).body.data
    const listed = (await session('GET', '/v0/identities')).body.data.identities
    assert.deepEqual(
      listed.map((one: { id: string }) => one.id),
      [id],
    )
    const theirs = await link(own, account, other.name)
    assertError(
      await theirs.session('POST', '/v0/identities', { query: theirs.query }, `; ${theirs.cookie}`),
      409,
      'This identity is linked with another user',
    )
    assertError(await theirs.session('DELETE', `/v0/identities/${id}`), 404, 'There is no such identity')
    assert.equal((await session('DELETE', `/v0/identities/${id}`)).status, 200)
    assertError(await signIn(account), 403, UNKNOWN)
  })
  it('only the user who started a link can finish it, and a link does not sign in', async () => {
    const own = await workspace()
    const [member, other] = [await own.member('member'), await own.member('member')]
    const { query, cookie } = await link(own, someone(), member.name)
    const theirs = await sessionOf(own, other.name)
    assertError(await theirs('POST', '/v0/identities', { query }, `; ${cookie}`), 401, NO_TRANSACTION)
    assertError(await finish(query, cookie), 401, NO_TRANSACTION)
    const login = await goToProvider(someone())
    assertError(
      await theirs('POST', '/v0/identities', { query: login.query }, `; ${login.cookie}`),
      401,
      NO_TRANSACTION,
    )
  })
  it('a key can neither start nor finish a link', async () => {
    const { api } = await workspace()
    const keyed = anonymous.as(api.key)
    assertError(await keyed.post('/v0/identities/begin', undefined), 403, SESSION_NEEDED)
    assertError(await keyed.post('/v0/identities', { query: 'x' }), 403, SESSION_NEEDED)
  })
})

describe('the OpenID provider', () => {
  it('an unreachable provider returns 503 at the start and the end, and works when it is back', async () => {
    const port = await freePort()
    const other = await startWebProcess(env, oidcSettings(port))
    const ownPage = `${other.url}/login`
    const api = new Client(other.url, await DocumentCheck.load(other.url))
    const started: StartedProvider[] = []
    try {
      assertError(await api.post('/v0/login/oidc', {}), 503, AWAY)
      started.push(await startProvider(ownPage, { port }))
      const begun = await api.post('/v0/login/oidc', {})
      assert.equal(begun.status, 200, JSON.stringify(begun.body))
      if (started[0]) started[0].account = someone()
      const query = await passProvider(begun.body.data.url, ownPage)
      await started.pop()?.stop()
      const cookie = cookieOf(begun, 'oidc')
      assertError(await api.post('/v0/login/oidc/finish', { query }, { cookie }), 503, AWAY)
      started.push(await startProvider(ownPage, { port, secret: 'another secret' }))
      const again = await api.post('/v0/login/oidc', {})
      if (started[0]) started[0].account = someone()
      const second = await passProvider(again.body.data.url, ownPage)
      assertError(
        await api.post('/v0/login/oidc/finish', { query: second }, { cookie: cookieOf(again, 'oidc') }),
        503,
        'The OpenID provider does not know Berth: its client id or secret is wrong',
      )
    } finally {
      await other.running.end()
      for (const one of started) await one.stop()
    }
  })
})
