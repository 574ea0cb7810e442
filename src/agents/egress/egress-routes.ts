import { z } from 'zod'
import { readEgressHosts } from '../../db/statements/egress.ts'
import { like } from '../../http/fields.ts'
import { pageOf, paging, readPage, toPage } from '../../http/pages.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import {
  agentPolicyRecord,
  changePolicy,
  policyChange,
  policyRecord,
  readAgentPolicy,
  readWorkspacePolicy,
} from './policies.ts'

const TAG = 'Egress'
const route = routesOf(TAG)
const agentRoute = agentRoutesOf(TAG)
const OF_WORKSPACE = '/v0/egress'
const OF_AGENT = '/v0/agents/:agentId/egress'
const APPLIES =
  'It applies within a second, without a restart; connections that it forbids are cut. Models are called through the ' +
  'model gateway, which no policy closes.'

const hostRecord = z.object({
  host: like('api.example.com'),
  requests: like(12).describe('Requests and tunnels that passed.'),
  denied: like(0).describe('Those that the policy refused.'),
  bytesSent: like(4_096).describe('By the agent.'),
  bytesReceived: like(65_536),
  lastDay: like('2026-11-23'),
})

/** Where agents may connect to, and where they do. */
export function egressRoutes({ pool, prisma }: AgentServices): Route[] {
  const ofWorkspace = {
    description: 'The policy.',
    body: z.object({ data: policyRecord }),
  }
  const ofAgent = { description: 'The policy that applies.', body: z.object({ data: agentPolicyRecord }) }
  return [
    route({
      method: 'get',
      path: OF_WORKSPACE,
      id: 'getEgressDefault',
      summary: 'Get the egress policy of agents without one of their own',
      scope: 'org:agents:read',
      success: ofWorkspace,
      async handle({ principal: { workspaceId } }) {
        return { body: { data: await readWorkspacePolicy(prisma, workspaceId) } }
      },
    }),
    route({
      method: 'put',
      path: OF_WORKSPACE,
      id: 'setEgressDefault',
      summary: 'Replace the egress policy of agents without one of their own',
      description: APPLIES,
      scope: 'org:agents:write',
      body: policyChange,
      success: ofWorkspace,
      async handle({ principal: { workspaceId }, body }) {
        await changePolicy(prisma, { workspaceId, agentId: null }, body)
        return { body: { data: await readWorkspacePolicy(prisma, workspaceId) } }
      },
    }),
    route({
      method: 'delete',
      path: OF_WORKSPACE,
      id: 'removeEgressDefault',
      summary: 'Remove the egress policy of agents without one of their own',
      description: 'They may then reach every public host.',
      scope: 'org:agents:write',
      success: ofWorkspace,
      async handle({ principal: { workspaceId } }) {
        await changePolicy(prisma, { workspaceId, agentId: null }, null)
        return { body: { data: await readWorkspacePolicy(prisma, workspaceId) } }
      },
    }),
    agentRoute({
      method: 'get',
      path: OF_AGENT,
      id: 'getEgress',
      summary: 'Get the egress policy that applies to an agent',
      scope: 'org:agents:read',
      success: ofAgent,
      async handle({ agent }) {
        return { body: { data: await readAgentPolicy(pool, agent) } }
      },
    }),
    agentRoute({
      method: 'put',
      path: OF_AGENT,
      id: 'setEgress',
      summary: 'Replace an agent’s egress policy',
      description: APPLIES,
      scope: 'org:agents:write',
      body: policyChange,
      success: ofAgent,
      async handle({ agent, body }) {
        await changePolicy(prisma, { workspaceId: agent.workspaceId, agentId: agent.id }, body)
        return { body: { data: await readAgentPolicy(pool, agent) } }
      },
    }),
    agentRoute({
      method: 'delete',
      path: OF_AGENT,
      id: 'removeEgress',
      summary: 'Remove an agent’s own egress policy',
      description: 'The workspace’s policy then applies.',
      scope: 'org:agents:write',
      success: ofAgent,
      async handle({ agent }) {
        await changePolicy(prisma, { workspaceId: agent.workspaceId, agentId: agent.id }, null)
        return { body: { data: await readAgentPolicy(pool, agent) } }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${OF_AGENT}/hosts`,
      id: 'listEgressHosts',
      summary: 'List the hosts that an agent has asked for',
      description:
        'By name. Counts are added up over the days in `days`, and are some seconds old. After a failure of an agent proxy ' +
        'they may miss, or count twice, what passed in its last second. A day counts at most 500 hosts one by one; ' +
        '`(others)` are the rest.',
      scope: 'org:agents:read',
      query: z.object({
        ...paging(100, 1000),
        days: z
          .string()
          .regex(/^\d{1,2}$/, 'must be a whole number from 1 to 31')
          .transform(Number)
          .pipe(z.number().min(1).max(31))
          .default(7)
          .describe('Today and the days before it, in UTC.'),
      }),
      success: { description: 'The hosts.', body: pageOf('hosts', hostRecord) },
      async handle({ agent, query: { days, ...query } }) {
        const first = new Date(Date.now() - (days - 1) * 86_400_000).toISOString().slice(0, 10)
        const page = await readPage(
          query,
          async ({ after, limit }) =>
            (await readEgressHosts.run(pool, agent.id, first, after ?? '', limit)).rows,
          { placeOf: ({ host }) => host, isPlace: (text) => /^[\w.:()-]{1,300}$/.test(text) },
        )
        return { body: toPage('hosts', page) }
      },
    }),
  ]
}
