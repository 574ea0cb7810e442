import { z } from 'zod'
import { messages, notFound } from '../../errors.ts'
import { nextPageHeaders, PAGED_BY_HEADER, paging, readPage } from '../../http/pages.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { findAgentById, readFileManifest, toRecord } from '../agent.ts'
import { type AgentServices, agentOperationRoutes, agentRoutesOf } from '../agent-route.ts'
import { fetchLiveStatus } from '../agentd-status.ts'
import { requireChannels } from '../channels/channel-service.ts'
import { checkTelegramToken } from '../channels/telegram.ts'
import { installMissing } from '../clawhub/install.ts'
import { requireSharedMachine } from '../models/model-routes.ts'
import { readRoutes } from '../ports/port-route-store.ts'
import { attachedSecrets } from '../secrets/attachments.ts'
import { attachedSkills } from '../skills/attach.ts'
import { listSnapshots } from '../snapshots/index.ts'
import {
  agentDetail,
  agentList,
  agentStatus,
  created,
  deleted,
  metadataChange,
  metadataChanged,
  newAgent,
  notStarted,
} from './agent-schema.ts'
import { changeMetadata, deleteAgent } from './change.ts'
import { createAgent } from './create.ts'
import { listAgents, processStatus } from './read.ts'
import { requireWalls } from './walls.ts'

const TAG = 'Agents'
const route = routesOf(TAG)
const agentRoute = agentRoutesOf(TAG)
const AGENTS = '/v0/agents'
const AGENT = `${AGENTS}/:agentId`
/** How long a new agent takes to start, with a margin. */
const CREATE_MS = 60_000

