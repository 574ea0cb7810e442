/** Models that a new agent can have without a key: the operator's, and those of servers on its own machine. */
import type { Config } from '../../config.ts'
import { badRequest } from '../../errors.ts'
import { type Route, route } from '../../http/route.ts'
import { findLocalModels, LOCAL_SERVERS } from '../../lib/net/local-models.ts'
import { shared } from '../../lib/shared.ts'
import type { WorkerStatus } from '../../operations/worker-status.ts'
import type { AgentServices } from '../agent-route.ts'
import { models } from './model-schema.ts'

/** Requests of that time share one look at the machine. */
const LOOK_MS = 2000

export function modelRoutes({ config, workers }: AgentServices): Route[] {
  const look = shared(LOOK_MS, () => findLocalModels(LOCAL_SERVERS))
  return [
    route({
      method: 'get',
      path: '/v0/agents/models',
      id: 'findModels',
      tag: 'Agents',
      summary: 'List the models that a new agent can have without a key',
      description:
        'The operator’s, and those of Ollama (port 11434), LM Studio (1234) and llama.cpp (8080) on loopback, where agents ' +
        'are processes of the same machine. `localModel` of a new agent takes one of these.',
      scope: 'org:agents:read',
      success: { status: 200, description: 'The models.', body: models },
      async handle() {
        const local = (await sharesMachine(config, workers)) ? await look() : []
        return { body: { data: { hasDefault: config.BERTH_MODEL_URL !== undefined, local } } }
      },
    }),
  ]
}

/** @throws ApiError 400 where agents cannot reach servers of their machine. */
export async function requireSharedMachine(config: Config, workers: WorkerStatus): Promise<void> {
  if (await sharesMachine(config, workers)) return
  throw badRequest('localModel: agents here are not processes of this machine, and reach no server on it')
}

/** Whether agents are processes of this very machine: its loopback is theirs then. */
async function sharesMachine(config: Config, workers: WorkerStatus): Promise<boolean> {
  // The agent proxy runs beside the agents.
  if (config.BERTH_AGENT_PROXY_URL) return false
  const { parts } = await workers.read()
  return (
    parts.some(({ processes }) => processes) && !parts.some(({ docker, kubernetes }) => docker ?? kubernetes)
  )
}
