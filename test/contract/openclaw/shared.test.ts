/** The agent that the tests of the suite share. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { openContext } from '../context.ts'
import { sharedAgent } from './context.ts'

const context = await openContext()

describe('the shared agent', () => {
  it('concurrent callers get the same shared agent', { timeout: 900_000 }, async () => {
    const [a, b] = await Promise.all([sharedAgent(context), sharedAgent(context)])
    assert.equal(a.agentId, b.agentId)
    const { agents } = (await context.shared.get('/v0/agents', { limit: '1' })).body
    assert.equal(agents.length, 1)
  })
})
