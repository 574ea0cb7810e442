/** SIGKILL of web and worker at each step of a takeover: a new agent becomes the owner of a spare. */
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { after, before, describe } from 'node:test'
import type { CrashPoint } from '../../src/lib/crash-point.ts'
import { dockerAnswers } from '../support/docker.ts'
import { until } from '../support/processes.ts'
import { AgentWorld } from './agent-world.ts'
import { placesOf, replay } from './seed.ts'
import { tortureTest } from './suite.ts'
import { note, printSummary } from './summary.ts'

/** In the order in which a takeover passes them. */
const POINTS: { point: CrashPoint; owner: 'web' | 'worker' }[] = [
  { point: 'before-commit', owner: 'web' },
  { point: 'after-commit', owner: 'web' },
  { point: 'after-claim', owner: 'worker' },
  { point: 'agent-before-gateway', owner: 'worker' },
  { point: 'agent-after-gateway', owner: 'worker' },
  { point: 'agent-before-final-write', owner: 'worker' },
]

const runtime = (await dockerAnswers()) ? 'docker' : 'process'

describe(`a takeover of a spare under fire, as ${runtime} (${replay})`, () => {
  let agents: AgentWorld
  before(async () => {
    agents = await AgentWorld.start(runtime, { BERTH_POOL: '1' })
  })
  after(async () => {
    await agents?.stop()
    printSummary()
  })

  for (const { point, owner } of placesOf('takeover', POINTS))
    tortureTest(
      `a takeover resumes after ${owner} is killed at ${point}`,
      () => agents.world.output(),
      async () => {
        const [spare] = await agents.spares(1)
        const role = owner === 'web' ? agents.world.web : agents.world.workers[0]
        assert.ok(role)
        const mark = await agents.world.arm(role, point)
        const agentId = await agents.create()
        await until('the crash', () => existsSync(mark))
        assert.equal(agentId, spare)
        note(`takeover, ${point}: answers`, owner, runtime, await agents.answers(agentId))
        const others = await agents.spares(1)
        assert.ok(!others.includes(agentId))
        await agents.assertSettled([agentId, ...others])
        await agents.remove(agentId)
        await agents.assertSettled(others)
      },
    )
})
