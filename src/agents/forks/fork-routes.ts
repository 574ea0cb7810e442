import { contractError, messages, notFound } from '../../errors.ts'
import type { Principal } from '../../http/principal.ts'
import type { Route } from '../../http/route.ts'
import type { Asked } from '../../operations/operations.ts'
import { findAgentById, toRecord } from '../agent.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { requireWalls } from '../lifecycle/walls.ts'
import { type Fork, forkAgent } from './fork.ts'
import { type Forked, forkBody, forked } from './fork-schema.ts'

const agentRoute = agentRoutesOf('Agents')
/** As long as a new agent may take. */
const WAIT_MS = 60_000

type Waiting = Pick<Asked, 'prefer' | 'signal'> & { deadline: number }

/** Forks agents. */
export function forkRoutes(services: AgentServices): Route[] {
  const { pool, config, operations, workers } = services

  /** The fork as it is once its start has ended, or at the deadline. */
  async function follow(fork: Fork, principal: Principal, { prefer, signal, deadline }: Waiting) {
    if (!('agent' in fork)) return { entry: fork, headers: {}, isStarted: true }
    const waitMs = Math.max(0, Math.ceil(deadline - performance.now()))
    const wait = { principal, prefer: { ...prefer, waitMs }, signal }
    const { operation, finished, headers } = await operations.started(
      'agent.provision',
      fork.operationId,
      wait,
    )
    const latest = await findAgentById(pool, fork.agent.id)
    const entry: Forked['forks'][number] = latest
      ? {
          agent: toRecord(latest, principal),
          operation,
          ...(finished?.state === 'failed' && { error: messages.gatewayFailed, code: 'gateway_failed' }),
        }
      : { error: messages.noAgent, code: 'not_found' }
    return { entry, headers, isStarted: finished !== undefined }
  }

  return [
    agentRoute({
      method: 'post',
      path: '/v0/agents/:agentId/fork',
      id: 'forkAgent',
      summary: 'Fork an agent',
      description:
        'Makes new agents in the same workspace with this one’s workspace, config, skills and tasks, which are paused. ' +
        'Secrets are attached by reference; its own egress policy, model budget and pause of models are copied. ' +
        'Channels, domains, ports, conversations and devices are not; ids and tokens are new.\n\nSaves the agent ' +
        'first if it runs. An agent that does not run is forked as it was last saved; 409 if it never was.\n\nWaits up to ' +
        '60 seconds for the forks to start (`Prefer` changes that). One entry per fork: beyond the plan’s limit, ' +
        'entries have `agent_limit`; 403 if none can be made. `Operation-Id` names the first fork’s operation.',
      scope: 'org:agents:write',
      body: forkBody,
      success: { status: 201, description: 'The start of each fork has ended.', body: forked },
      otherSuccess: { status: 202, description: 'Some forks are still starting.', body: forked },
      errors: [404, 409],
      operation: true,
      async handle({ agent, principal, body, prefer, idempotencyKey, signal }) {
        if (config.BERTH_SNAPSHOT_NETWORK === 'none')
          throw contractError(400, 'storage_not_configured', messages.storageNotConfigured)
        await requireWalls(workers)
        const forks = await forkAgent(services, principal, agent, body, idempotencyKey)
        operations.wake()
        const waiting = { prefer, signal, deadline: performance.now() + (prefer.waitMs ?? WAIT_MS) }
        const followed = []
        for (const fork of forks) followed.push(await follow(fork, principal, waiting))
        const first = followed[0]
        if (!first) throw notFound(messages.noAgent)
        return {
          status: followed.every(({ isStarted }) => isStarted) ? 201 : 202,
          headers: first.headers,
          body: { success: true, forks: followed.map(({ entry }) => entry) },
        }
      },
    }),
  ]
}
