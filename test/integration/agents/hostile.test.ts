/** An agentd that lies: the agent owns it and may have replaced it with anything. */
import assert from 'node:assert/strict'
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import { it } from 'node:test'
import type { AgentStatus, StartRequest } from '../../../agentd/protocol.ts'
import { findAgent } from '../../../src/agents/agent.ts'
import type { Run } from '../../../src/operations/handler.ts'
import { readSecretsAndChannels, startGateway } from '../../../workers/agents/gateway.ts'
import { listen } from '../../support/egress.ts'
import { until } from '../../support/processes.ts'
import { startAgentsWorld } from './world.ts'

const script = { state: 'pending', exitCode: null, startedAt: null, finishedAt: null } as const

it('an agentd that reports news all the time is polled at a limited rate', async (t) => {
  const world = await startAgentsWorld()
  t.after(() => world.stop())
  const { agentId, operationId } = await world.create()
  const agent = await findAgent(world.database.pool, agentId)
  assert.ok(agent)
  let asked = 0
  let run = ''
  const port = await listen(
    t,
    createServer(async (req, res) => {
      if (req.method === 'PUT') {
        run = ((await json(req)) as StartRequest).run
        return void res.end('{}')
      }
      const gateway = {
        run,
        pid: null,
        restarts: 0,
        exitCode: null,
        reason: null,
        outOfMemory: null,
        lastLines: [],
      }
      const status: AgentStatus = {
        agentId,
        version: ++asked,
        epoch: 1,
        startedAt: new Date().toISOString(),
        gateway: { state: 'starting', ...gateway },
        scripts: { build: script, start: script },
        disk: { usedBytes: 0, limitBytes: 1, hardLimit: false },
        taskRuns: 0,
        memory: null,
      }
      res.end(JSON.stringify(status))
    }),
  )
  const over = new AbortController()
  const underWay = {
    operation: { id: operationId },
    input: {},
    signal: over.signal,
    report: async () => {},
  } as unknown as Run
  const { request } = await readSecretsAndChannels(world.services, underWay, agent, '2026.1.1')
  const target = { agentId, address: `127.0.0.1:${port}` }
  const started = startGateway(world.services, underWay, agent, target, { ...request, scripts: 'start' })
  const refused = assert.rejects(started)
  const began = performance.now()
  await until('it is asked often', () => asked > 10)
  const ms = performance.now() - began
  over.abort()
  await refused
  assert.ok(ms > 500, `asked ten times in ${ms} ms`)
})
