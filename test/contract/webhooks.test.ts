/**
 * Webhooks of a workspace over HTTP: creating, changing and deleting them, and reading their deliveries. None of their
 * targets is ever reached.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, describe, it } from 'node:test'
import { uuidv7 } from 'uuidv7'
import { assertError, type Client } from '../support/client.ts'
import { openContext } from './context.ts'
import { collectPages } from './pages.ts'
import { startWebProcess } from './web-process.ts'

const context = await openContext()
const { env, sql, workspace } = context
const PATH = '/v0/webhooks'
const NONE = 'There is no such webhook'
const NO_DELIVERY = 'There is no such delivery'
// No name below `.invalid` exists (RFC 6761).
const URL_OF_NOBODY = 'https://hooks.invalid/berth?from=1'
const MADE = { url: URL_OF_NOBODY, events: ['webhook.disabled'] }

async function open() {
  const own = await workspace()
  const { api } = own
  return {
    ...own,
    create: (body: object = {}, client: Client = api) => client.post(PATH, { ...MADE, ...body }),
    patch: (id: string, json: object, client: Client = api) =>
      client.request('PATCH', `${PATH}/${id}`, { json }),
  }
}
/** A webhook with deliveries that are never sent: `ended` says which have ended, and with which error. */
async function openDelivered(...ended: (string | null | undefined)[]) {
  const own = await open()
  const { secret: _, ...webhook } = (await own.create()).body.data
  const path = `${PATH}/${webhook.id}`
  const ids: string[] = []
  for (const error of ended) {
    const id = uuidv7()
    ids.unshift(id)
    await sql(
      `INSERT INTO webhook_delivery (id, webhook_id, type, body, next_attempt_at, ended_at, error, status, response, attempts)
       VALUES ($1, $2, 'webhook.disabled', '{"id":"1"}', CASE WHEN $3 THEN NULL ELSE now() + interval '1 day' END,
         CASE WHEN $3 THEN now() END, $4, CASE WHEN $3 THEN 200 END, CASE WHEN $3 THEN 'taken' END, CASE WHEN $3 THEN 1 ELSE 0 END)`,
      [id, webhook.id, error !== undefined, error ?? null],
    )
  }
  return { ...own, webhook, path, deliveries: `${path}/deliveries`, ids }
}
const idsOf = (items: { id: string }[]) => items.map(({ id }) => id)

