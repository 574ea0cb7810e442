/**
 * The audit: it records each write, its caller and its result. Also tests who may read it, and what it never contains.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { once } from 'node:events'
import { get, type IncomingMessage } from 'node:http'
import { describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { assertError } from '../support/client.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { inlineCid, openContext } from './context.ts'
import { collectPages } from './pages.ts'
import { ask, routesOf } from './who-may.ts'
import { addMember } from './workspaces/rows.ts'

const context = await openContext()
const { anonymous, berth, sql, workspace } = context

/** The entries of a workspace, oldest first. */
const entriesOf = (workspaceId: string) =>
  sql('SELECT * FROM audit WHERE workspace_id = $1 ORDER BY id', [workspaceId])

describe('an audit entry', () => {
  it('an audit entry names the caller, the action, the resource, the address and the result', async () => {
    const { id, api } = await workspace()
    const reply = await api.request('POST', '/v3/groups/public?secret=in-the-query', {
      json: { name: 'a name that the audit must not store' },
      headers: { 'user-agent': 'a program' },
    })
    const [entry, ...others] = await entriesOf(id)
    assert.deepEqual(others, [])
    const { id: entryId, created_at, user_id, key_id, address, ...rest } = entry ?? {}
    assert.deepEqual(rest, {
      workspace_id: id,
      via: 'key',
      agent_id: null,
      action: 'createGroup',
      method: 'POST',
      route: '/v3/groups/:network',
      resource: `groups/public/${reply.body.data.id}`,
      status: 200,
      error_code: null,
      request_id: reply.headers.get('x-request-id'),
      user_agent: 'a program',
    })
    assert.match(String(address), /^(::ffff:)?127\.0\.0\.1$|^::1$/)
    const [key] = await sql('SELECT user_id FROM api_key WHERE id = $1', [key_id])
    assert.equal(key?.user_id, user_id)
    assert.ok(Math.abs(Number(created_at) - Date.now()) < 60_000)
    assert.ok(!JSON.stringify(entry).includes(String(api.key)), `${entryId}`)
  })

  it('an audit entry exists before the response, even for many requests at once', async () => {
    const { id, api } = await workspace()
    const requests = await Promise.all(
      Array.from({ length: 40 }, async () => {
        const json = { cid: `${inlineCid(randomUUID())}` }
        const { headers } = await api.request('POST', '/v3/files/public/pin_by_cid', { json })
        const requestId = headers.get('x-request-id')
        const rows = await sql('SELECT FROM audit WHERE workspace_id = $1 AND request_id = $2', [
          id,
          requestId,
        ])
        return rows.length
      }),
    )
    assert.deepEqual(new Set(requests), new Set([1]))
  })

  it('each way to request a pin writes exactly one audit entry', async () => {
    for (const path of ['/psa/pins', '/v3/files/public/pin_by_cid']) {
      const { id, api } = await workspace()
      const { status } = await api.request('POST', path, { json: { cid: `${inlineCid(randomUUID())}` } })
      const entries = await entriesOf(id)
      assert.deepEqual(
        entries.map(({ status, error_code }) => [status, error_code]),
        [[status, null]],
        path,
      )
    }
  })

  it('each refusal of a known caller writes an audit entry', async () => {
    const { id, api } = await workspace()
    const group = { name: randomUUID() }
    for (const [status, request] of [
      [400, () => api.post('/v3/groups/public', { name: 7 })],
      [404, () => api.delete(`/v3/groups/public/${randomUUID()}`)],
      [413, () => api.post('/v3/groups/public', { ...group, more: 'x'.repeat(1_100_000) })],
    ] as const)
      assert.equal((await request()).status, status)
    assert.deepEqual(
      (await entriesOf(id)).map(({ status, error_code }) => [status, error_code]),
      [
        [400, 'bad_request'],
        [404, 'not_found'],
        [413, 'too_large'],
      ],
    )
  })

  it('every route that writes creates an audit entry', async () => {
    const { id, created } = await workspace()
    const token = String((await created({ scopes: ['org:analytics:read'] })).key)
    const { document } = await DocumentCheck.load(anonymous.url)
    const isRead = ({ method }: { method: string }) => ['GET', 'HEAD', 'OPTIONS'].includes(method)
    const isSecured = ({ path, method }: { path: string; method: string }) =>
      (document.paths[path] as Record<string, { security?: unknown[] }>)[method.toLowerCase()]?.security
        ?.length !== 0
    const writes = routesOf(document).filter((route) => !isRead(route) && isSecured(route))
    assert.ok(writes.length > 60)
    const target = { workspaceId: id, agentId: 'x1234567', ids: {}, operation: randomUUID() }
    for (const route of writes) await ask(route, { name: 'a key', url: anonymous.url, token }, target)
    const actions = (await entriesOf(id)).filter(({ via }) => via === 'key').map(({ action }) => action)
    assert.deepEqual(
      actions,
      writes.map(({ id }) => id),
    )
  })

  it('an audit entry for an accepted invitation belongs to the workspace of the new member', async () => {
    const { id, api } = await workspace()
    const invitation = (await api.post(`/v0/workspaces/${id}/invitations`, { role: 'member' })).body.data
    const name = randomUUID()
    const joined = await anonymous.post('/v0/invitations/accept', { token: invitation.token, name })
    const [made, accepted] = await entriesOf(id)
    assert.equal(made?.resource, `workspaces/${id}/invitations/${invitation.id}`)
    assert.equal(accepted?.action, 'acceptInvitation')
    assert.deepEqual([accepted?.via, accepted?.user_id], ['link', joined.body.data.user.id])
    const text = JSON.stringify([made, accepted])
    assert.ok(!text.includes(invitation.token) && !text.includes(joined.body.data.token))
  })

  it('an invalid token gets an audit entry without a caller, and a flood of them gets few', async () => {
    const bad = anonymous.as('not-a-key')
    assertError(await bad.get('/v3/groups/public'), 401, 'Invalid, expired or revoked API key')
    // Uses its own address: the minute of the tests' address may end, and restart, in the middle.
    const headers = { authorization: 'Bearer not-a-key' }
    const localAddress = '127.0.44.1'
    const ids: unknown[] = []
    for (let i = 0; i < 40; i++) {
      const sent = get(`${anonymous.url}/v3/groups/public`, { headers, localAddress, agent: false })
      const [response] = (await once(sent, 'response')) as [IncomingMessage]
      response.resume()
      assert.equal(response.statusCode, 401)
      ids.push(response.headers['x-request-id'])
    }
    assert.equal(new Set(ids).size, 40)
    const entries = await sql(
      "SELECT user_id, key_id FROM audit WHERE action = 'signIn' AND status = 401 AND request_id = ANY ($1)",
      [ids],
    )
    assert.ok(entries.length <= 10)
    for (const entry of entries) assert.deepEqual(entry, { user_id: null, key_id: null })
  })

  it('an audit entry cannot be changed or removed, except to set its result once', async () => {
    const { id, api } = await workspace()
    await api.post('/v3/groups/public', { name: 'one' })
    const begun = uuidv7()
    await sql(
      "INSERT INTO audit (id, created_at, workspace_id, via, action, resource, error_code) VALUES ($1, now(), $2, 'key', 'a', '', 'unknown')",
      [begun, id],
    )
    const refused = (statement: string) =>
      assert.rejects(sql(`${statement} WHERE workspace_id = $1`, [id]), /are neither changed nor removed/)
    for (const set of ["resource = ''", "error_code = 'unknown'", 'user_id = NULL'])
      await refused(`UPDATE audit SET ${set}`)
    await refused('DELETE FROM audit')
    await refused("UPDATE audit SET error_code = NULL, action = 'b'")
    await sql('UPDATE audit SET error_code = NULL, status = 200 WHERE id = $1', [begun])
    await refused('UPDATE audit SET status = 201')
  })

  it('reads create no audit entry', async () => {
    const { id, api } = await workspace()
    await api.get('/v3/groups/public')
    assert.deepEqual(await entriesOf(id), [])
  })
})

