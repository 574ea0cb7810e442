import { contractError, messages } from '../../errors.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { compareVersions, knownVersions } from '../../openclaw/install.ts'
import type { Agent } from '../agent.ts'
import { type AgentServices, agentOperationRoutes, agentRoutesOf } from '../agent-route.ts'
import {
  agentVersions,
  allVersions,
  engines,
  launched,
  restartBody,
  restarted,
  restarting,
  update,
  updateBody,
  updated,
} from './agent-schema.ts'

const TAG = 'Agents'
const route = routesOf(TAG)
const agentRoute = agentRoutesOf(TAG)
const AGENT = '/v0/agents/:agentId'
const failure = { statuses: { invalid_version: 400 } }
const ENGINES = [{ id: 'openclaw', label: 'OpenClaw' }]

/** Routes for an agent's engine: restarts, versions, scripts. */
export function runRoutes({ pool, config, operations }: AgentServices): Route[] {
  const operationRoute = agentOperationRoutes(operations, TAG)
  const versions = async () => (await knownVersions(pool, config)).available

  /** The newest version for an agent: its own if that is higher than any available one. */
  async function newestFor({ engineVersion }: Agent): Promise<string> {
    const [latest = engineVersion] = await versions()
    return compareVersions(latest, engineVersion) > 0 ? latest : engineVersion
  }

  /**
   * @param version undefined for the agent's current version.
   * @throws ApiError 400 for a version that is unavailable or cannot run: a restart would only stop the agent.
   */
  async function requireVersion(agent: Agent, version: string | undefined): Promise<void> {
    const { available, obstacles } = await knownVersions(pool, config)
    const obstacle = obstacles.get(version ?? agent.engineVersion)
    if (!obstacle && (version === undefined || available.includes(version))) return
    const detail = obstacle ?? `known are ${available.join(', ')}`
    throw contractError(400, 'invalid_version', messages.invalidVersion, detail)
  }

  return [
    operationRoute('agent.restart', {
      method: 'post',
      path: `${AGENT}/restart`,
      id: 'restartAgent',
      summary: 'Restart an agent, optionally on another version of its engine',
      description:
        'Restarts the gateway with its current secrets, channels and settings, then runs the `start` script. If ' +
        'another `version` cannot run the agent (an older one may not read a newer one’s files), the response is ' +
        '400 with the reason in `Error-Detail`, and the agent continues on its old version.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: restartBody,
      invalidBody: messages.invalidVersion,
      success: { description: 'The agent runs again.', body: restarted },
      pending: { description: 'The agent is restarting.', body: restarting },
      failure,
      async begin({ agent, body }) {
        const version = body?.version ?? undefined
        await requireVersion(agent, version)
        return {
          subject: agent,
          input: { version, rebuild: true },
          pending: { message: `Agent ${agent.agentId} is being restarted` },
          done: ({ previousProcessId }) => ({
            message: `Agent ${agent.agentId} restarted`,
            previousProcessId: previousProcessId?.toString() ?? null,
          }),
        }
      },
    }),
    operationRoute('agent.scripts', {
      method: 'post',
      path: `${AGENT}/scripts/retry`,
      id: 'retryScripts',
      summary: 'Run the scripts of an agent again',
      description:
        '`build`, then `start`. The response does not wait for them; the agent’s status shows their results.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      success: { description: 'The scripts are running.', body: launched },
      pending: { description: 'The scripts wait for work in progress.' },
      begin: async ({ agent }) => ({
        subject: agent,
        pending: { message: 'Scripts are being launched' },
        done: () => ({ message: 'Scripts launched' }),
      }),
    }),
    agentRoute({
      method: 'get',
      path: `${AGENT}/available-agent-versions`,
      id: 'listAgentVersions',
      summary: 'List the versions that an agent can restart on',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'The versions.', body: agentVersions },
      async handle({ agent }) {
        const known = await versions()
        return {
          body: {
            engine: agent.engine,
            currentVersion: agent.engineVersion,
            availableVersions: known,
            availableVersionsPerEngine: { openclaw: known },
          },
        }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${AGENT}/update`,
      id: 'getAgentUpdate',
      summary: 'Check for a newer version of an agent’s engine',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform', 'workspace'],
      success: { description: 'The versions.', body: update },
      async handle({ agent }) {
        const latestVersion = await newestFor(agent)
        const currentVersion = agent.engineVersion
        return { body: { currentVersion, latestVersion, updateAvailable: latestVersion !== currentVersion } }
      },
    }),
    operationRoute('agent.restart', {
      method: 'post',
      path: `${AGENT}/update`,
      id: 'updateAgent',
      summary: 'Restart an agent on the newest version',
      description: 'The same as a restart with that `version`; `tag` can name another version.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: updateBody,
      invalidBody: messages.invalidVersion,
      success: { description: 'The agent runs on that version.', body: updated },
      pending: { description: 'The agent is restarting.' },
      failure,
      async begin({ agent, body }) {
        const tag = body?.tag ?? 'latest'
        const newVersion = tag === 'latest' ? await newestFor(agent) : tag
        const isOwn = tag === 'latest' && newVersion === agent.engineVersion
        await requireVersion(agent, isOwn ? undefined : newVersion)
        return {
          subject: agent,
          input: { version: newVersion },
          // `latest` may mean another version when the request is repeated.
          request: `update ${agent.agentId} ${tag}`,
          pending: {
            previousVersion: agent.engineVersion,
            newVersion,
            output: `Restarting on ${newVersion}`,
          },
          done: ({ previousVersion, version }) => ({
            previousVersion,
            newVersion: version,
            output: `Restarted on ${version}`,
          }),
        }
      },
    }),
    route({
      method: 'get',
      path: '/v0/agents/engines',
      id: 'listEngines',
      summary: 'List the engines that agents can have',
      scope: 'org:agents:read',
      callers: ['workspace'],
      success: { description: 'The engines.', body: engines },
      handle: async () => ({ body: { engines: ENGINES } }),
    }),
    route({
      method: 'get',
      path: '/v0/available-agent-versions',
      id: 'listEngineVersions',
      summary: 'List the versions of engines that agents can run',
      scope: 'org:agents:read',
      callers: ['workspace'],
      success: { description: 'The versions.', body: allVersions },
      async handle() {
        const known = await versions()
        return { body: { availableVersions: known, availableVersionsPerEngine: { openclaw: known } } }
      },
    }),
  ]
}
