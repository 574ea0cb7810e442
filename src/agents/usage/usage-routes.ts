import { z } from 'zod'
import { listAgentUsage } from '../../db/statements/agents.ts'
import { agentId, timestamp, withExample } from '../../http/fields.ts'
import { nextPageHeaders, paging, readPage } from '../../http/pages.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { askAgent, restartNeeded } from '../engine-call.ts'

const TAG = 'Agents'
const route = routesOf(TAG)
const agentRoute = agentRoutesOf(TAG)

/** 240 samples of about 150 bytes, plus a margin. */
const MAX_BYTES = 131_072
const MAX_SAMPLES = 240
const FAILURE = 'Failed to read what the agent uses'

const bytes = z.number().nonnegative()
const usage = z.object({
  memoryLimitBytes: bytes
    .nullable()
    .describe('Null if the agent has no limit of its own because it runs as a process.'),
  disk: z.object({ usedBytes: bytes, limitBytes: bytes }),
  samples: z
    .array(
      z.object({
        at: timestamp.max(40),
        memoryBytes: bytes.describe('Resident memory of all its processes.'),
        cpus: z
          .number()
          .nonnegative()
          .describe('Average number of processors used since the previous sample.'),
        diskBytes: bytes,
        processes: withExample(z.number().int().nonnegative(), 9),
      }),
    )
    .max(MAX_SAMPLES)
    .describe('Oldest first.'),
})

const usageNow = z.object({
  agentId,
  at: timestamp.describe('When it was read.'),
  memoryBytes: bytes,
  memoryLimitBytes: usage.shape.memoryLimitBytes,
})

export function usageRoutes({ agentd, pool }: AgentServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/agents/usage',
      id: 'listAgentUsage',
      summary: 'List how much memory each agent uses now',
      description:
        'Only agents that run and respond, ordered and paged like the list of agents. Agents measure every ' +
        '15 seconds; a worker reads them every few seconds.',
      scope: 'org:agents:read',
      callers: ['workspace'],
      query: z.object(paging(1000, 1000)),
      success: {
        description: 'The usage of the workspace’s agents.',
        body: z.object({ usage: z.array(usageNow) }),
      },
      async handle({ principal: { workspaceId }, query }) {
        const page = await readPage(query, async ({ after, limit }) => {
          return (await listAgentUsage.run(pool, workspaceId, after ?? null, limit)).rows
        })
        return { ...nextPageHeaders(page), body: { usage: page.items.map(({ id: _, ...row }) => row) } }
      },
    }),
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/usage',
      id: 'readAgentUsage',
      summary: 'Read what an agent uses: memory, processor, disk',
      description:
        'Measured in the sandbox every 15 seconds, for the last hour; a restart of the sandbox clears it.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: { description: 'Its usage.', body: usage },
      errors: [409, 503],
      async handle({ agent, signal }) {
        const body = await askAgent(
          agent,
          FAILURE,
          () => agentd.json(agent, { path: '/v1/usage', maxBytes: MAX_BYTES, signal }, usage),
          { not_found: restartNeeded },
        )
        return { body }
      },
    }),
  ]
}