describe('a webhook', () => {
  it('a new webhook has all given fields, and its secret is shown only once', async () => {
    const { api, create } = await open()
    const { status, body } = await create()
    assert.equal(status, 201)
    const { secret, id, createdAt, updatedAt, ...rest } = body.data
    assert.deepEqual(rest, {
      ...MADE,
      agentId: null,
      groupId: null,
      enabled: true,
      disabledReason: null,
      failingSince: null,
    })
    assert.match(secret, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.equal(createdAt, updatedAt)
    const { secret: _, ...shown } = body.data
    assert.deepEqual((await api.get(`${PATH}/${id}`)).body.data, shown)
    assert.deepEqual((await api.get(PATH)).body.data, { webhooks: [shown], next_page_token: '' })
    const [row] = await sql('SELECT w::text AS text, secret FROM webhook w WHERE id = $1', [id])
    const kept = `${row?.text}${Buffer.from(row?.secret as Uint8Array).toString('latin1')}`
    const key = String(secret).slice('whsec_'.length)
    for (const plain of [key, Buffer.from(key, 'base64').toString('latin1')])
      assert.ok(!kept.includes(plain), 'the secret is encrypted')
  })
  it('a webhook can subscribe to types, groups of types or all, and to one agent or group', async () => {
    const { create } = await open()
    for (const body of [
      { events: ['*'] },
      { events: ['file.*', 'pin.pinned'], groupId: randomUUID() },
      { events: ['agent.*'], agentId: 'x1a2b3c4' },
    ]) {
      const { data } = (await create(body)).body
      assert.deepEqual(data, { ...data, ...body })
    }
  })
  it('a change of a webhook applies only the given fields', async () => {
    const { api, create, patch } = await open()
    const { secret: _, ...made } = (await create()).body.data
    const url = 'https://other.invalid/'
    for (const change of [
      { url },
      // None of these events happens here: a failed delivery would change the webhook as well.
      { events: ['swap.*'] },
      { agentId: 'x1a2b3c4' },
      { groupId: randomUUID() },
      { agentId: null, groupId: null },
    ]) {
      const before = (await api.get(`${PATH}/${made.id}`)).body.data
      const { status, body } = await patch(made.id, change)
      assert.equal(status, 200)
      assert.deepEqual(body.data, { ...before, ...change, updatedAt: body.data.updatedAt })
      assert.deepEqual((await api.get(`${PATH}/${made.id}`)).body.data, body.data)
    }
  })
  it('disabling a webhook ends pending deliveries, and enabling it does not bring them back', async () => {
    const { api, path, deliveries, webhook, patch, ids } = await openDelivered(undefined)
    const off = (await patch(webhook.id, { enabled: false })).body.data
    assert.deepEqual([off.enabled, off.disabledReason], [false, 'client'])
    const [ended] = (await api.get(deliveries)).body.data.deliveries
    assert.deepEqual([ended.state, ended.error], ['failed', 'The webhook was disabled'])
    assertError(await api.post(`${path}/test`, {}), 409, 'The webhook is disabled')
    assertError(await api.post(`${deliveries}/${ended.id}/redeliver`, {}), 409, 'The webhook is disabled')
    await sql(`UPDATE webhook SET disabled_reason = 'failing', failing_since = now() WHERE id = $1`, [
      webhook.id,
    ])
    const failed = (await patch(webhook.id, { enabled: false })).body.data
    assert.deepEqual([failed.disabledReason, failed.failingSince === null], ['failing', false])
    const on = (await patch(webhook.id, { enabled: true })).body.data
    assert.deepEqual([on.enabled, on.disabledReason, on.failingSince], [true, null, null])
    // If `webhook.disabled` of the first change is published only now, it is a delivery too.
    const { data } = (await api.get(deliveries)).body
    const kept = data.deliveries.find(({ id }: { id: string }) => id === ids[0])
    assert.equal(kept.state, 'failed')
  })
  it('deleting a webhook ends its pending deliveries', async () => {
    const { api, path, ids } = await openDelivered(undefined)
    const { status, body } = await api.delete(path)
    assert.deepEqual([status, body], [200, { data: null }])
    for (const reply of [await api.get(path), await api.delete(path), await api.get(`${path}/deliveries`)])
      assertError(reply, 404, NONE)
    const [row] = await sql('SELECT error, ended_at FROM webhook_delivery WHERE id = $1', [ids[0]])
    assert.equal(row?.error, 'The webhook was deleted')
    assert.ok(row?.ended_at)
  })
  it('a rotated webhook secret is shown only once', async () => {
    const { api, create } = await open()
    const { secret, ...made } = (await create()).body.data
    const { status, body } = await api.post(`${PATH}/${made.id}/rotate`, {})
    assert.equal(status, 200)
    const { secret: another, ...rotated } = body.data
    assert.match(another, /^whsec_[A-Za-z0-9+/]{43}=$/)
    assert.notEqual(another, secret)
    assert.deepEqual(rotated, { ...made, updatedAt: rotated.updatedAt })
    assert.deepEqual((await api.get(`${PATH}/${made.id}`)).body.data, rotated)
  })
  it('a workspace can have 20 webhooks, however many requests come at once', async () => {
    const { api, create } = await open()
    for (let i = 0; i < 17; i++) assert.equal((await create()).status, 201)
    const replies = await Promise.all(Array.from({ length: 6 }, () => create()))
    assert.deepEqual(replies.map(({ status }) => status).sort(), [201, 201, 201, 403, 403, 403])
    assertError(await create(), 403, 'Webhook limit reached')
    const { webhooks } = (await api.get(PATH, { limit: '100' })).body.data
    assert.equal(webhooks.length, 20)
    await api.delete(`${PATH}/${webhooks[0].id}`)
    assert.equal((await create()).status, 201)
  })
  it('webhooks are listed in pages, newest first', async () => {
    const { api, create } = await open()
    const made: string[] = []
    for (let i = 0; i < 5; i++) made.unshift((await create()).body.data.id)
    assert.deepEqual(idsOf(await collectPages(api, PATH, 'webhooks', { limit: '2' })), made)
  })
  it('webhooks have the same routes under /v3', async () => {
    const { api, create, webhook, ids } = await openDelivered(null)
    const { id } = (await create({}, api)).body.data
    const path = `/v3/webhooks/${webhook.id}`
    assert.equal((await api.get('/v3/webhooks')).body.data.webhooks.length, 2)
    assert.equal((await api.post('/v3/webhooks', MADE)).status, 201)
    assert.deepEqual((await api.get(path)).body.data, webhook)
    assert.equal((await api.post(`${path}/rotate`, {})).status, 200)
    assert.equal((await api.post(`${path}/test`, {})).status, 201)
    assert.equal((await api.get(`${path}/deliveries`)).body.data.deliveries.length, 2)
    assert.equal((await api.get(`${path}/deliveries/${ids[0]}`)).body.data.id, ids[0])
    assert.equal((await api.post(`${path}/deliveries/${ids[0]}/redeliver`, {})).status, 200)
    assert.equal((await api.request('PATCH', path, { json: { events: ['*'] } })).status, 200)
    assert.equal((await api.delete(`/v3/webhooks/${id}`)).status, 200)
  })
})

describe('deliveries of a webhook', () => {
  it('deliveries are listed in pages, in all states or one, without their bodies', async () => {
    const { api, deliveries, ids } = await openDelivered(undefined, null, 'the target answered 500', null)
    const list = (query: Record<string, string>) => collectPages(api, deliveries, 'deliveries', query)
    assert.deepEqual(idsOf(await list({ limit: '3' })), ids)
    assert.deepEqual(idsOf(await list({ state: 'delivered', limit: '1' })), [ids[0], ids[2]])
    assert.deepEqual(idsOf(await list({ state: 'failed' })), [ids[1]])
    assert.deepEqual(idsOf(await list({ state: 'pending' })), [ids[3]])
    const [first] = (await api.get(deliveries)).body.data.deliveries
    const { createdAt, endedAt, ...rest } = first
    assert.ok(Date.parse(createdAt) && Date.parse(endedAt))
    assert.deepEqual(rest, {
      id: ids[0],
      type: 'webhook.disabled',
      state: 'delivered',
      attempts: 1,
      lastAttemptAt: null,
      nextAttemptAt: null,
      status: 200,
      response: 'taken',
      error: null,
    })
    assert.deepEqual((await api.get(`${deliveries}/${ids[0]}`)).body.data, { ...first, body: '{"id":"1"}' })
  })
  it('a test of a webhook is a separate delivery with an event about the webhook', async () => {
    const { api, id: workspaceId, path, webhook } = await openDelivered()
    const { status, body } = await api.post(`${path}/test`, {})
    assert.equal(status, 201)
    const { id, state, type, attempts, createdAt } = body.data
    assert.deepEqual([state, type, attempts], ['pending', 'webhook.test', 0])
    const sent = JSON.parse(body.data.body)
    assert.ok(Math.abs(Date.parse(sent.createdAt) - Date.parse(createdAt)) < 60_000)
    assert.deepEqual(sent, {
      id,
      type: 'webhook.test',
      createdAt: sent.createdAt,
      workspaceId,
      resource: { type: 'webhook', id: webhook.id },
      data: {},
    })
  })
  it('an ended delivery can be sent again under its id, but a pending one cannot', async () => {
    const { api, deliveries, ids } = await openDelivered('the target answered 500', undefined)
    const [waiting, failed] = ids
    const { status, body } = await api.post(`${deliveries}/${failed}/redeliver`, {})
    assert.equal(status, 200)
    assert.deepEqual([body.data.id, body.data.state, body.data.attempts], [failed, 'pending', 0])
    const refused = await api.post(`${deliveries}/${waiting}/redeliver`, {})
    assertError(refused, 409, 'The delivery is under way')
  })
  it('an unknown delivery, or one of another webhook, returns 404', async () => {
    const [own, other] = [await openDelivered(null), await openDelivered(null)]
    for (const id of [other.ids[0], randomUUID(), 'x']) {
      assertError(await own.api.get(`${own.deliveries}/${id}`), 404, NO_DELIVERY)
      assertError(await own.api.post(`${own.deliveries}/${id}/redeliver`, {}), 404, NO_DELIVERY)
    }
    const { deliveries } = (await other.api.get(other.deliveries)).body.data
    assert.deepEqual([deliveries[0].state, deliveries.length], ['delivered', 1])
  })
})

describe('access to webhooks', () => {
  it('a webhook cannot be created if no secrets key is configured', async () => {
    const { url, running } = await startWebProcess(env, { SECRETS_KEY: '' })
    after(() => running.end('SIGTERM'))
    const { api } = await open()
    const request = (body: object) =>
      fetch(`${url}${PATH}`, {
        method: 'POST',
        headers: { authorization: `Bearer ${api.key}`, 'content-type': 'application/json' },
        body: JSON.stringify(body),
      })
    assert.equal((await request({ ...MADE, url: 'x' })).status, 400)
    const refused = await request(MADE)
    assert.deepEqual([refused.status, await refused.json()], [503, { error: 'Secrets not configured' }])
    assert.deepEqual((await api.get(PATH)).body.data.webhooks, [])
  })
})
