import { z } from 'zod'
import { listAgentUsage } from '../../db/statements/agents.ts'
import { type Route, route } from '../../http/route.ts'
import { nextPageHeaders, nextPageToken, paging, readPageToken } from '../../http/shapes.ts'
import { type AgentServices, agentRoute } from '../agent-route.ts'
import { askAgent, restartNeeded } from '../engine-call.ts'

/** 240 samples of some 150 bytes, and room. */
const MAX_BYTES = 131_072
const MOST_SAMPLES = 240
const FAILURE = 'Failed to read what the agent uses'

const bytes = z.number().nonnegative()
const usage = z.object({
  memoryLimitBytes: bytes.nullable().describe('Null where the agent has no limit of its own: as a process.'),
  disk: z.object({ usedBytes: bytes, limitBytes: bytes }),
  samples: z
    .array(
      z.object({
        at: z.string().max(40),
        memoryBytes: bytes.describe('Resident memory of all its processes.'),
        cpus: z.number().nonnegative().describe('Processors used on average since the sample before.'),
        diskBytes: bytes,
        processes: z.number().int().nonnegative(),
      }),
    )
    .max(MOST_SAMPLES)
    .describe('Oldest first.'),
})

const usageNow = z.object({
  agentId: z.string(),
  at: z.string().describe('When it was read.'),
  memoryBytes: bytes,
  memoryLimitBytes: usage.shape.memoryLimitBytes,
})

export function usageRoutes({ agentd, pool }: AgentServices): Route[] {
  return [
    route({
      method: 'get',
      path: '/v0/agents/usage',
      id: 'listAgentUsage',
      tag: 'Agents',
      summary: 'List how much memory each agent uses now',
      description:
        'Of those that run and answer, in the order of the list of agents and with pages as there. A worker reads it every few ' +
        'seconds of agents that measure every 15 seconds.',
      scope: 'org:agents:read',
      callers: ['workspace'],
      query: z.object(paging(1000, 1000)),
      success: {
        status: 200,
        description: 'What the agents of the workspace use.',
        body: z.object({ usage: z.array(usageNow) }),
      },
      async handle({ principal, query: { limit, pageToken } }) {
        const after = readPageToken(pageToken) ?? null
        const { rows } = await listAgentUsage.run(pool, principal.workspaceId, after, limit + 1)
        return {
          ...nextPageHeaders(nextPageToken(rows, limit)),
          body: { usage: rows.slice(0, limit).map(({ id: _, ...row }) => row) },
        }
      },
    }),
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/usage',
      id: 'readAgentUsage',
      tag: 'Agents',
      summary: 'Read what an agent uses: memory, processor, disk',
      description:
        'As it is measured in the sandbox, every 15 seconds, of the last hour; a restart of the sandbox begins anew.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: { status: 200, description: 'What it uses.', body: usage },
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
