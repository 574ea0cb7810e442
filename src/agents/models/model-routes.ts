/** Models that a new agent can use without a key: the operator's, and the models of servers on the agent's machine. */
import type { Config } from '../../config.ts'
import { badRequest } from '../../errors.ts'
import { type Route, routesOf } from '../../http/route.ts'
import { coalesce } from '../../lib/coalesce.ts'
import { findLocalModels, LOCAL_SERVERS } from '../../lib/net/local-models.ts'
import type { WorkerStatus } from '../../operations/worker-status.ts'
import type { AgentServices } from '../agent-route.ts'
import { models } from './model-schema.ts'

const route = routesOf('Agents')

/** Requests within this time share one search. */
const CACHE_MS = 2000

export function modelRoutes({ config, workers }: AgentServices): Route[] {
  const find = coalesce(CACHE_MS, () => findLocalModels(LOCAL_SERVERS))
  return [
    route({
      method: 'get',
      path: '/v0/agents/models',
      id: 'findModels',
      summary: 'List the models that a new agent can have without a key',
      description:
        'Whether the operator has set a model; and if agents are processes of the same machine, the models of Ollama ' +
        '(port 11434), LM Studio (1234) and llama.cpp (8080) on loopback, for the `localModel` of a new agent.',
      scope: 'org:agents:read',
      success: { description: 'The models.', body: models },
      async handle() {
        const local = (await sharesMachine(config, workers)) ? await find() : []
        return { body: { data: { hasDefault: Boolean(config.BERTH_MODEL_URL), local } } }
      },
    }),
  ]
}

/** @throws ApiError 400 if agents cannot reach servers on this machine. */
export async function requireSharedMachine(config: Config, workers: WorkerStatus): Promise<void> {
  if (await sharesMachine(config, workers)) return
  throw badRequest(
    'localModel: agents here are not processes of this machine, so they cannot reach servers on it',
  )
}

/** True if agents are processes of this machine, and so share its loopback. */
async function sharesMachine(config: Config, workers: WorkerStatus): Promise<boolean> {
  // The agent proxy runs on the agents' machine.
  if (config.BERTH_AGENT_PROXY_URL) return false
  const { parts } = await workers.read()
  return (
    parts.some(({ processes }) => processes) && !parts.some(({ docker, kubernetes }) => docker ?? kubernetes)
  )
}
