import { availableVersions, compareVersions } from '../../engine/versions.ts'
import { contractError, messages, notFound } from '../../errors.ts'
import { agentRoute, type Context, type Route, route } from '../../http/route.ts'
import type { Agent } from '../agent.ts'
import type { AgentOperation, Started } from '../operate.ts'
import type { AgentServices } from '../services.ts'
import {
  agentVersions,
  allVersions,
  engines,
  launched,
  launching,
  restartBody,
  restarted,
  restarting,
  update,
  updateBody,
  updated,
  updating,
} from './schema.ts'

const TAG = 'Agents'
const AGENT = '/v0/agents/:agentId'
const ENGINES = [{ id: 'openclaw', label: 'OpenClaw' }]

type Asked = Pick<Context<unknown, unknown, unknown>, 'prefer' | 'idempotencyKey' | 'signal'>

/** Running an agent's engine: restarts, versions, scripts (compatibility 2.5, 3.5). */
export function runRoutes({ pool, config, operations }: AgentServices): Route[] {
  const versions = () => availableVersions(pool, config)

  /** @throws ApiError 400 for a version that is not to be had. */
  async function requireVersion(version: string): Promise<void> {
    const known = await versions()
    if (known.includes(version)) return
    throw contractError(400, 'invalid_version', messages.invalidVersion, `known are ${known.join(', ')}`)
  }

  async function run(
    agent: Agent,
    kind: AgentOperation,
    input: Record<string, unknown> | undefined,
    asked: Asked & { request?: string },
  ) {
    return requireSuccess(await operations.run(agent, kind, { input, ...asked }))
  }

  return [
    agentRoute({
      method: 'post',
      path: `${AGENT}/restart`,
      id: 'restartAgent',
      tag: TAG,
      summary: 'Restart an agent, also on another version of its engine',
      description:
        'Its gateway is started again with its secrets, channels and settings as they are now, and its `start` ' +
        'script after it. Where another `version` cannot run the agent (an older one may not read what a newer one ' +
        'wrote) the answer is 400 with the reason in `Error-Detail`, and the agent runs on the version that it had.',
      scope: 'org:agents:write',
      agent: 'any',
      body: restartBody,
      invalidBody: messages.invalidVersion,
      success: { status: 200, description: 'It runs again.', body: restarted },
      otherSuccess: { status: 202, description: 'It is being restarted.', body: restarting },
      operation: true,
      async handle({ agent, body, ...asked }) {
        const version = body?.version ?? undefined
        if (version !== undefined) await requireVersion(version)
        const { finished, ...started } = await run(
          agent,
          'agent.restart',
          version ? { version } : undefined,
          asked,
        )
        const { headers } = started
        if (!finished) {
          const message = `Agent ${agent.agentId} is being restarted`
          return { status: 202, headers, body: { success: true, message, ...pending(started) } }
        }
        const previousProcessId = finished.result?.previousProcessId ?? null
        return {
          headers,
          body: { success: true, message: `Agent ${agent.agentId} restarted`, previousProcessId },
        }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${AGENT}/scripts/retry`,
      id: 'retryScripts',
      tag: TAG,
      summary: 'Run the scripts of an agent again',
      description: '`build`, then `start`. The answer does not wait for their end: the status shows them.',
      scope: 'org:agents:write',
      agent: 'any',
      success: { status: 200, description: 'They run.', body: launched },
      otherSuccess: { status: 202, description: 'They wait for what is under way.', body: launching },
      operation: true,
      async handle({ agent, ...asked }) {
        const { finished, ...started } = await run(agent, 'agent.scripts', undefined, asked)
        const { headers } = started
        if (finished) return { headers, body: { success: true, message: 'Scripts launched' } }
        const message = 'Scripts are being launched'
        return { status: 202, headers, body: { success: true, message, ...pending(started) } }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${AGENT}/available-agent-versions`,
      id: 'listAgentVersions',
      tag: TAG,
      summary: 'List the versions on which an agent can be restarted',
      scope: 'org:agents:read',
      agent: 'any',
      success: { status: 200, description: 'The versions.', body: agentVersions },
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
      tag: TAG,
      summary: 'Ask whether there is a newer version for an agent',
      scope: 'org:agents:read',
      agent: 'any',
      success: { status: 200, description: 'The versions.', body: update },
      async handle({ agent }) {
        const [latestVersion = agent.engineVersion] = await versions()
        const currentVersion = agent.engineVersion
        const updateAvailable = compareVersions(latestVersion, currentVersion) > 0
        return { body: { currentVersion, latestVersion, updateAvailable } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${AGENT}/update`,
      id: 'updateAgent',
      tag: TAG,
      summary: 'Restart an agent on the newest version',
      description: 'The same as a restart with that `version`; another one where `tag` names it.',
      scope: 'org:agents:write',
      agent: 'any',
      body: updateBody,
      invalidBody: messages.invalidVersion,
      success: { status: 200, description: 'It runs on that version.', body: updated },
      otherSuccess: { status: 202, description: 'It is being restarted.', body: updating },
      operation: true,
      async handle({ agent, body, ...asked }) {
        const [latest = agent.engineVersion] = await versions()
        const tag = body?.tag ?? 'latest'
        const newVersion = tag === 'latest' ? latest : tag
        await requireVersion(newVersion)
        // What `latest` is may be another version when the request is repeated.
        const request = `update ${agent.agentId} ${tag}`
        const { finished, ...started } = await run(
          agent,
          'agent.restart',
          { version: newVersion },
          { ...asked, request },
        )
        const { headers } = started
        if (finished) {
          const { previousVersion, version } = finished.result ?? {}
          const output = `Restarted on ${version}`
          return { headers, body: { success: true, previousVersion, newVersion: version, output } }
        }
        const answer = { success: true, previousVersion: agent.engineVersion, newVersion }
        const output = `Restarting on ${newVersion}`
        return { status: 202, headers, body: { ...answer, output, ...pending(started) } }
      },
    }),
    route({
      method: 'get',
      path: '/v0/agents/engines',
      id: 'listEngines',
      tag: TAG,
      summary: 'List the engines that agents can have',
      scope: 'org:agents:read',
      success: { status: 200, description: 'The engines.', body: engines },
      handle: async () => ({ body: { engines: ENGINES } }),
    }),
    route({
      method: 'get',
      path: '/v0/available-agent-versions',
      id: 'listEngineVersions',
      tag: TAG,
      summary: 'List the versions of engines that agents can run',
      scope: 'org:agents:read',
      success: { status: 200, description: 'The versions.', body: allVersions },
      async handle() {
        const known = await versions()
        return { body: { availableVersions: known, availableVersionsPerEngine: { openclaw: known } } }
      },
    }),
  ]
}

const pending = ({ operationId: id, state }: Pick<Started, 'operationId' | 'state'>) => ({
  operation: { id, state },
})

/** @throws ApiError as the operation ended: the contract's message, and why in `Error-Detail`. */
function requireSuccess(started: Started): Started {
  const { finished, headers } = started
  if (finished?.state === 'canceled') throw notFound(messages.noAgent)
  if (finished?.state !== 'failed') return started
  const { error_code: code, error, result } = finished
  const status = code === 'invalid_version' ? 400 : 500
  const detail = typeof result?.detail === 'string' ? result.detail : undefined
  throw contractError(status, code ?? 'internal', error ?? '', detail, { headers })
}
