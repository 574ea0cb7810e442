/** What Berth answers where an engine does not delete a conversation, with an agentd that answers anything. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { type TestContext, test } from 'node:test'
import type { RpcResponse } from '../../../agentd/protocol.ts'
import type { Agent } from '../../../src/agents/agent.ts'
import { AgentdClient } from '../../../src/agents/agentd-client.ts'
import { Conversations } from '../../../src/agents/conversations/conversations.ts'
import { ApiError } from '../../../src/errors.ts'
import { listen } from '../../support/egress.ts'
import { AGENT_PROXY_KEY, startTunnelServer } from '../../support/tunnel-server.ts'

const ID = '0d0f6b8c-6f39-4a55-9f6c-6a2a8a0a6a11'

/** Deletes a conversation whose engine refuses it the first `times` times. @returns how often the engine was asked. */
async function remove(t: TestContext, message: string, times = Number.POSITIVE_INFINITY): Promise<number> {
  let asked = 0
  const server = createServer((_req, res) => {
    const refusal: RpcResponse = { ok: false, error: { code: 'INVALID_REQUEST', message } }
    res.end(JSON.stringify(asked++ < times ? refusal : { ok: true, payload: {} }))
  })
  const agent = { agentId: 'x0000001', address: `127.0.0.1:${await listen(t, server)}`, status: 'running' }
  const { port } = await startTunnelServer(t)
  const client = new AgentdClient({ hostname: '127.0.0.1', port, key: AGENT_PROXY_KEY })
  t.after(() => client.close())
  await new Conversations(client).remove(agent as Agent, ID)
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

test('a conversation that the engine has written meanwhile is deleted by a second call', async (t) => {
  assert.equal(await remove(t, CHANGED, 1), 2)
})

test('a conversation that the engine goes on writing is deleted when the client tries again', async (t) => {
  await failsWith(remove(t, CHANGED), 503, 'The agent is not ready yet', ['retry-after', /^5$/])
})

test('a conversation that the engine does not delete for another reason fails, and says why', async (t) => {
  const removed = remove(t, 'This session cannot be deleted while model selection is locked.')
  await failsWith(removed, 500, 'The conversation failed', ['error-detail', /model selection is locked/])
})
