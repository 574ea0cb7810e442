/** Limits of the free plan (contract 7.1, 8), and the rate limit of an agent's tokens. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError, type Reply } from '../../support/client.ts'
import { openContext } from '../context.ts'
import { insertAgent } from './rows.ts'

const context = await openContext()
const { anonymous, workspace } = context

describe('the free plan', () => {
  it('the free plan allows one agent', async () => {
    const free = await workspace('free')
    assert.equal((await free.api.get('/v0/agents')).body.agentLimit, 1)
    await insertAgent(context, free)
    const reply = await free.api.post('/v0/agents', { name: 'Second' })
    assertError(reply, 403, 'Agent limit reached')
    assert.equal((await free.api.get('/v0/agents')).body.agents.length, 1)
  })
  it("the free plan has no channels, not even by the agent's own token", async () => {
    const free = await workspace('free')
    const { path, gateway } = await insertAgent(context, free)
    for (const client of [free.api, gateway]) {
      const reply = await client.post(`${path}/channels/telegram`, { botToken: '1:x' })
      assertError(reply, 403, 'Channels are not part of the free plan')
    }
  })
})

describe("an agent's tokens", () => {
  const left = ({ headers }: Reply) => Number(headers.get('ratelimit-remaining'))

  it("an agent's tokens share one rate limit, apart from the keys of the workspace", async () => {
    const free = await workspace('free')
    const [agent, sibling] = [await insertAgent(context, free), await insertAgent(context, free)]
    const whoami = `${agent.path}/platform/whoami`
    const minted = await agent.gateway.post(`${agent.path}/platform/token`, {})
    assert.equal(minted.headers.get('ratelimit-limit'), '60')
    assert.equal(left(minted), 59)
    assert.equal(left(await anonymous.as(minted.body.token).get(whoami)), 58)
    assert.equal(left(await agent.gateway.get(whoami)), 57)
    assert.equal(left(await sibling.gateway.get(`${sibling.path}/platform/whoami`)), 59)
    assert.equal(left(await free.api.get(whoami)), 59)
  })
})
