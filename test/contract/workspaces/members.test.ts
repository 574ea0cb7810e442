/** The workspace of a key: its name and its members, and what each role may do. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import type { Role } from '../../../src/http/principal.ts'
import { assertError, type Client, type Reply, soon } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { collectPages } from '../pages.ts'
import { addMember } from './rows.ts'

const context = await openContext()
const { workspace } = context
const DENIED = 'Workspace permission denied'
const LAST = 'The last owner of a workspace stays its owner'
const refused = ({ status }: Reply) => status !== 200

async function open() {
  const own = await workspace()
  const path = `/v0/workspaces/${own.id}`
  const add = (role: Role) => addMember(own, role)
  return {
    ...own,
    path,
    add,
    owner: (await own.api.get(`${path}/members`)).body.data.members[0].id as string,
  }
}

describe('a workspace', () => {
  it("a workspace shows its plan with limits, its usage, and the caller's role", async () => {
    const { api, id, name, path } = await open()
    const { data } = (await api.get(path)).body
    assert.deepEqual([data.id, data.name, data.role, data.usage], [id, name, 'owner', { files: 0, bytes: 0 }])
    assert.equal(data.plan.name, 'unlimited')
    assert.equal(data.plan.storageBytes, null)
    assert.deepEqual((await api.get('/v0/workspaces')).body.data, { workspaces: [data], next_page_token: '' })
    const free = await workspace('free')
    assert.ok((await free.api.get(`/v0/workspaces/${free.id}`)).body.data.plan.storageBytes > 0)
  })
  it('an owner can rename a workspace, which gets a number if the name is taken', async () => {
    const { api, path } = await open()
    const name = `renamed-${randomUUID()}`
    assert.equal((await api.request('PATCH', path, { json: { name: ` ${name} ` } })).body.data.name, name)
    assert.equal((await api.get(path)).body.data.name, name)
    const other = await open()
    for (let i = 0; i < 2; i++) {
      const { body } = await other.api.request('PATCH', other.path, { json: { name } })
      assert.equal(body.data.name, `${name} 2`)
    }
    assert.equal((await api.request('PATCH', path, { json: { name } })).body.data.name, name)
  })
})

describe('members', () => {
  it('members are listed in pages, with all roles or one', async () => {
    const { api, path, add } = await open()
    for (const role of ['member', 'viewer', 'member'] as const) await add(role)
    const all = await collectPages(api, `${path}/members`, 'members', { limit: '3' })
    assert.equal(all.length, 4)
    assert.equal(new Set(all.map(({ id }) => id)).size, 4)
    const found = await collectPages(api, `${path}/members`, 'members', { role: 'member', limit: '1' })
    assert.equal(found.length, 2)
  })
  it("a member's new role applies at once, even to existing keys", async () => {
    const { api, path, add } = await open()
    const { id, api: theirs } = await add('member')
    const write = () => theirs.post('/v3/groups/public', { name: 'mine' })
    assert.equal((await write()).status, 200)
    const changed = await api.request('PATCH', `${path}/members/${id}`, { json: { role: 'viewer' } })
    assert.equal(changed.body.data.role, 'viewer')
    assertError(await write(), 403, DENIED)
    await api.request('PATCH', `${path}/members/${id}`, { json: { role: 'owner' } })
    assert.equal((await theirs.get(`${path}/members`)).status, 200)
  })
  it('removed members are refused at once, and their old keys stay refused if they rejoin', async () => {
    const { api, path, name, add } = await open()
    const { id, name: user, api: theirs } = await add('member')
    const path_ = `${path}/members/${id}`
    assert.equal((await api.delete(path_)).body.data, null)
    assertError(await theirs.get('/v3/files/public'), 401, 'Missing userId')
    assertError(await api.delete(path_), 404, 'There is no such member')
    await context.berth('users', 'add', user, '--workspace', name)
    const reply = await soon(
      () => theirs.get('/v3/files/public'),
      ({ body }) => body.error !== 'Missing userId',
    )
    assertError(reply, 401, 'Invalid, expired or revoked API key')
  })
  it('the last owner can be neither removed nor demoted by anyone', async () => {
    const { api, path, owner, name } = await open()
    const path_ = `${path}/members/${owner}`
    assertError(await api.delete(path_), 409, LAST)
    for (const role of ['member', 'viewer'])
      assertError(await api.request('PATCH', path_, { json: { role } }), 409, LAST)
    assert.equal((await api.request('PATCH', path_, { json: { role: 'owner' } })).status, 200)
    await assert.rejects(context.berth('users', 'remove', 'owner', '-w', name), /The last owner/)
    await assert.rejects(context.berth('users', 'add', 'owner', '-w', name, '-r', 'viewer'), /The last owner/)
  })
  it('an owner who is removed during a pending request changes nobody', async () => {
    for (const method of ['PATCH', 'DELETE']) {
      const { id, path, add } = await open()
      const [first, second, friend] = [await add('owner'), await add('owner'), await add('viewer')]
      const lock = 'SELECT FROM workspace WHERE id = $1 FOR NO KEY UPDATE'
      const replies = await context.locked(lock, [id], async (waiting) => {
        const removal = first.api.delete(`${path}/members/${second.id}`)
        await waiting(1)
        const json = method === 'PATCH' ? { role: 'owner' } : undefined
        const change = second.api.request(method, `${path}/members/${friend.id}`, { json })
        await waiting(2)
        return [removal, change]
      })
      const [removal, change] = await Promise.all(replies)
      assert.equal(removal?.status, 200)
      // Or Berth ends the request, because its key is no longer valid.
      assert.ok(change && [401, 403].includes(change.status), `${change?.status}`)
      // After every request that still waits.
      await context.sql(lock, [id])
      const members = await context.sql(
        'SELECT role FROM membership WHERE workspace_id = $1 AND user_id = $2',
        [id, friend.id],
      )
      assert.deepEqual(members, [{ role: 'viewer' }])
    }
  })
  it('concurrent removals and demotions among owners leave one owner', async () => {
    const { api, id, path, add, owner } = await open()
    const owners = [{ id: owner, api }, ...(await Promise.all(Array.from({ length: 5 }, () => add('owner'))))]
    await Promise.all(
      owners.flatMap(({ api }, i) =>
        owners.map((other, j) =>
          (i + j) % 2
            ? api.delete(`${path}/members/${other.id}`)
            : api.request('PATCH', `${path}/members/${other.id}`, { json: { role: 'member' } }),
        ),
      ),
    )
    const left = await context.sql(
      `SELECT user_id FROM membership WHERE workspace_id = $1 AND role = 'owner'`,
      [id],
    )
    assert.equal(left.length, 1)
  })
})

describe('keys of a workspace', () => {
  const lastUse = async (api: Client, path: string, name: string) =>
    (await api.get(`${path}/keys`, { name })).body.data.keys[0]?.lastUsedAt

  it('keys of a workspace show when they were last used', async () => {
    const { api, path } = await open()
    const { body } = await api.post('/v3/pinata/keys', { keyName: 'seldom', permissions: { admin: true } })
    assert.equal(await lastUse(api, path, 'seldom'), null)
    const before = Date.now()
    assert.equal((await context.anonymous.as(body.JWT).get('/v3/files/public')).status, 200)
    const found = await until('the last use is written', async () => {
      const { body } = await api.get(`${path}/keys`, { name: 'seldom' })
      return body.data.keys[0].lastUsedAt !== null && body
    })
    const [key] = found.data.keys
    assert.ok(Math.abs(Date.parse(key.lastUsedAt) - before) < 60_000)
    assert.deepEqual(
      [key.name, key.user.name, key.scopes, key.revokedAt],
      ['seldom', 'owner', ['admin'], null],
    )
    assert.ok(!JSON.stringify(found).includes(body.pinata_api_secret))
    // It is not written again within the minute.
    await context.anonymous.as(body.JWT).get('/v3/files/public')
    assert.equal(await lastUse(api, path, 'seldom'), key.lastUsedAt)
  })
  it('keys of a workspace are listed in pages, by name, user and revocation', async () => {
    const { api, path, keyed, owner, add } = await open()
    for (let i = 0; i < 3; i++) await keyed('org:read')
    const other = await add('member')
    const keys = await collectPages(api, `${path}/keys`, 'keys', { limit: '2' })
    assert.equal(keys.length, 5)
    const [newest] = keys
    assert.equal((await api.delete(`${path}/keys/${keys[1]?.id}`)).body.data, null)
    const ids = async (query: Record<string, string>) =>
      (await api.get(`${path}/keys`, query)).body.data.keys.map(({ id }: { id: string }) => id)
    assert.deepEqual(await ids({ revoked: 'true' }), [keys[1]?.id])
    assert.equal((await ids({ revoked: 'false' })).length, 4)
    assert.deepEqual(await ids({ userId: other.id }), [newest?.id])
    assert.equal((await ids({ userId: owner })).length, 4)
    assert.deepEqual(await ids({ name: '%' }), [])
  })
  it('owners revoke any key at once, and members and viewers see only their own', async () => {
    const { api, path, add } = await open()
    const [member, viewer] = [await add('member'), await add('viewer')]
    const listed = async (client: Client) => (await client.get(`${path}/keys`)).body.data.keys
    const all = await listed(api)
    assert.equal(all.length, 3)
    for (const { api: theirs, id } of [member, viewer]) {
      const own = await listed(theirs)
      assert.deepEqual(
        own.map(({ user }: { user: { id: string } }) => user.id),
        [id],
      )
      assert.equal((await theirs.get('/v3/pinata/keys')).body.count, 1)
    }
    const ofOwner = all.find(({ user }: { user: { name: string } }) => user.name === 'owner')
    assertError(await member.api.delete(`${path}/keys/${ofOwner.id}`), 404, 'There is no such API key')
    assertError(await member.api.put(`/v3/pinata/keys/${ofOwner.publicKey}`), 404, 'There is no such API key')
    assertError(await viewer.api.delete(`${path}/keys/${(await listed(viewer.api))[0].id}`), 403, DENIED)
    const ofMember = all.find(({ user }: { user: { id: string } }) => user.id === member.id)
    assert.equal((await api.delete(`${path}/keys/${ofMember.id}`)).status, 200)
    assert.ok(refused(await member.api.get('/v3/files/public')))
    assert.equal((await api.delete(`${path}/keys/${ofMember.id}`)).status, 200, 'a repeat changes nothing')
    assertError(await api.delete(`${path}/keys/${randomUUID()}`), 404, 'There is no such API key')
  })
})
