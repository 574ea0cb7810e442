import { z } from 'zod'
import type { ConfigCheck, ConfigWritten } from '../../../agentd/protocol.ts'
import { ApiError, badRequest, contractError, messages } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import type { Agent } from '../agent.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { AgentdError, type AgentdRequest } from '../agentd-client.ts'
import {
  type Answers,
  askAgent,
  callEngine,
  EngineRefusal,
  engineFailed,
  restartNeeded,
} from '../engine-call.ts'
import {
  check,
  configText,
  configToCheck,
  engineSchemaPart,
  newConfig,
  operatorKeys,
  schemaPart,
  schemaQuery,
  written,
} from './config-schema.ts'

const agentRoute = agentRoutesOf('Agent config')
const CONFIG = '/v0/agents/:agentId/config'
/** The engine checks a config in a separate process, which takes seconds. */
const CHECK_MS = 60_000
/** A config of 1 MiB with every byte escaped. */
const CONFIG_BYTES = 8_388_608

const invalidConfig = (detail: string) => contractError(400, 'bad_request', messages.invalidConfig, detail)
const changedMeanwhile = (cause?: AgentdError) =>
  new ApiError(412, 'changed_meanwhile', 'The config was changed in the meantime', { cause })
const answers: Answers = {
  bad_request: (error) => invalidConfig(`config: ${error.message}`),
  conflict: changedMeanwhile,
}
/** An agentd of Berth 0.3.0 sends no version. */
const version = z
  .string()
  .regex(/^"[\w-]{1,100}"$/)
  .optional()
const etag = (value: string | undefined) => (value === undefined ? {} : { headers: { ETag: value } })

/** The engine's own config, openclaw.json (contract 4.3). */
export function agentConfigRoutes({ agentd }: AgentServices): Route[] {
  const read = (agent: Agent, signal?: AbortSignal) =>
    ask(agent, messages.readConfigFailed, z.object({ text: z.string(), version }), {
      path: '/v1/config',
      ...(signal && { signal }),
    })
  const ask = <T>(agent: Agent, failure: string, shape: z.ZodType<T>, request: AgentdRequest): Promise<T> =>
    askAgent(agent, failure, () => agentd.json(agent, { ...request, maxBytes: CONFIG_BYTES }, shape), answers)

  return [
    agentRoute({
      method: 'get',
      path: CONFIG,
      id: 'readConfig',
      summary: "Read the engine's config",
      description:
        'Returns text with its secrets redacted; writing it back keeps them. `ETag` contains its version.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: { description: 'The config.', body: configText },
      async handle({ agent, signal }) {
        const { text, version } = await read(agent, signal)
        return { ...etag(version), body: { config: text } }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${CONFIG}/operator-keys`,
      id: 'listOperatorKeys',
      summary: 'List the keys of the config that belong to the operator',
      description: 'Each start sets these keys again. Writing a config that changes one of them is refused.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: { description: 'The keys.', body: operatorKeys },
      async handle({ agent, signal }) {
        const request = { path: '/v1/config/owned', signal }
        return { body: await ask(agent, messages.readConfigFailed, operatorKeys, request) }
      },
    }),
    agentRoute({
      method: 'get',
      path: `${CONFIG}/schema`,
      id: 'readConfigSchema',
      summary: "Read one key of the config's schema",
      description:
        'The engine’s description of a key and of those directly below it, including those of plugins.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      query: schemaQuery,
      success: { description: 'The key.', body: schemaPart },
      async handle({ agent, query }) {
        const params = { path: query.path || '.' }
        const call = { method: 'config.schema.lookup', params, shape: engineSchemaPart }
        const body = await callEngine(agentd, agent, { ...call, failure: messages.readConfigFailed }).catch(
          (error) => {
            if (!(error instanceof EngineRefusal)) throw error
            if (error.code !== 'INVALID_REQUEST') throw engineFailed(messages.readConfigFailed, error)
            throw new ApiError(404, 'not_found', 'The config has no such key', { cause: error })
          },
        )
        return { body }
      },
    }),
    agentRoute({
      method: 'put',
      path: CONFIG,
      id: 'writeConfig',
      summary: "Write the engine's config",
      description:
        'Replaces the config once the engine finds it valid; it survives restarts. Keys that belong to the ' +
        'operator are set again whatever the config says. With `If-Match: <ETag>`, writes only if that is ' +
        'still the version; otherwise 412. JSON5 comments are not kept.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      body: newConfig,
      invalidBody: messages.invalidConfig,
      success: { description: 'The config is written; `ETag` contains its new version.', body: written },
      errors: [412],
      async handle({ agent, body, req }) {
        const seen = seenVersion(req.headers['if-match'])
        // An agentd of Berth 0.3.0 would ignore the version.
        if (seen !== undefined) {
          const { version } = await read(agent)
          if (version === undefined)
            throw restartNeeded(new AgentdError('not_found', 'its configs have no version'))
          if (version !== seen) throw changedMeanwhile()
        }
        const shape = check.extend({ version })
        const { valid, output, ...now } = await ask<ConfigWritten>(agent, messages.writeConfigFailed, shape, {
          method: 'PUT',
          path: '/v1/config',
          json: { text: body.config, version: seen },
          timeoutMs: CHECK_MS,
        })
        if (!valid) throw invalidConfig(output)
        return { ...etag(now.version), body: { success: true, message: 'Config written' } }
      },
    }),
    agentRoute({
      method: 'post',
      path: `${CONFIG}/validate`,
      id: 'validateConfig',
      summary: 'Ask the engine whether a config is valid',
      description: 'Checks the current config if the body has none.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      body: configToCheck,
      invalidBody: messages.invalidConfig,
      success: { description: 'The engine’s verdict.', body: check },
      async handle({ agent, body, signal }) {
        const result: ConfigCheck = await ask(agent, messages.validationFailed, check, {
          method: 'POST',
          path: '/v1/config/validate',
          json: { text: body.config },
          timeoutMs: CHECK_MS,
          signal,
        })
        return { body: result }
      },
    }),
  ]
}

/** The version that the writer last saw; undefined if any will do. @throws ApiError 400 */
function seenVersion(header: string | undefined): string | undefined {
  if (header === undefined || header === '*') return undefined
  if (!/^"[^"]{1,100}"$/.test(header)) throw badRequest('If-Match: must be * or one strong ETag')
  return header
}
