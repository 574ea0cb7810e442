/** The audit: that each write is in it, by whom, and how it ended; who reads it, and what is never in it. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { DocumentCheck } from '../support/openapi.ts'
import { inlineCid, openContext } from './context.ts'
import { ask, routesOf } from './who-may.ts'

const context = await openContext()
const { anonymous, sql, workspace } = context

/** The entries of a workspace, the oldest first. */
const entriesOf = (workspaceId: string) =>
  sql('SELECT * FROM audit WHERE workspace_id = $1 ORDER BY id', [workspaceId])

describe('an entry of the audit', () => {
  it('an entry of the audit says who did what, to what, from where, and how it ended', async () => {
    const { id, api } = await workspace()
    const reply = await api.request('POST', '/v3/groups/public?secret=in-the-query', {
      json: { name: 'a name that is nobody’s business' },
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

  it('an entry of the audit is there before the answer, for each of many at a time', async () => {
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

  it('an entry of the audit is written for each refusal of a known caller', async () => {
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

  it('an entry of the audit is written by every route that is no read', async () => {
    const { id, created } = await workspace()
    const token = String((await created('--scopes', 'org:analytics:read')).key)
    const { document } = await DocumentCheck.load(anonymous.url)
    const isRead = ({ method }: { method: string }) => ['GET', 'HEAD', 'OPTIONS'].includes(method)
    const isSecured = ({ path, method }: { path: string; method: string }) =>
      (document.paths[path] as Record<string, { security?: unknown[] }>)[method.toLowerCase()]?.security
        ?.length !== 0
    const writes = routesOf(document).filter((route) => !isRead(route) && isSecured(route))
    assert.ok(writes.length > 60)
    const target = { workspaceId: id, agentId: 'x1234567', ids: {}, operation: randomUUID() }
    for (const route of writes) await ask(route, { name: 'a key', url: anonymous.url, token }, target)
    const actions = (await entriesOf(id)).map(({ action }) => action)
    assert.deepEqual(
      actions,
      writes.map(({ id }) => id),
    )
  })

  it('an entry of the audit tells an invitation that was accepted with the workspace of the new member', async () => {
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

  it('an entry of the audit names no caller for a token that is not good, and a flood makes few', async () => {
    const count = async () => {
      const [row] = await sql("SELECT count(*)::int AS n FROM audit WHERE action = 'signIn' AND status = 401")
      return Number(row?.n)
    }
    const before = await count()
    const bad = anonymous.as('not-a-key')
    for (let i = 0; i < 40; i++)
      assertError(await bad.get('/v3/groups/public'), 401, 'Invalid, expired or revoked API key')
    assert.ok((await count()) <= before + 10)
  })

  it('an entry of the audit is made of no read', async () => {
    const { id, api } = await workspace()
    await api.get('/v3/groups/public')
    assert.deepEqual(await entriesOf(id), [])
  })
})
