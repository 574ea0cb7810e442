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

/** What the deletion of a conversation throws where the engine answers with this refusal. */
async function refusedWith(t: TestContext, message: string): Promise<ApiError> {
  const answer: RpcResponse = { ok: false, error: { code: 'INVALID_REQUEST', message } }
  const server = createServer((_req, res) => res.end(JSON.stringify(answer)))
  const agent = { agentId: 'x0000001', address: `127.0.0.1:${await listen(t, server)}`, status: 'running' }
  const { port } = await startTunnelServer(t)
  const client = new AgentdClient({ hostname: '127.0.0.1', port, key: AGENT_PROXY_KEY })
  t.after(() => client.close())
  return await new Conversations(client).remove(agent as Agent, ID).then(
    () => assert.fail('it was deleted'),
    (error) => {
      assert.ok(error instanceof ApiError, `${error}`)
      return error
    },
  )
}

test('a conversation that the engine writes meanwhile is deleted when the client tries again', async (t) => {
  const error = await refusedWith(t, `Session agent:main:berth:${ID} changed before deletion. Retry.`)
  assert.deepEqual([error.status, error.message], [503, 'The agent is not ready yet'])
  assert.equal(error.headers['retry-after'], '5')
})

test('a conversation that the engine does not delete for another reason fails, and says why', async (t) => {
  const error = await refusedWith(t, 'This session cannot be deleted while model selection is locked.')
  assert.deepEqual([error.status, error.message], [500, 'The conversation failed'])
  assert.match(error.headers['error-detail'] ?? '', /model selection is locked/)
})
