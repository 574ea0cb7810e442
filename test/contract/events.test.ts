import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import { insertAgentRow } from '../support/agent-row.ts'
import { assertError, type Client } from '../support/client.ts'
import { EventReader } from '../support/event-stream.ts'
import { until } from '../support/processes.ts'
import { inlineCid, openContext } from './context.ts'
import { startWebProcess } from './web-process.ts'

const EVENTS = '/v0/events'
const context = await openContext()
const { api, id: workspaceId, keyed } = await context.workspace()
const other = await context.workspace()

const open: EventReader[] = []
after(() => {
  for (const reader of open) reader.stop()
})
async function follow(...asked: Parameters<typeof EventReader.open>): Promise<EventReader> {
  const reader = await EventReader.open(...asked)
  open.push(reader)
  return reader
}
const makeGroup = async (client: Client, name: string): Promise<string> =>
  (await client.post('/v3/groups/public', { name })).body.data.id
const types = ({ events }: EventReader) => events.map(({ type }) => type)
const names = ({ events }: EventReader) => events.map(({ data }) => data.name)

describe('the event stream', () => {
  it('the event stream reports changes from now on, with all fields of an event', async () => {
    const earlier = await follow(api, 'type=group.created')
    await makeGroup(api, 'before')
    await earlier.has(1)
    const reader = await follow(api, 'type=group.*')
    const id = await makeGroup(api, 'a group')
    await api.put(`/v3/groups/public/${id}`, { name: 'renamed' })
    await api.delete(`/v3/groups/public/${id}`)
    const events = await reader.has(3)
    assert.deepEqual(types(reader), ['group.created', 'group.updated', 'group.deleted'])
    const [{ id: eventId, createdAt, ...first }] = events as [(typeof events)[number]]
    assert.deepEqual(first, {
      type: 'group.created',
      workspaceId,
      resource: { type: 'group', id },
      data: { network: 'public', name: 'a group', isPublic: false },
    })
    assert.match(eventId, /^\d{16}$/)
    assert.equal(new Date(createdAt).toISOString(), createdAt)
    assert.deepEqual(
      events.map((event) => event.id),
      events.map((event) => event.id).sort(),
    )
  })

  it('a stream from a time starts with the oldest event kept since, and an id overrides it', async () => {
    const type = 'type=group.created'
    const from = (time: string) => `${type}&from=${encodeURIComponent(time)}`
    const { api: young } = await context.workspace()
    await makeGroup(young, 'one')
    await makeGroup(young, 'two')
    // Before any Berth existed.
    const all = await follow(young, from('1970-01-01T00:00:00Z'))
    const [one, two] = await all.has(2)
    assert.deepEqual(names(all), ['one', 'two'])
    // The id that it starts with may be sent back.
    const again = await follow(young, type, { 'last-event-id': all.lastId })
    const behind = await follow(young, from('1970-01-01T00:00:00Z'), { 'last-event-id': one?.id ?? '' })
    const later = new Date(Number(BigInt(two?.id ?? 0) / 1024n) + 1)
    const none = await follow(young, from(later.toISOString()))
    const ahead = await follow(young, from('9999-12-31T23:59:59+01:00'))
    await makeGroup(young, 'three')
    await Promise.all([again.has(1), behind.has(2), none.has(1), ahead.has(1)])
    assert.deepEqual(names(behind), ['two', 'three'])
    for (const reader of [again, none, ahead]) assert.deepEqual(names(reader), ['three'])
  })

  it('the event stream reports each step of a pin', async () => {
    const reader = await follow(api, 'type=file.*,pin.*')
    const { record } = await api.pin({ cid: `${inlineCid('followed')}`, name: 'one' }, { wait: 120 })
    await api.put(`/v3/files/public/${record.id}`, { name: 'two' })
    await api.delete(`/v3/files/public/${record.id}`)
    await until('the file is deleted', () => types(reader).includes('file.deleted'))
    assert.deepEqual(
      types(reader).filter((type) => type !== 'pin.retrieving'),
      ['file.created', 'pin.pinned', 'file.updated', 'file.deleted'],
    )
    for (const { resource } of reader.events) assert.deepEqual(resource, { type: 'file', id: record.id })
    assert.deepEqual(reader.events.find(({ type }) => type === 'file.updated')?.data.changed, ['name'])
  })

  it('the event stream resumes after Last-Event-ID, which overrides ?after=', async () => {
    const reader = await follow(api, 'type=group.created')
    const from = reader.lastId
    for (const name of ['a', 'b', 'c']) await makeGroup(api, name)
    const [first, second] = await reader.has(3)
    reader.stop()
    const query = 'type=group.created'
    const byHeader = await follow(api, `${query}&after=${from}`, { 'last-event-id': second?.id ?? '' })
    const byQuery = await follow(api, `${query}&after=${first?.id}`)
    await makeGroup(api, 'd')
    await byHeader.has(2)
    await byQuery.has(3)
    assert.deepEqual(
      [names(byHeader), names(byQuery)],
      [
        ['c', 'd'],
        ['b', 'c', 'd'],
      ],
    )
  })

  it('the event stream resends more than one page of missed events, each once', async () => {
    const { lastId } = await follow(api)
    await context.sql(
      `SELECT note_event('group.created', $1, 'group', n::text, jsonb_build_object('name', n)) FROM generate_series(1, 1234) n`,
      [workspaceId],
    )
    const reader = await follow(api, `after=${lastId}&type=group.created`)
    await reader.has(1234)
    assert.deepEqual(
      names(reader),
      Array.from({ length: 1234 }, (_, i) => i + 1),
    )
  })

  it('a reader that pauses gets all events afterwards, each once and in order', async () => {
    const count = 20_000
    const names: number[] = []
    const response = await fetch(`${context.url}${EVENTS}?type=group.created`, {
      headers: { authorization: `Bearer ${api.key}` },
    })
    // More than fits into the buffers on the way, and more than the server queues for a reader.
    await context.sql(
      `SELECT note_event('group.created', $1, 'group', 'x', jsonb_build_object('n', n, 'text', repeat('x', 500)))
       FROM generate_series(1, $2::int) n`,
      [workspaceId, count],
    )
    const pending = 'SELECT FROM event_pending WHERE workspace_id = $1 LIMIT 1'
    await until('all are published', async () => (await context.sql(pending, [workspaceId])).length === 0)
    let rest = ''
    for await (const text of response.body?.pipeThrough(new TextDecoderStream()) ?? []) {
      const found = [...(rest + text).matchAll(/"data":\{"n":(\d+),/g)]
      names.push(...found.map(([, n]) => Number(n)))
      const last = found.at(-1)
      rest = (rest + text).slice(last ? last.index + last[0].length : 0)
      if (names.length >= count) break
    }
    assert.deepEqual(
      names,
      Array.from({ length: count }, (_, i) => i + 1),
    )
  })

  it('the event stream sends its position to a reader without matching events', async () => {
    const reader = await follow(api, 'type=group.created')
    const quiet = await follow(api, 'type=swap.*')
    await makeGroup(api, 'of others')
    const [event] = await reader.has(1)
    await until('the position is sent', () => BigInt(quiet.lastId) >= BigInt(event?.id ?? ''))
    assert.deepEqual(quiet.events, [])
  })

  it('the event stream is filtered by resource, and an agent includes its parts', async () => {
    const agent = await insertAgentRow({ query: context.sql }, { workspaceId, purgedAt: new Date() })
    const made = await follow(api, 'type=group.created')
    const id = await makeGroup(api, 'mine')
    await made.has(1)
    const { lastId } = await follow(api)
    const groups = await follow(api, `after=${lastId}&resource=group:${id}`)
    const agents = await follow(api, `after=${lastId}&resource=agent:${agent.agentId}`)
    await makeGroup(api, 'another')
    await api.put(`/v3/groups/public/${id}`, { name: 'still mine' })
    await context.sql(`UPDATE agent SET status = 'not_running', status_reason = 'x' WHERE id = $1`, [
      agent.id,
    ])
    await context.sql(
      `INSERT INTO agent_channel (agent_id, channel, settings) VALUES ($1, 'telegram', '{}')`,
      [agent.id],
    )
    await groups.has(1)
    await agents.has(2)
    assert.deepEqual(types(groups), ['group.updated'])
    assert.deepEqual(types(agents), ['agent.error', 'channel.created'])
  })
})

describe('access to events', () => {
  it('a key sees only events that its scopes let it read, and none of another workspace', async () => {
    const files = await follow(await keyed('org:files:read'))
    const all = await follow(api)
    await makeGroup(other.api, 'theirs')
    await makeGroup(api, 'ours')
    await api.pin({ cid: `${inlineCid('seen')}` })
    await files.has(1)
    await until('the file event has arrived', () => types(all).includes('file.created'))
    assert.ok(!types(files).includes('group.created'))
    assert.ok(!names(all).includes('theirs') && names(all).includes('ours'))
  })

  it("an agent's gateway token sees only the events of its agent", async () => {
    const [one, two] = await Promise.all(
      [1, 2].map(() => insertAgentRow({ query: context.sql }, { workspaceId, purgedAt: new Date() })),
    )
    const reader = await follow({ url: context.url, key: one?.gatewayToken }, 'type=agent.error,group.*')
    await makeGroup(api, 'not for agents')
    for (const agent of [two, one])
      await context.sql(`UPDATE agent SET status = 'not_running' WHERE id = $1`, [agent?.id])
    await reader.has(1)
    assert.deepEqual(
      reader.events.map(({ resource }) => resource.id),
      [one?.agentId],
    )
  })

  it('a stream ends when its key is revoked', async () => {
    const created = await api.post('/v3/pinata/keys', {
      keyName: 'short',
      permissions: { resources: ['org:files:read'] },
    })
    const reader = await follow({ url: context.url, key: created.body.JWT })
    await api.put(`/v3/pinata/keys/${created.body.pinata_api_key}`)
    await reader.ended()
  })
})

describe('invalid event requests', () => {
  it('an invalid Last-Event-ID returns 400', async () => {
    for (const id of ['x', '1.5', '9999999999999999999'])
      assertError(
        await api.get(EVENTS, undefined, { 'last-event-id': id }),
        400,
        /^Last-Event-ID: must be the id/,
      )
  })

  it('a position that is no longer kept, or that this database never issued, returns 410', async () => {
    const { lastId } = await follow(api)
    for (const after of ['0', '1', String(BigInt(lastId) + 10n ** 12n)]) {
      const reply = await api.get(EVENTS, { after })
      assertError(reply, 410, /^Last-Event-ID: events behind it are not kept any more/)
      assert.equal(reply.headers.get('error-code'), 'events_gone')
    }
  })
})

describe('events of several processes', () => {
  it('a reader resumes at another web process, and both send the same events in the same order', async () => {
    const web = await startWebProcess(context.env)
    after(() => web.running.end())
    const query = 'type=group.created'
    const first = await follow(api, query)
    await makeGroup(api, 'at the first')
    await first.has(1)
    const second = await follow({ url: web.url, key: api.key }, query, { 'last-event-id': first.lastId })
    const there = api.as(api.key)
    for (const [i, url] of [context.url, web.url, context.url].entries())
      await fetch(`${url}/v3/groups/public`, {
        method: 'POST',
        headers: { authorization: `Bearer ${there.key}`, 'content-type': 'application/json' },
        body: JSON.stringify({ name: `made ${i}` }),
      })
    await first.has(4)
    await second.has(3)
    assert.deepEqual(names(second), ['made 0', 'made 1', 'made 2'])
    assert.deepEqual(
      first.events.slice(1).map(({ id }) => id),
      second.events.map(({ id }) => id),
    )
  })
})