/** Creates, lists, reads, changes and deletes agents (contract 4.3). */
export function lifecycleRoutes(services: AgentServices): Route[] {
  const { pool, prisma, config, agentd, operations, workers } = services
  return [
    route({
      method: 'post',
      path: AGENTS,
      id: 'createAgent',
      summary: 'Create an agent',
      description:
        'Waits up to 60 seconds for the agent to start (`Prefer` changes that), and returns the ' +
        'agent in its current state: `running`, or still `starting`; the operation shows the ' +
        'steps. If its gateway does not start, the response is 500 with the agent, which exists ' +
        'and can be restarted. An agent without a model is also `running`: `statusReason` ' +
        'explains how to give it one.\n\nWith `templateId` its first files come from a template. ' +
        'What the template’s manifest asks for (skills, tasks, routes, a model) is set up once ' +
        'the gateway runs. Secrets named in the manifest are not attached. 404 if the template or ' +
        'a skill does not exist.\n\n403 `agents_not_walled` if agents could read Berth’s keys, ' +
        'unless the operator has accepted that.\n\nA name must not have control characters, line ' +
        'breaks, characters that change the text direction, or any of < > " ` \\\\.',
      scope: 'org:agents:write',
      callers: ['workspace'],
      body: newAgent,
      success: { status: 201, description: 'The agent.', body: created },
      otherFailure: { status: 500, body: notStarted },
      errors: [404, 409, 502, 507],
      operation: true,
      async handle({ principal, body, prefer, idempotencyKey, signal }) {
        await requireWalls(workers)
        if (body.localModel) await requireSharedMachine(config, workers)
        if (Object.keys(body.channels).length > 0) requireChannels(principal.plan)
        await checkTelegramToken(config.BERTH_TELEGRAM_URL, body.channels.telegram?.botToken)
        await installMissing(services, principal, body.skillCids ?? [], signal)
        const { agent, operationId } = await createAgent(services, principal, body, {
          engineVersion: config.BERTH_ENGINE_VERSIONS[0],
          idempotencyKey,
        })
        const { finished, headers } = await operations.started('agent.provision', operationId, {
          principal,
          prefer,
          signal,
          waitMs: CREATE_MS,
        })
        const latest = await findAgentById(pool, agent.id)
        if (!latest) throw notFound(messages.noAgent)
        if (finished?.state === 'failed') {
          const body = { error: messages.gatewayFailed, agent: toRecord(latest, principal) }
          return { status: 500, headers: { ...headers, 'Error-Code': 'gateway_failed' }, body }
        }
        return { headers, body: { success: true, agent: toRecord(latest, principal) } }
      },
    }),
    route({
      method: 'get',
      path: AGENTS,
      id: 'listAgents',
      summary: 'List agents',
      description: `Oldest first. ${PAGED_BY_HEADER}`,
      scope: 'org:agents:read',
      callers: ['workspace'],
      query: z.object({ ...paging(1000, 1000) }),
      success: { description: 'The agents of the workspace.', body: agentList },
      async handle({ principal, query }) {
        const page = await readPage(query, (cursor) => listAgents(pool, principal.workspaceId, cursor))
        return {
          ...nextPageHeaders(page),
          body: {
            agents: page.items.map((agent) => toRecord(agent, principal)),
            agentLimit: principal.plan.agentLimit,
            timeCredits: null,
          },
        }
      },
    }),
    agentRoute({
      method: 'get',
      path: AGENT,
      id: 'getAgent',
      summary: 'Get an agent',
      description: 'Its description, what is attached to it, and the current state of its gateway and disk.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'The agent.', body: agentDetail },
      async handle({ agent, principal, signal }) {
        const [live, fileManifest, skills, secrets, snapshots, portForwarding] = await Promise.all([
          fetchLiveStatus(agentd, agent, signal),
          readFileManifest(prisma, agent),
          attachedSkills(pool, agent),
          attachedSecrets(prisma, agent),
          listSnapshots(prisma, agent),
          readRoutes(prisma, agent.id),
        ])
        return {
          body: {
            agent: toRecord(agent, principal, fileManifest),
            processStatus: processStatus(live, agent),
            processId: live?.gateway.pid?.toString() ?? null,
            disk: live?.disk ?? null,
            skills,
            secrets,
            snapshots,
            portForwarding,
          },
        }
      },
    }),
    agentRoute({
      method: 'patch',
      path: `${AGENT}/platform/metadata`,
      id: 'changeMetadata',
      summary: 'Change how an agent is described',
      description:
        'Omitted fields stay unchanged; null removes a value. The agent’s environment changes at its next restart.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: metadataChange,
      success: { description: 'The changed agent.', body: metadataChanged },
      async handle({ agent, principal, body }) {
        const changed = await changeMetadata({ pool, prisma }, agent, body)
        return { body: { success: true, agent: toRecord(changed, principal) } }
      },
    }),
    agentOperationRoutes(operations, TAG)('agent.delete', {
      method: 'delete',
      path: AGENT,
      id: 'deleteAgent',
      summary: 'Delete an agent with its container and files',
      description:
        'The agent is gone at once and for good; its id is never reused. The response waits until its ' +
        'container and volume are removed; 202 if that takes longer than 25 seconds.',
      scope: 'org:agents:write',
      success: { description: 'The agent is deleted.', body: deleted },
      pending: { description: 'The agent is deleted; its container is being removed.' },
      async begin({ agent }) {
        const operationId = await deleteAgent(prisma, agent)
        const body = { message: `Agent ${agent.agentId} deleted`, wasInRegistry: true, r2ObjectsDeleted: 0 }
        return { operationId, pending: body, done: () => body, failed: () => body }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${AGENT}/status`,
      id: 'getAgentStatus',
      summary: 'Get the state of an agent',
      description: 'The current state of its gateway, scripts and disk, and the skills that it lacks.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'Its state.', body: agentStatus },
      async handle({ agent, signal }) {
        const live = await fetchLiveStatus(agentd, agent, signal)
        const { run: _, ...gateway } = live?.gateway ?? { run: null }
        return {
          body: {
            agentId: agent.agentId,
            status: agent.status,
            statusReason: agent.statusReason,
            engine: agent.engine,
            agentVersion: agent.engineVersion,
            reachable: live !== undefined,
            startedAt: live?.startedAt ?? null,
            gateway: live ? gateway : null,
            scripts: live?.scripts ?? (Object.keys(agent.scripts).length > 0 ? agent.scripts : null),
            skillProblems: agent.skillProblems.map(({ name, message }) => ({ name, message })),
            disk: live?.disk ?? null,
          },
        }
      },
    }),
  ]
}
