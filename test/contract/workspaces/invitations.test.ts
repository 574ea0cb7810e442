/** Invitations: owners create them, and the holder of the token accepts them once. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Role } from '../../../src/http/principal.ts'
import { assertError, type Client } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { collectPages } from '../pages.ts'
import { OTHER, openSession, sessionOf } from '../session-client.ts'
import { addMember } from './rows.ts'

const context = await openContext()
const { anonymous, sql, workspace } = context
const NONE = 'There is no such invitation'

async function open() {
  const own = await workspace()
  const path = `/v0/workspaces/${own.id}/invitations`
  const invite = (body: object = {}, client: Client = own.api) =>
    client.post(path, { role: 'member', ...body })
  return { ...own, path, invite, add: (role: Role) => addMember(own, role) }
}
const newName = () => `invited-${randomUUID()}`
const accept = (token: string, name = newName()) => anonymous.post('/v0/invitations/accept', { token, name })
const countsOf = async (token: string) => (await accept(token)).status

describe('an invitation', () => {
  for (const [role, scope, write] of [
    ['owner', 'admin', 200],
    ['member', 'admin', 200],
    ['viewer', 'org:read', 403],
  ] as const)
    it(`an invitation creates a new ${role} with a key for that role`, async () => {
      const { id, name, api, invite } = await open()
      const made = await invite({ role, email: 'ada@example.com' })
      assert.equal(made.status, 201)
      const { token, ...invitation } = made.body.data
      assert.deepEqual(
        [invitation.state, invitation.email, invitation.acceptedBy],
        ['pending', 'ada@example.com', null],
      )
      const user = newName()
      const { status, body } = await accept(token, user)
      assert.equal(status, 201)
      assert.deepEqual([body.data.workspace, body.data.user.name, body.data.role], [{ id, name }, user, role])
      const theirs = anonymous.as(body.data.token)
      assert.equal((await theirs.post('/v3/groups/public', { name: 'mine' })).status, write)
      const [key] = (await theirs.get(`/v0/workspaces/${id}/keys`)).body.data.keys.filter(
        (key: { user: { id: string } }) => key.user.id === body.data.user.id,
      )
      assert.deepEqual(key.scopes, [scope])
      assert.equal((await theirs.get(`/v0/workspaces/${id}/members`)).status, role === 'owner' ? 200 : 403)
      const [listed] = (await api.get(`/v0/workspaces/${id}/invitations`)).body.data.invitations
      assert.deepEqual(listed, { ...invitation, state: 'accepted', acceptedBy: body.data.user.id })
    })
  it('only the hash of an invitation token is stored', async () => {
    const { id, invite } = await open()
    const { token } = (await invite()).body.data
    const [row] = await sql('SELECT i::text AS text FROM invitation i WHERE workspace_id = $1', [id])
    assert.ok(row && !String(row.text).includes(token))
  })
  it('an invitation is accepted once, even if many try at the same time', async () => {
    const { id, invite } = await open()
    const { token } = (await invite()).body.data
    const replies = await Promise.all(Array.from({ length: 8 }, () => accept(token)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, ...Array(7).fill(404)])
    const members = await sql('SELECT FROM membership WHERE workspace_id = $1', [id])
    assert.equal(members.length, 2)
    assertError(await accept(token), 404, NONE)
  })
  it('an accepted invitation does not reveal which names are taken', async () => {
    const { invite } = await open()
    const { token } = (await invite()).body.data
    assert.equal((await accept(token)).status, 201)
    for (const name of ['owner', newName()]) assertError(await accept(token, name), 404, NONE)
  })
  it('a new user gets a number if the name is taken, even for concurrent invitations', async () => {
    const name = newName()
    const tokens = await Promise.all(
      Array.from({ length: 4 }, async () => (await (await open()).invite()).body.data.token),
    )
    const names = (await Promise.all(tokens.map((token) => accept(token, name)))).map(
      ({ body }) => body.data.user.name,
    )
    assert.deepEqual(names.sort(), [name, `${name} 2`, `${name} 3`, `${name} 4`])
  })
  it('a key cannot accept an invitation for its user', async () => {
    const [host, home] = [await open(), await open()]
    const { token } = (await host.invite()).body.data
    for (const path of ['/v0/invitations/join', '/v0/sessions/join'])
      assertError(
        await home.api.post(path, { token }),
        403,
        /^A key cannot join a workspace for its user: open /,
      )
    assert.equal((await host.api.get(host.path)).body.data.invitations[0].state, 'pending')
  })
  it('an invitation expires', async () => {
    const { api, id, path, invite } = await open()
    const { token } = (await invite({ expiresInHours: 1 })).body.data
    await sql('UPDATE invitation SET expires_at = now() WHERE workspace_id = $1', [id])
    assertError(await accept(token), 404, NONE)
    assert.equal((await api.get(path, { state: 'expired' })).body.data.invitations.length, 1)
  })
  it('an invitation that expired long ago is deleted when the next one is created', async () => {
    const { api, id, path, invite } = await open()
    await invite()
    await sql(`UPDATE invitation SET expires_at = now() - interval '91 days' WHERE workspace_id = $1`, [id])
    const { data } = (await invite()).body
    const [left, ...more] = (await api.get(path)).body.data.invitations
    assert.deepEqual([left.id, more], [data.id, []])
  })
  it('an invitation can be revoked unless it was accepted', async () => {
    const { api, path, invite } = await open()
    const [first, second] = [(await invite()).body.data, (await invite()).body.data]
    for (let i = 0; i < 2; i++) assert.equal((await api.delete(`${path}/${first.id}`)).status, 200)
    assertError(await accept(first.token), 404, NONE)
    assert.equal(await countsOf(second.token), 201)
    assertError(await api.delete(`${path}/${second.id}`), 409, 'The invitation has been accepted')
    const other = await open()
    const third = (await invite()).body.data
    assertError(await other.api.delete(`${other.path}/${third.id}`), 404, NONE)
    assert.equal(await countsOf(third.token), 201)
  })
  it('an invitation ends when its creator may no longer invite', async () => {
    const { api, id, path, add, invite } = await open()
    const member = (user: string) => `/v0/workspaces/${id}/members/${user}`
    const [lowered, removed] = [await add('owner'), await add('owner')]
    const [first, second] = [await invite({}, lowered.api), await invite({}, removed.api)]
    assert.equal(await countsOf((await invite({}, removed.api)).body.data.token), 201)
    await api.request('PATCH', member(lowered.id), { json: { role: 'member' } })
    await api.delete(member(removed.id))
    for (const { body } of [first, second]) assertError(await accept(body.data.token), 404, NONE)
    // The accepted one stays as it was.
    assert.equal((await api.get(path, { state: 'revoked' })).body.data.invitations.length, 2)
    assertError(await invite({}, lowered.api), 403, 'Workspace permission denied')
  })
  it('a key that could gain rights cannot create an invitation', async () => {
    const { api, keyed, invite } = await open()
    assertError(await invite({}, await keyed('org:write')), 403, 'Missing scope: admin')
    const { body } = await api.post('/v3/pinata/keys', {
      keyName: 'x',
      permissions: { admin: true },
      maxUses: 9,
    })
    assertError(await invite({}, anonymous.as(body.JWT)), 403, 'Workspace permission denied')
  })
  it('a workspace can have a hundred pending invitations', async () => {
    const { api, id, path, invite } = await open()
    const { id: first } = (await invite()).body.data
    await sql(
      `INSERT INTO invitation (id, workspace_id, role, token_hash, invited_by, expires_at)
       SELECT gen_random_uuid(), $1, 'viewer', sha256(gen_random_uuid()::text::bytea), gen_random_uuid(), now() + interval '1 day'
       FROM generate_series(1, 98)`,
      [id],
    )
    const replies = await Promise.all(Array.from({ length: 4 }, () => invite()))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 403, 403, 403])
    await api.delete(`${path}/${first}`)
    assert.equal((await invite()).status, 201)
    assertError(await invite(), 403, 'Invitation limit reached')
  })
  for (const [body, message] of [
    [{ name: 'x' }, /^token: /],
    [{ token: '', name: 'x' }, 'token: must not be empty'],
    [{ token: 'x' }, /^name: /],
    [{ token: 'x', name: ' ' }, 'name: must not be empty'],
  ] as const)
    it(`an invitation is not accepted with ${JSON.stringify(body)}`, async () => {
      assertError(await anonymous.post('/v0/invitations/accept', body), 400, message)
    })
  for (const token of ['x', `invite_${'A'.repeat(43)}`])
    it(`an invitation returns 404 for the token ${token.slice(0, 8)}`, async () => {
      assertError(await accept(token), 404, NONE)
    })
})

describe('invitations in a browser', () => {
  const join = (token: string, name = newName(), headers = {}) =>
    anonymous.post('/v0/login/invitation', { token, name }, headers)

  it('an invitation signs a new user in, with the role and without a key, and is used up', async () => {
    const { id, name, api, invite } = await open()
    const { token } = (await invite({ role: 'viewer' })).body.data
    const user = newName()
    const { ask, setCookie, ...session } = sessionOf(anonymous, await join(token, user))
    assert.match(setCookie, /HttpOnly; (?:Secure; )?SameSite=Strict/)
    const { data } = (await ask('GET', '/v0/me')).body
    assert.deepEqual([data.workspace, data.user.name, data.role], [{ id, name }, user, 'viewer'])
    const { keys } = (await api.get(`/v0/workspaces/${id}/keys`)).body.data
    assert.ok(!keys.some((key: { user: { name: string } }) => key.user.name === user))
    assertError(await join(token), 404, NONE)
    const entries = await sql(
      `SELECT via, user_id, key_id, status FROM audit WHERE workspace_id = $1 AND action = 'loginByInvitation'`,
      [id],
    )
    assert.deepEqual(entries, [{ via: 'link', user_id: data.user.id, key_id: session.id, status: 200 }])
  })
  it('an invitation is accepted once, even if many browsers try at the same time', async () => {
    const { id, invite } = await open()
    const { token } = (await invite()).body.data
    const replies = await Promise.all(Array.from({ length: 6 }, () => join(token)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, ...Array(5).fill(404)])
    assert.equal((await sql('SELECT FROM membership WHERE workspace_id = $1', [id])).length, 2)
  })
  it('an invitation stays valid after an empty name, or a page of another origin', async () => {
    const { invite } = await open()
    const { token } = (await invite()).body.data
    assertError(await join(token, newName(), { origin: 'https://evil.example' }), 403, OTHER)
    assertError(await join(token, ' '), 400, 'name: must not be empty')
    assertError(await join(''), 400, 'token: must not be empty')
    assert.equal((await join(token)).status, 200)
  })
  it('an invitation moves the session of an existing user to its workspace', async () => {
    const [host, home] = [await open(), await open()]
    const user = await home.add('viewer')
    const { ask, cookie } = await openSession(anonymous, home, user.name)
    const join = (token: string) => ask('POST', '/v0/sessions/join', {}, { token })
    const { token } = (await host.invite()).body.data
    const bare = { json: { token }, headers: { cookie } }
    assertError(await anonymous.request('POST', '/v0/sessions/join', bare), 403, OTHER)
    const joined = await join(token)
    assert.equal(joined.status, 200, JSON.stringify(joined.body))
    const { data } = (await ask('GET', '/v0/me')).body
    assert.deepEqual(
      [data.workspace.id, data.role, data.session.id],
      [host.id, 'member', joined.body.data.id],
    )
    assert.equal(data.workspaces.length, 2)
    assertError(await join(token), 404, NONE)
    const second = (await host.invite({ role: 'owner' })).body.data
    assertError(await join(second.token), 409, 'The user is a member of the workspace already')
    const { invitations } = (await host.api.get(host.path, { state: 'pending' })).body.data
    assert.deepEqual(
      invitations.map(({ id }: { id: string }) => id),
      [second.id],
    )
  })
})

describe('the list of invitations', () => {
  it('invitations are listed in pages, in all states or one', async () => {
    const { api, path, invite } = await open()
    for (let i = 0; i < 5; i++) await invite()
    const all = await collectPages(api, path, 'invitations', { limit: '2' })
    assert.equal(all.length, 5)
    await api.delete(`${path}/${all[0]?.id}`)
    const revoked = await collectPages(api, path, 'invitations', { state: 'revoked' })
    assert.deepEqual(
      revoked.map(({ id }) => id),
      [all[0]?.id],
    )
    assert.equal((await collectPages(api, path, 'invitations', { state: 'pending', limit: '2' })).length, 4)
  })
})
