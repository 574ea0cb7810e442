/** Problems with the manifest of a template are shown where its agent was made. */
import assert from 'node:assert/strict'
import { after, before, describe, it } from 'node:test'
import { bundledTemplates } from '../../../src/agents/templates/bundled.ts'
import { type AgentsWorld, startAgentsWorld } from './world.ts'

describe('an agent of a template', () => {
  let world: AgentsWorld
  before(async () => {
    world = await startAgentsWorld()
  })
  after(() => world?.stop())

  it('an agent of a template comes up without what its engine refuses, and says so', async () => {
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
