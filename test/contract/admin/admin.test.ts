/** The API for instance admins: plans, workspaces, usage, health, queues and workers. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import packageJson from '../../../package.json' with { type: 'json' }
import { assertError, soon } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { inlineCid, openContext } from '../context.ts'
import { collectPages } from '../pages.ts'

const context = await openContext()
const { anonymous, berth, sql, workspace } = context
const home = await workspace()
const NO_ADMIN = 'The user of this key is no admin of the instance'

/** A new user who is a workspace member and instance admin, and a key for them. */
async function newAdmin(scopes = 'instance:write') {
  const { name } = await home.member('member')
  await berth('users', 'admin', name)
  return { name, api: await home.created({ user: name, scopes: [scopes] }) }
}
const { api, name: adminName } = await newAdmin()

describe('instance admins', () => {
  it('an instance admin needs both the flag and the scope', async () => {
    const plans = '/v0/admin/plans'
    assert.equal((await api.get(plans)).status, 200)
    const { name: other } = await home.member('owner')
    const flagless = await home.created({ user: other, scopes: ['admin', 'instance:write'] })
    const reply = await flagless.get(plans)
    assertError(reply, 403, NO_ADMIN)
    assert.equal(reply.headers.get('error-code'), 'no_instance_admin')
    const scopeless = await home.created({ user: adminName })
    assertError(await scopeless.get(plans), 403, 'Missing scope: instance:read')
    assertError(await home.api.get(plans), 403, 'Missing scope: instance:read')
  })
  it('an instance admin loses access at once without the flag, and cannot be created over HTTP', async () => {
    const { api, name } = await newAdmin()
    assert.equal((await api.get('/v0/admin/plans')).status, 200)
    const admins = async () => JSON.parse(await berth('users', 'list', '--admins', '--json'))
    const isListed = async () => (await admins()).some((admin: { name: string }) => admin.name === name)
    assert.ok(await isListed())
    await berth('users', 'admin', name, '--remove')
    assert.ok(!(await isListed()))
    assertError(
      await soon(
        () => api.get('/v0/admin/plans'),
        ({ status }) => status !== 200,
      ),
      403,
      NO_ADMIN,
    )
    await assert.rejects(berth('users', 'admin', 'nobody-at-all'), /no user is named nobody-at-all/)
    const { api: owner } = await workspace()
    const wanted = { keyName: 'x', permissions: { resources: ['instance:read'] } }
    assertError(await owner.post('/v3/pinata/keys', wanted), 403, 'Workspace permission denied')
  })
})

describe('instance plans', () => {
  it('instance plans are listed with their limits', async () => {
    const { plans } = (await api.get('/v0/admin/plans')).body.data
    const free = plans.find(({ name }: { name: string }) => name === 'free')
    assert.equal(free.pinByCid, false)
    assert.ok(free.storageBytes > 0)
    assert.deepEqual(
      plans.map(({ name }: { name: string }) => name),
      plans.map(({ name }: { name: string }) => name).sort(),
    )
  })
})

describe('instance workspaces', () => {
  const create = (body: object) =>
    api.post('/v0/admin/workspaces', {
      name: `made-${randomUUID()}`,
      owner: `owner-${randomUUID()}`,
      ...body,
    })

  it('a workspace is created with an owner, a gateway and a key', async () => {
    const name = `made-${randomUUID()}`
    const { status, body } = await create({ name, plan: 'pro' })
    assert.equal(status, 201)
    const { token, ...made } = body.data
    assert.deepEqual([made.name, made.plan, made.usage], [name, 'pro', { files: 0, bytes: 0, agents: 0 }])
    const owner = anonymous.as(token)
    const own = (await owner.get(`/v0/workspaces/${made.id}`)).body.data
    assert.deepEqual([own.name, own.role, own.plan.name], [name, 'owner', 'pro'])
    assert.equal((await owner.get('/v3/gateways')).body.data.rows.length, 1)
    assert.deepEqual((await api.get(`/v0/admin/workspaces/${made.id}`)).body.data, made)
    assertError(await create({ name }), 409, `name: a workspace named ${name} is there already`)
    assert.equal((await create({})).body.data.plan, 'free')
  })
  it('workspaces are listed in pages, by name and plan, with their usage', async () => {
    const name = `plan-${randomUUID()}`
    await sql(`INSERT INTO plan (name, channels, custom_domains, pin_by_cid) VALUES ($1, true, true, true)`, [
      name,
    ])
    const made = []
    for (let i = 0; i < 3; i++) made.push((await create({ plan: name })).body.data)
    const list = (query: Record<string, string>) =>
      collectPages(api, '/v0/admin/workspaces', 'workspaces', query)
    assert.deepEqual(
      (await list({ plan: name, limit: '2' })).map(({ id }) => id),
      made.map(({ id }) => id).reverse(),
    )
    const [first] = made
    await anonymous.as(first.token).pin({ cid: `${inlineCid(name)}` }, { wait: 120 })
    const [found] = (await api.get('/v0/admin/workspaces', { name: first.name })).body.data.workspaces
    assert.equal(found.id, first.id)
    assert.equal(found.usage.files, 1)
    assert.ok(found.usage.bytes > 0)
    assert.deepEqual(await list({ name: 'no workspace has this name' }), [])
  })
  it('a workspace can be renamed and moved to another plan at once', async () => {
    const { id, token } = (await create({})).body.data
    const theirs = anonymous.as(token)
    const plan = async () => (await theirs.get('/v3/usage')).body.data.plan
    assert.equal(await plan(), 'free')
    const change = (json: object, target = id) =>
      api.request('PATCH', `/v0/admin/workspaces/${target}`, { json })
    assert.equal((await change({ plan: 'pro' })).body.data.plan, 'pro')
    assert.equal(await plan(), 'pro')
    const name = `named-${randomUUID()}`
    const { data } = (await change({ name })).body
    assert.deepEqual([data.name, data.plan], [name, 'pro'])
    assertError(
      await change({ name: home.name }),
      409,
      `name: a workspace named ${home.name} is there already`,
    )
    assertError(await change({ plan: 'gold' }), 400, /^plan: no plan is named gold: there are .*free/)
    for (const target of [randomUUID(), 'x'])
      assertError(await change({ plan: 'pro' }, target), 404, 'There is no such workspace')
    assertError(await api.get(`/v0/admin/workspaces/${randomUUID()}`), 404, 'There is no such workspace')
  })
  const malformed: [object, RegExp | string][] = [[{ plan: 'gold' }, /^plan: no plan is named gold/]]
  for (const [body, message] of malformed)
    it(`a workspace is not created with ${JSON.stringify(body)}`, async () => {
      assertError(await create(body), 400, message)
    })
})

