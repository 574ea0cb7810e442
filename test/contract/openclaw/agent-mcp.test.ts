/** An agent as a server of the Model Context Protocol, with the official client. */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { assertError } from '../../support/client.ts'
import { connectMcp, REVISIONS, textOf } from '../../support/mcp.ts'
import { until } from '../../support/processes.ts'
import { openContext } from '../context.ts'
import { offerProtocols, sharedAgent, sharedStandIn } from './context.ts'

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
            return !/not ready/.test(textOf(result)) && result
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
