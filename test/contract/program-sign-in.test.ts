/** Sign-in of programs such as `berth login`: a user allows it in the dashboard, and the program collects its key. */
import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { openContext, type Workspace } from './context.ts'
import { openSession } from './session-client.ts'
import { addMember } from './workspaces/rows.ts'

const { anonymous, sql, workspace } = await openContext()
const WAITING = 'Nobody has allowed this sign-in yet'

function start() {
  const verifier = randomBytes(32).toString('base64url')
  return { verifier, challenge: createHash('sha256').update(verifier).digest('base64url') }
}
const collect = (verifier: string) => anonymous.post('/v0/login/program', { verifier })
const allow = async (own: Workspace, challenge: string, user?: string) => {
  const { ask } = await openSession(anonymous, own, user)
  return ask('POST', '/v0/sessions/programs', {}, { challenge, name: 'laptop', days: 7 })
}

describe('the sign-in of a program', () => {
  it('a program collects its key once, after its user has allowed it', async () => {
    const own = await workspace()
    const { verifier, challenge } = start()
    assertError(await collect(verifier), 404, WAITING)
    const allowed = await allow(own, challenge)
    assert.equal(allowed.status, 200)
    const replies = await Promise.all(Array.from({ length: 4 }, () => collect(verifier)))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 404, 404, 404])
    const { data } = replies.find(({ status }) => status === 200)?.body ?? {}
    assert.equal(data.id, allowed.body.data.id)
    assert.equal(data.expiresAt, allowed.body.data.expiresAt)
    const me = await anonymous.get('/v0/me', {}, { authorization: `Bearer ${data.token}` })
    assert.equal(me.body.data.workspace.id, own.id)
    assert.deepEqual([me.body.data.scopes, me.body.data.session], [['admin'], null])
    const { keys } = (await own.api.get(`/v0/workspaces/${own.id}/keys`)).body.data
    const listed = keys.find(({ id }: { id: string }) => id === data.id)
    assert.deepEqual([listed.name, listed.audience], ['berth on laptop', null])
  })
  it('the key of a program has the rights of its user', async () => {
    const own = await workspace()
    const viewer = await addMember(own, 'viewer')
    const { verifier, challenge } = start()
    await allow(own, challenge, viewer.name)
    const { token } = (await collect(verifier)).body.data
    const me = await anonymous.get('/v0/me', {}, { authorization: `Bearer ${token}` })
    assert.deepEqual([me.body.data.user.id, me.body.data.scopes], [viewer.id, ['org:read']])
  })
  it('a key that was revoked, or not collected for five minutes, is not given out', async () => {
    const own = await workspace()
    const [late, revoked] = [start(), start()]
    const [{ body: first }, { body: second }] = [
      await allow(own, late.challenge),
      await allow(own, revoked.challenge),
    ]
    const before = `UPDATE api_key SET created_at = now() - interval '5 minutes' WHERE id = $1`
    await sql(before, [first.data.id])
    await own.api.delete(`/v3/api_keys/${second.data.id}`)
    for (const { verifier } of [late, revoked]) assertError(await collect(verifier), 404, WAITING)
    await allow(own, start().challenge)
    assert.deepEqual(await sql('SELECT FROM api_key WHERE id = $1', [first.data.id]), [], 'and is deleted')
  })
  it('a sign-in is allowed once', async () => {
    const own = await workspace()
    const { challenge } = start()
    await allow(own, challenge)
    assertError(await allow(own, challenge), 409, 'This sign-in was already allowed')
  })
  it('the public challenge of a sign-in is of no use to others', async () => {
    const own = await workspace()
    const { challenge } = start()
    await allow(own, challenge)
    assertError(await collect(challenge), 404, WAITING)
  })
})
