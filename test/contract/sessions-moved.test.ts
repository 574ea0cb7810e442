/**
 * Sessions of users with several workspaces: they can move to another workspace with the same cookie, and end with it.
 */
import assert from 'node:assert/strict'
import { request } from 'node:http'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { until } from '../support/processes.ts'
import { openContext, type Workspace } from './context.ts'
import { ENDED, OF_DASHBOARD, OTHER, openSession, SESSION_NEEDED } from './session-client.ts'
import { addMember } from './workspaces/rows.ts'

const context = await openContext()
const { anonymous, berth, sql, url, workspace } = context
const signIn = (own: Workspace, user?: string) => openSession(anonymous, own, user)

describe('moving a session to another workspace', () => {
  /** A viewer of one workspace who is a member of another. */
  async function memberOfTwo() {
    const [first, second] = [await workspace(), await workspace()]
    const user = await addMember(first, 'viewer')
    await berth('users', 'add', user.name, '-w', second.name)
    return { first, second, user, ...(await signIn(first, user.name)) }
  }
  const move = ({ ask }: Awaited<ReturnType<typeof signIn>>, workspaceId: string, headers = {}) =>
    ask('POST', '/v0/sessions/move', headers, { workspaceId })
  /** Requests a move, and disconnects at the first byte of the response. */
  const cutMove = (cookie: string, workspaceId: string) =>
    new Promise<void>((resolve, reject) => {
      const headers = { cookie, ...OF_DASHBOARD, 'content-type': 'application/json' }
      const asked = request(`${url}/v0/sessions/move`, { method: 'POST', headers }, (answer) => {
        answer.destroy()
        resolve()
      })
      asked.on('error', reject).end(JSON.stringify({ workspaceId }))
    })

  it('a session lists the workspaces of its user, but a key does not', async () => {
    const { ask, first, second, user } = await memberOfTwo()
    const { workspaces } = (await ask('GET', '/v0/me')).body.data
    const known = [
      { id: first.id, name: first.name, role: 'viewer' },
      { id: second.id, name: second.name, role: 'member' },
    ]
    assert.deepEqual(
      workspaces,
      known.toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    )
    assert.equal((await user.api.get('/v0/me')).body.data.workspaces, null)
  })
  it('a moved session has the role there, a new id, and the same cookie and expiry', async () => {
    const session = await memberOfTwo()
    const { second, user, ask, id } = session
    await sql(`UPDATE api_key SET expires_at = now() + interval '3 hours' WHERE id = $1`, [id])
    await sql(`SELECT pg_notify('berth_api_key', $1::text)`, [id])
    const [{ expires_at: expires }] = (await sql('SELECT expires_at FROM api_key WHERE id = $1', [id])) as [
      any,
    ]
    await until('the change is known', async () => {
      const { body } = await ask('GET', '/v0/me')
      return Date.parse(body.data.session.expiresAt) === (expires as Date).getTime()
    })
    const moved = await move(session, second.id)
    assert.equal(moved.status, 200, JSON.stringify(moved.body))
    assert.equal(Date.parse(moved.body.data.expiresAt), (expires as Date).getTime())
    assert.equal(moved.headers.get('set-cookie'), null)
    const { data } = (await ask('GET', '/v0/me')).body
    assert.deepEqual([data.user.id, data.workspace.id, data.role], [user.id, second.id, 'member'])
    assert.equal(data.session.id, moved.body.data.id)
    const { sessions } = (await ask('GET', '/v0/sessions')).body.data
    assert.deepEqual(
      sessions.map((one: { id: string; current: boolean }) => [one.id, one.current]),
      [[moved.body.data.id, true]],
    )
    const entries = await sql(
      'SELECT via, user_id, key_id, resource FROM audit WHERE workspace_id = $1 AND action = $2',
      [second.id, 'moveSession'],
    )
    const entry = { via: 'session', user_id: user.id, key_id: moved.body.data.id }
    assert.deepEqual(entries, [{ ...entry, resource: `sessions/move/${moved.body.data.id}` }])
  })
  it('a session whose move response was lost works in the new workspace, and can move again', async () => {
    const session = await memberOfTwo()
    const { ask, first, second, user, cookie } = session
    await cutMove(cookie, second.id)
    await until('the session has moved', async () => {
      const { body } = await ask('GET', '/v0/me')
      return body.data.workspace.id === second.id
    })
    const { id } = (await ask('GET', '/v0/me')).body.data.session
    assert.deepEqual((await move(session, second.id)).body.data.id, id)
    for (const to of [first, second, first]) {
      assert.equal((await move(session, to.id)).status, 200)
      assert.equal((await ask('GET', '/v0/me')).body.data.workspace.id, to.id)
    }
    const live = await sql(
      'SELECT workspace_id FROM session JOIN api_key ON id = key_id WHERE user_id = $1 AND revoked_at IS NULL',
      [user.id],
    )
    assert.deepEqual(live, [{ workspace_id: first.id }])
    assert.equal((await ask('POST', '/v0/logout')).status, 200)
    assertError(await ask('GET', '/v0/me'), 401, ENDED)
  })
  it('moving a session closes its open streams, and sessions never appear as keys', async () => {
    const session = await memberOfTwo()
    const { first, second, cookie } = session
    const stream = await fetch(`${url}/v0/events`, { headers: { cookie } })
    assert.equal(stream.status, 200)
    const ended = stream.text().catch(() => '')
    assert.equal((await move(session, second.id)).status, 200)
    await ended
    for (const { api, id } of [first, second]) {
      const { keys } = (await api.get(`/v0/workspaces/${id}/keys`)).body.data
      assert.ok(!keys.some(({ name }: { name: string }) => name === 'session'), JSON.stringify(keys))
    }
  })
  it('a moved session changes nothing for a page that still shows the previous workspace', async () => {
    const session = await memberOfTwo()
    const { ask, first, second, user } = session
    const create = (workspaceId: string) =>
      ask('POST', '/v3/groups/public', { 'berth-workspace': workspaceId }, { name: 'made by a page' })
    assert.equal((await move(session, second.id)).status, 200)
    assertError(await create(first.id), 403, 'You have gone to another workspace: load the page again')
    assert.equal((await create(second.id)).status, 200)
    const { groups } = (await second.api.get('/v3/groups/public')).body.data
    assert.equal(groups.length, 1)
    // A key belongs to one workspace.
    assert.equal(
      (await user.api.request('GET', '/v0/me', { headers: { 'berth-workspace': second.id } })).status,
      200,
    )
  })
  it('concurrent moves of a session leave one session', async () => {
    const session = await memberOfTwo()
    const replies = await Promise.all(Array.from({ length: 6 }, () => move(session, session.second.id)))
    const statuses = replies.map(({ status }) => status)
    assert.ok(statuses.includes(200), `${statuses}`)
    assert.ok(
      statuses.every((status) => status === 200 || status === 401),
      `${statuses}`,
    )
    const rows = await sql(
      'SELECT FROM session JOIN api_key ON id = key_id WHERE user_id = $1 AND revoked_at IS NULL',
      [session.user.id],
    )
    assert.equal(rows.length, 1)
  })
  it('ending a moved session by its previous id also ends its cookie', async () => {
    const session = await memberOfTwo()
    const { ask, id, first, second, user } = session
    const other = await signIn(first, user.name)
    assert.equal((await move(session, second.id)).status, 200)
    assert.equal((await other.ask('DELETE', `/v0/sessions/${id}`)).status, 200)
    assertError(await ask('GET', '/v0/me'), 401, ENDED)
    assert.equal((await other.ask('GET', '/v0/me')).status, 200)
  })
  it("sessions move only to the user's own workspaces from the dashboard, and keys never move", async () => {
    const session = await memberOfTwo()
    const { ask, second, user, cookie } = session
    const stranger = await workspace()
    const NO_MEMBER = 'You are no member of this workspace: ask an owner for an invitation'
    for (const id of [stranger.id, '0193a1c0-51d2-7c3f-8a04-9d2e61b7f3a5'])
      assertError(await move(session, id), 403, NO_MEMBER)
    for (const id of ['x', '', 7, undefined])
      assertError(await move(session, id as string), 400, /^workspaceId: /)
    assertError(await move(session, second.id, { origin: 'https://evil.example' }), 403, OTHER)
    const bare = { json: { workspaceId: second.id }, headers: { cookie } }
    assertError(await anonymous.request('POST', '/v0/sessions/move', bare), 403, OTHER)
    const keyed = await user.api.post('/v0/sessions/move', { workspaceId: second.id })
    assertError(keyed, 403, SESSION_NEEDED)
    assert.equal((await ask('GET', '/v0/me')).status, 200)
    await second.api.delete(`/v0/workspaces/${second.id}/members/${user.id}`)
    assertError(await move(session, second.id), 403, NO_MEMBER)
  })
})
