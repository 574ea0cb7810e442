/** Conversations with an agent by the API: messages, streamed replies, stopping a reply, and stored history. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError, type Client } from '../../support/client.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { sharedAgent, whenReady } from './context.ts'

/** The first turn of a gateway takes seconds, and much longer on a busy machine. */
const TURN_MS = 120_000

const context = await openContext()
const { url } = context
const agent = await sharedAgent(context)
const { api: shared } = agent
const ALL = `${agent.path}/conversations`

interface Event {
  event: string
  data: any
}

/** All events of a stream, once it has ended. */
async function eventsOf(response: Response): Promise<Event[]> {
  assert.equal(response.headers.get('content-type'), 'text/event-stream; charset=utf-8')
  const blocks = (await response.text()).split('\n\n').filter((block) => block.startsWith('event: '))
  return blocks.map((block) => {
    const [, event = '', data = ''] = /^event: (\w+)\ndata: (.*)$/.exec(block) ?? []
    return { event, data: JSON.parse(data) }
  })
}

const ask = (id: string, path: string, text?: string, { key } = shared, signal?: AbortSignal) =>
  whenReady(() =>
    fetch(`${url}${ALL}/${id}/${path}`, {
      ...(text !== undefined && { method: 'POST', body: JSON.stringify({ text }) }),
      headers: { authorization: `Bearer ${key}` },
      signal: signal ?? AbortSignal.timeout(TURN_MS),
    }),
  )

/** Sends a message; resolves to all events of the reply. */
async function say(id: string, text: string, client: Client = shared): Promise<Event[]> {
  const response = await ask(id, 'messages', text, client)
  assert.equal(response.status, 200, await (response.ok ? '' : response.text()))
  return eventsOf(response)
}

const read = async (id: string, query: Record<string, string> = {}) =>
  (await shared.get(`${ALL}/${id}`, query)).body
const textOf = (events: Event[]) =>
  events.flatMap(({ event, data }) => (event === 'text' ? data.text : [])).join('')

describe('a conversation', () => {
  it('a conversation streams the reply, and stores it', async () => {
    const id = randomUUID()
    assert.deepEqual(await read(id), { messages: [], isReplying: false, nextOffset: null })
    const events = await say(id, 'hello **you**')
    assert.equal(textOf(events), 'pong: hello **you**')
    assert.ok(events.filter(({ event }) => event === 'text').length > 1, 'the reply came in pieces')
    assert.deepEqual(events.at(-1), { event: 'end', data: { state: 'done' } })
    const { messages, isReplying } = await read(id)
    assert.deepEqual(
      messages.map(({ role, text }: any) => [role, text]),
      [
        ['user', 'hello **you**'],
        ['assistant', 'pong: hello **you**'],
      ],
    )
    assert.equal(isReplying, false)
    const kept = events.flatMap(({ event, data }) => (event === 'message' ? [data] : []))
    assert.deepEqual(kept.at(-1), messages.at(-1))
  })
  it('a conversation reports tool calls and their results', async () => {
    const id = randomUUID()
    const events = await say(id, 'run: echo one')
    const { messages } = await read(id)
    const [asked, call, result, reply] = messages
    const tools = events.flatMap(({ event, data }) => (event === 'tool' ? [data] : []))
    assert.deepEqual(
      tools,
      ['running', 'done'].map((state) => ({ call: call.toolCalls[0].id, state })),
    )
    const said = events.findIndex(({ event, data }) => event === 'text' && data.text.startsWith('ran'))
    assert.ok(events.findLastIndex(({ event }) => event === 'tool') < said, 'the tool ended before the reply')
    assert.equal(asked.text, 'run: echo one')
    assert.equal(call.toolCalls[0].name, 'exec')
    assert.deepEqual(JSON.parse(call.toolCalls[0].arguments), { command: 'echo one' })
    assert.deepEqual([result.role, result.toolCallId, result.text], ['tool', call.toolCalls[0].id, 'one'])
    assert.equal(result.isError, false)
    assert.match(reply.text, /^ran: one/)
  })
  it('a conversation is read in pages, listed with its beginning, and deleted', async () => {
    const [older, id] = [randomUUID(), randomUUID()]
    await say(older, 'Hello?')
    for (const text of ['Which books came this week?', 'And before?']) await say(id, text)
    const last = await read(id, { limit: '2' })
    assert.deepEqual(
      last.messages.map(({ text }: any) => text),
      ['And before?', 'pong: And before?'],
    )
    const first = await read(id, { limit: '2', offset: String(last.nextOffset) })
    assert.equal(first.messages[0].text, 'Which books came this week?')
    assert.equal(first.nextOffset, null)
    const { conversations } = (await shared.get(ALL)).body
    // Other tests use the same agent, and their conversations may be newer.
    const [listed, other] = conversations.filter((one: any) => [older, id].includes(one.conversationId))
    assert.deepEqual([listed.conversationId, other.conversationId], [id, older])
    assert.match(listed.title, /Which books came this week/)
    assert.equal(listed.isReplying, false)
    assert.equal((await shared.delete(`${ALL}/${id}`)).status, 200)
    assert.deepEqual((await read(id)).messages, [])
    assert.ok((await shared.get(ALL)).body.conversations.every((one: any) => one.conversationId !== id))
    assert.equal((await shared.delete(`${ALL}/${id}`)).status, 200)
  })
  it('deleting a conversation twice at once succeeds', async () => {
    const id = randomUUID()
    await say(id, 'Hello?')
    const replies = await Promise.all([1, 2].map(() => shared.delete(`${ALL}/${id}`)))
    assert.deepEqual(
      replies.map(({ status }) => status),
      [200, 200],
    )
    assert.deepEqual((await read(id)).messages, [])
  })
  it('a conversation continues without its client, and can be followed again and stopped', async () => {
    const id = randomUUID()
    const gone = new AbortController()
    const begun = await ask(id, 'messages', 'run and wait: sleep 300', shared, gone.signal)
    assert.equal(begun.status, 200)
    await until('the agent has called the tool', async () =>
      (await read(id)).messages.some(({ toolCalls }: any) => toolCalls.length > 0),
    )
    gone.abort()
    const again = await shared.post(`${ALL}/${id}/messages`, { text: 'hello' })
    assertError(again, 409, 'The agent is still replying here: wait for the end, or stop it')
    assert.equal((await read(id)).isReplying, true)
    const following = eventsOf(await ask(id, 'events'))
    const stopped = await shared.post(`${ALL}/${id}/stop`, {})
    assert.deepEqual(stopped.body, { stopped: true })
    assert.deepEqual((await following).at(-1), { event: 'end', data: { state: 'stopped' } })
    await until('the reply has ended', async () => !(await read(id)).isReplying)
    assert.deepEqual((await shared.post(`${ALL}/${id}/stop`, {})).body, { stopped: false })
    const idle = await eventsOf(await ask(id, 'events'))
    assert.deepEqual(idle, [{ event: 'end', data: { state: 'idle' } }])
  })
})

describe('a message', () => {
  for (const [what, text] of [
    ['nothing', undefined],
    ['an empty string', ''],
  ])
    it(`a message is refused if it is ${what}`, async () => {
      const reply = await shared.post(`${ALL}/${randomUUID()}/messages`, { text })
      assert.equal(reply.status, 400)
      assert.match(reply.body.error, /^text: /)
    })
  it('a message is refused if the id of its conversation is not a UUID', async () => {
    const reply = await shared.post(`${ALL}/main/messages`, { text: 'hello' })
    assertError(reply, 400, 'conversationId: must be a UUID')
  })
})