const timeOf = (row: Record<string, unknown> | undefined) => new Date(row?.created_at as Date).toISOString()
const LINES = { accept: 'application/x-ndjson' }
const linesOf = (text: string) =>
  text
    .split('\n')
    .filter(Boolean)
    .map((line) => JSON.parse(line))

describe('the audit of a workspace', () => {
  it('the audit of a workspace is listed in pages, newest first', async () => {
    const { id, api } = await workspace()
    for (let i = 0; i < 5; i++) await api.post('/v3/groups/public', { name: `group ${i}` })
    const all = (await api.get('/v0/audit')).body.data.entries
    const rows = await entriesOf(id)
    assert.deepEqual(
      all.map((entry: { id: string }) => entry.id),
      rows.map((row) => row.id).reverse(),
    )
    assert.equal(all[0].createdAt, timeOf(rows.at(-1)))
    assert.deepEqual(await collectPages(api, '/v0/audit', 'entries', { limit: '2' }), all)
  })

  it('the audit of a workspace is filtered', async () => {
    const own = await workspace()
    const member = await addMember(own, 'member')
    const { body } = await own.api.post('/v3/groups/public', { name: 'one' })
    const group = `groups/public/${body.data.id}`
    await member.api.request('PUT', `/v3/groups/public/${body.data.id}`, { json: { name: 'two' } })
    await own.api.delete(`/v3/groups/public/${randomUUID()}`)
    const [key] = await sql('SELECT id FROM api_key WHERE workspace_id = $1 AND user_id = $2', [
      own.id,
      member.id,
    ])
    const [made] = await entriesOf(own.id).then((rows) =>
      rows.filter(({ action }) => action === 'createGroup'),
    )
    const at = timeOf(made)
    const actions = async (query: Record<string, string>) => {
      const { entries } = (await own.api.get('/v0/audit', query)).body.data
      return entries.map(({ action }: { action: string }) => action)
    }
    const CASES: [Record<string, string>, string[]][] = [
      [{ userId: member.id }, ['updateGroup']],
      [{ keyId: String(key?.id) }, ['updateGroup']],
      [{ agentId: 'x1234567' }, []],
      [{ action: 'createGroup' }, ['createGroup']],
      [{ resource: group }, ['updateGroup', 'createGroup']],
      [{ resource: 'groups/public' }, ['deleteGroup', 'updateGroup', 'createGroup']],
      [{ resource: 'groups/pub' }, []],
      [{ result: 'refused' }, ['deleteGroup']],
      [{ result: 'done', resource: 'groups' }, ['updateGroup', 'createGroup']],
      [{ from: at, resource: 'groups' }, ['deleteGroup', 'updateGroup', 'createGroup']],
      [{ to: at, resource: 'groups' }, []],
      [{ from: '2000-01-01T00:00:00Z', to: '2000-01-02T00:00:00+01:00' }, []],
    ]
    for (const [query, expected] of CASES)
      assert.deepEqual(await actions(query), expected, JSON.stringify(query))
  })

  it('the audit of a workspace is exported as JSON lines', async () => {
    const { id, api } = await workspace()
    await sql(
      `INSERT INTO audit (id, created_at, workspace_id, via, action, resource)
       SELECT id, now(), $1, 'key', 'deleteGroup', 'groups' FROM unnest($2::uuid[]) AS id`,
      [id, Array.from({ length: 1100 }, () => uuidv7())],
    )
    const reply = await api.get('/v0/audit', { action: 'deleteGroup' }, LINES)
    assert.match(String(reply.headers.get('content-type')), /^application\/x-ndjson/)
    const entries = linesOf(reply.body)
    assert.equal(entries.length, 1100)
    assert.deepEqual(
      entries.slice(0, 100),
      (await api.get('/v0/audit', { action: 'deleteGroup' })).body.data.entries,
    )
    assert.equal((await api.get('/v0/audit', { resource: 'nothing' }, LINES)).body, '')
  })
})

describe('the audit of the instance', () => {
  it('the audit of the instance includes all workspaces, and entries without one', async () => {
    const own = await workspace()
    const { name } = await own.member('member')
    await berth('users', 'admin', name)
    const admin = await own.created({ user: name, scopes: ['instance:read'] })
    const other = await workspace()
    await other.api.post('/v3/groups/public', { name: 'elsewhere' })
    const of = async (query: Record<string, string>) =>
      (await admin.get('/v0/admin/audit', query)).body.data.entries
    const [entry, ...more] = await of({ workspaceId: other.id })
    assert.deepEqual([entry.action, entry.workspaceId, more], ['createGroup', other.id, []])
    assert.equal(
      (await of({ limit: '1000' })).some(({ id }: { id: string }) => id === entry.id),
      true,
    )
    const lines = await admin.get('/v0/admin/audit', { workspaceId: other.id }, LINES)
    assert.deepEqual(linesOf(lines.body), [entry])
  })
})