describe('the instance', () => {
  it('the instance usage includes files and bytes by network, and agents by status', async () => {
    const { networks, agents } = (await api.get('/v0/admin/usage')).body.data
    for (const { files, bytes } of [networks.public, networks.private]) assert.ok(files >= 0 && bytes >= 0)
    assert.deepEqual(Object.keys(agents).sort(), ['not_running', 'running', 'starting'])
  })
  it('the instance health shows the same parts as /readyz', async () => {
    // If the rows of the workers come too late for one of the two, it lacks the workers' parts.
    const found = await until('both have the same parts', async () => {
      const { data } = (await api.get('/v0/admin/health')).body
      const { parts } = (await anonymous.get('/readyz')).body
      const names = data.parts.map(({ name }: { name: string }) => name)
      assert.deepEqual(names.sort(), Object.keys(parts).sort())
      return data.parts
    })
    for (const { name, status, advice } of found)
      assert.ok(status === 'ok' || advice, `${name} is ${status} and has no advice`)
  })
  it('the instance lists what waits in its queues, and the slots that serve them', async () => {
    const [id, target] = [randomUUID(), randomUUID()]
    await sql(
      `INSERT INTO operation (id, workspace_id, kind, queue, target_id, next_attempt_at, created_at)
       VALUES ($1, $2, 'agent.sync', 'nobody', $3, now() + interval '1 day', now() - interval '1 hour')`,
      [id, home.id, target],
    )
    try {
      const queue = ({ body }: { body: any }, name: string) =>
        body.data.queues.find((one: { name: string }) => one.name === name)
      // A worker that was suspended has no slots until its next heartbeat.
      const reply = await until('the operation and the slots of the worker appear', async () => {
        const reply = await api.get('/v0/admin/queues')
        return queue(reply, 'workspaces').oldestSeconds >= 3600 && queue(reply, 'pins').slots >= 64 && reply
      })
      assert.ok(queue(reply, 'workspaces').queued >= 1)
      assert.deepEqual(
        reply.body.data.queues.map(({ name }: { name: string }) => name),
        ['pins', 'repairs', 'storage', 'agents', 'workspaces', 'webhooks'],
      )
    } finally {
      await sql('DELETE FROM operation WHERE id = $1', [id])
    }
  })
  it('the instance lists its workers with versions, slots and heartbeats, dead ones for an hour', async () => {
    const dead = '00000000-0000-7000-8000-000000000001'
    await sql(
      `INSERT INTO worker (id, concurrency, ipfs, seen_at)
       VALUES ($1, '{"pins": 1}', '{}', now() - interval '50 minutes')
       ON CONFLICT (id) DO UPDATE SET seen_at = EXCLUDED.seen_at`,
      [dead],
    )
    // A worker that was suspended is alive, and its parts are healthy, after its next heartbeats.
    const { began, all, alive } = await until('a worker is alive and healthy', async () => {
      const began = Date.now()
      const all = (await collectPages(api, '/v0/admin/workers', 'workers', { limit: '1' })) as any[]
      const alive = all.filter(({ isAlive }) => isAlive)
      const isWell = alive.every(({ parts }) => parts.database.status === 'ok')
      return alive.length >= 1 && isWell && { began, all, alive }
    })
    const gone = all.find(({ id }) => id === dead)
    assert.deepEqual([gone.isAlive, gone.version, gone.slots, gone.parts], [false, null, { pins: 1 }, {}])
    for (const { version, slots, seenAt } of alive) {
      assert.equal(version, packageJson.version)
      assert.ok(slots.pins > 0)
      assert.ok(began - Date.parse(seenAt) < 60_000)
    }
    await sql('DELETE FROM worker WHERE id = $1', [dead])
  })
})
