/** An agent as a server of the Model Context Protocol, with the official client. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { connectMcp, REVISIONS, textOf } from '../../support/mcp.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { newAgent, offerProtocols, sharedAgent, sharedStandIn, useStandIn } from './context.ts'
import { openRepository } from './repository.ts'

/** The first turn of a gateway takes seconds, and much longer on a busy machine. */
const TURN_MS = 120_000

const context = await openContext()
const agent = await sharedAgent(context)
const { api, gateway, path } = agent
await offerProtocols(agent)
const url = `${context.url}${path}/mcp`
const connect = (revision = REVISIONS[0] as (typeof REVISIONS)[number]) =>
  connectMcp(url, gateway.key, revision)
type Result = { conversationId: string; reply: string }

describe('an agent by MCP', () => {
  for (const revision of REVISIONS)
    it(`an agent by MCP ${revision} has a tool that sends it a message`, async () => {
      const client = await connect(revision)
      const { tools } = await client.listTools()
      assert.deepEqual(
        tools.map(({ name }) => name),
        ['message'],
      )
      assert.match(tools[0]?.description ?? '', new RegExp(agent.record.name))
      // A call is refused while an engine on a busy machine stalls.
      const say = (text: string, more = {}) =>
        until(
          'the agent takes the message',
          async () => {
            const message = { name: 'message', arguments: { text, ...more } }
            const result = await client.callTool(message, { timeout: TURN_MS })
            if (/not ready/.test(textOf(result))) return false
            assert.ok(!result.isError, textOf(result))
            return result
          },
          TURN_MS,
        )
      const first = await say('hello **you**')
      const { conversationId, reply } = first.structuredContent as unknown as Result
      assert.deepEqual([textOf(first), reply], ['pong: hello **you**', 'pong: hello **you**'])
      const second = (await say('and again', { conversationId })).structuredContent as unknown as Result
      assert.deepEqual(second, { conversationId, reply: 'pong: and again' })
      assert.equal((await api.get(`${path}/conversations/${conversationId}`)).body.messages.length, 4)
    })
  it('a call reports its progress, and stops the reply when it is cancelled', async () => {
    const client = await connect()
    const conversationId = randomUUID()
    const cancel = new AbortController()
    const reports: string[] = []
    const call = client.callTool(
      { name: 'message', arguments: { text: 'run and wait: sleep 300', conversationId } },
      { signal: cancel.signal, onprogress: ({ message }) => reports.push(message ?? '') },
    )
    const isReplying = async () => (await api.get(`${path}/conversations/${conversationId}`)).body.isReplying
    await until(
      'the agent replies, and the client hears of it',
      async () => (await isReplying()) && reports.length > 0,
    )
    cancel.abort()
    await assert.rejects(call)
    await until('the reply is stopped', async () => !(await isReplying()))
  })
  it('a wrong call of the tool is refused in words for a model', async () => {
    const client = await connect()
    for (const [args, message] of [
      [{}, /^text: /],
      [{ text: ' ' }, /^text: must not be empty/],
      [{ text: 'hello', conversationId: 'main' }, /^conversationId: must be a UUID/],
    ] as const) {
      const result = await client.callTool({ name: 'message', arguments: args })
      assert.equal(result.isError, true)
      assert.match(textOf(result), message)
    }
    await assert.rejects(client.callTool({ name: 'exec', arguments: {} }), /There is no tool exec/)
  })
  it('an agent that does not offer MCP returns 404', async () => {
    const other = await sharedStandIn(context)
    assertError(
      await other.api.post(`${other.path}/mcp`, { method: 'tools/list' }),
      404,
      'The agent does not offer MCP',
    )
  })
})

describe('the tools of a manifest', async () => {
  const own = await context.workspace()
  await useStandIn(context, own)
  const keeper = await newAgent(own.api, { name: 'Keeper', protocols: ['mcp'] })
  const { clone, commit, push, manifest, takenOver, git } = await openRepository(context, keeper)
  const dir = await clone()
  const title = { type: 'string', description: 'A part of the title' }
  const lend = {
    name: 'lend_book',
    description: 'Lends a book.',
    input: {
      type: 'object',
      _note: 'a comment',
      properties: { title, days: { type: 'integer', minimum: 1 } },
      required: ['title'],
    },
    command: 'cat; pwd >&2',
  }
  const tools = [
    lend,
    { name: 'fail', description: 'Fails.', command: 'echo ended; echo "no book" >&2; exit 3' },
    { name: 'count', description: 'Counts.', command: 'head -c 100000 /dev/zero | tr "\\0" x' },
  ]
  const apply = async (mcp: object | undefined) => {
    await commit(dir, { 'manifest.json': await manifest(dir, { mcp }) })
    const { problems } = await takenOver(await push(dir))
    assert.deepEqual(problems, [])
  }
  const client = await connectMcp(`${context.url}${keeper.path}/mcp`, keeper.gateway.key)
  const namesOf = async () => (await client.listTools()).tools.map(({ name }) => name)

  it('tools that a pushed manifest declares are listed next to message', async () => {
    assert.deepEqual(await namesOf(), ['message'])
    await apply({ tools })
    const [, shown, ...more] = (await client.listTools()).tools
    const { _note, ...input } = lend.input
    assert.deepEqual(
      [shown?.name, shown?.description, shown?.inputSchema],
      [lend.name, lend.description, { ...input, additionalProperties: false }],
    )
    assert.deepEqual(
      more.map(({ name, inputSchema }) => [name, inputSchema]),
      ['fail', 'count'].map((name) => [name, { type: 'object', additionalProperties: false }]),
    )
  })
  it('a declared tool runs its script with the arguments on stdin, not in a shell', async () => {
    const args = { title: '"; $(touch owned) `touch owned` \u0000 ☀', days: 3 }
    const result = await client.callTool({ name: 'lend_book', arguments: args })
    assert.deepEqual([result.isError, JSON.parse(textOf(result))], [false, args])
    const { body } = await keeper.api.post(`${keeper.path}/console/exec`, { command: 'ls owned' })
    assert.notEqual(body.exitCode, 0)
  })
  it('a declared tool refuses wrong arguments, and reports the failure of its script', async () => {
    for (const [name, args, message] of [
      ['lend_book', {}, 'title is required'],
      ['lend_book', { title: 1 }, 'title: must be a text'],
      ['lend_book', { title: 'Momo', days: 0 }, 'days out of range: must be at least 1'],
      ['lend_book', { title: 'Momo', _shelf: 1 }, '_shelf: there is no such field'],
      ['lend_book', { title: 'x'.repeat(65_536) }, 'the arguments must have at most 65536 bytes'],
      ['fail', {}, 'no book\n\nIt failed with exit code 3.'],
    ] as const) {
      const result = await client.callTool({ name, arguments: args })
      assert.deepEqual([result.isError, textOf(result)], [true, message])
    }
    const cut = await client.callTool({ name: 'count', arguments: {} })
    assert.equal(textOf(cut), `${'x'.repeat(65_536)}\nThe output was cut after 65536 bytes.`)
  })
  it('a push with an invalid tool is refused, and a manifest without tools removes them', async () => {
    await commit(dir, {
      'manifest.json': await manifest(dir, { mcp: { tools: [{ ...lend, name: 'message' }] } }),
    })
    const refused = await git(dir, 'push', 'origin', 'main')
    assert.match(refused.stderr, /remote: {3}mcp\.tools\[0\]\.name reserved/)
    await apply(undefined)
    assert.deepEqual(await namesOf(), ['message'])
  })
})
