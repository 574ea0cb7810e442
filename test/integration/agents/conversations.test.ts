/**
 * Conversations that their engine refuses to delete, and reply streams that end early, with an agentd that the test
 * controls.
 */
import assert from 'node:assert/strict'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { type TestContext, test } from 'node:test'
import type { Response } from 'express'
import type { RpcResponse } from '../../../agentd/protocol.ts'
import type { Agent } from '../../../src/agents/agent.ts'
import { AgentdClient } from '../../../src/agents/agentd-client.ts'
import { Conversations } from '../../../src/agents/conversations/conversations.ts'
import { ApiError } from '../../../src/errors.ts'
import { listen } from '../../support/egress.ts'
import { AGENT_PROXY_KEY, startTunnelServer } from '../../support/tunnel-server.ts'

const ID = '0d0f6b8c-6f39-4a55-9f6c-6a2a8a0a6a11'

/** Conversations with an agent whose agentd responds with `answer`. */
async function conversationsWith(
  t: TestContext,
  answer: (req: IncomingMessage, res: ServerResponse) => void,
): Promise<{ agent: Agent; conversations: Conversations }> {
  const address = `127.0.0.1:${await listen(t, createServer(answer))}`
  const { port } = await startTunnelServer(t)
  const client = new AgentdClient({ hostname: '127.0.0.1', port, key: AGENT_PROXY_KEY })
  t.after(() => client.close())
  const agent = { agentId: 'x0000001', address, status: 'running' } as Agent
  return { agent, conversations: new Conversations(client) }
}

/** The last event of a reply whose agentd stream is ended by `end`. */
async function lastEvent(t: TestContext, end: (res: ServerResponse) => void) {
  let ofAgentd: ServerResponse | undefined
  const { agent, conversations } = await conversationsWith(t, (_req, res) => {
    ofAgentd = res
    res.write('{"type":"text","item":"a","text":"x","replace":false}\n')
  })
  const web = createServer((_req, res) => {
    void conversations.converse(agent, ID, {
      text: 'hello',
      res: res as Response,
      signal: new AbortController().signal,
    })
  })
  const response = await fetch(`http://127.0.0.1:${await listen(t, web)}`)
  let text = ''
  for await (const chunk of response.body as ReadableStream<Uint8Array>) {
    if (text === '' && ofAgentd) end(ofAgentd)
    text += Buffer.from(chunk)
  }
  return text.trim().split('\n\n').at(-1)
}

for (const [what, end, event, error] of [
  [
    'a failed reply has its reason',
    (res: ServerResponse) => res.end('{"type":"end","state":"failed","error":"429 Slow down"}\n'),
    'end',
    '429 Slow down',
  ],
  [
    'a stream that agentd ends has its reason',
    (res: ServerResponse) => res.end('{"type":"error","error":"The gateway closed"}\n'),
    'error',
    'The gateway closed',
  ],
  [
    'a stream that breaks off reports it',
    (res: ServerResponse) => res.destroy(),
    'error',
    'The connection to the agent broke off',
  ],
] as const)
  test(`${what} [report: idle streams]`, async (t) => {
    const state = event === 'end' ? '"state":"failed",' : ''
    assert.equal(await lastEvent(t, end), `event: ${event}\ndata: {${state}"error":"${error}"}`)
  })

/**
 * Deletes a conversation that its engine refuses to delete the first `times` times. @returns how often the engine was
 * asked.
 */
async function remove(t: TestContext, message: string, times = Number.POSITIVE_INFINITY): Promise<number> {
  let asked = 0
  const { agent, conversations } = await conversationsWith(t, (_req, res) => {
    const refusal: RpcResponse = { ok: false, error: { code: 'INVALID_REQUEST', message } }
    res.end(JSON.stringify(asked++ < times ? refusal : { ok: true, payload: {} }))
  })
  await conversations.remove(agent, ID)
  return asked
}

const failsWith = (work: Promise<unknown>, status: number, message: string, header: [string, RegExp]) =>
  assert.rejects(work, (error) => {
    assert.ok(error instanceof ApiError, `${error}`)
    assert.deepEqual([error.status, error.message], [status, message])
    assert.match(error.headers[header[0]] ?? '', header[1])
    return true
  })

const CHANGED = `Session agent:main:berth:${ID} changed before deletion. Retry.`

test('a conversation that changed before its deletion is deleted by a second call', async (t) => {
  assert.equal(await remove(t, CHANGED, 1), 2)
})

test('a conversation that keeps changing is deleted when the client tries again', async (t) => {
  await failsWith(remove(t, CHANGED), 503, 'The agent is not ready yet', ['retry-after', /^5$/])
})

test('a conversation that cannot be deleted for another reason fails with the reason', async (t) => {
  const removed = remove(t, 'This session cannot be deleted while model selection is locked.')
  await failsWith(removed, 500, 'The conversation failed', ['error-detail', /model selection is locked/])
})
