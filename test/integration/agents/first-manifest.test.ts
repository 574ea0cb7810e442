/** Problems with a template's manifest are shown on the agent that was created from it. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bundledTemplates } from '../../../src/agents/templates/bundled.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

describe('an agent from a template', () => {
  let world: AgentsWorld
  before(async () => {
    world = await startAgentsWorld()
  })
  after(() => world?.stop())

  it('an agent from a template starts without parts that its engine rejects, and reports them', async () => {
    const template = (await bundledTemplates()).find(({ slug }) => slug === 'assistant')
    const { id, operationId } = await world.create()
    await world.database.pool.query('UPDATE agent SET template_id = $2 WHERE id = $1', [id, template?.id])
    const { state, result } = await world.run(operationId)
    assert.equal(state, 'succeeded')
    // The stand-in engine has no tasks.
    const { problems } = result as { problems: string[] }
    assert.match(problems.join('\n'), /^tasks/m)
  })
})
