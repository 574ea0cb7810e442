import { z } from 'zod'
import { contractError } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoute } from '../agent-route.ts'
import { formatLine, KEPT_LINES, logLines } from '../agentd-status.ts'
import { askAgent } from '../engine-call.ts'

/** A hundred of the longest lines. */
const MAX_BYTES = 4_194_304
const FAILURE = 'Failed to read logs'

/** The log of an agent. As it is written, it is a WebSocket of the agent's host. */
export function logRoutes({ agentd }: AgentServices): Route[] {
  return [
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/logs',
      id: 'readAgentLogs',
      tag: 'Agents',
      summary: "Read the end of an agent's log",
      description:
        `The last ${KEPT_LINES} lines of the gateway, of the scripts and of the supervisor. They outlive a restart of ` +
        "the gateway, and not one of the sandbox. On the agent's own host, a WebSocket at `/v0/logs` sends them " +
        'and then each new one: `{"timestamp", "level", "source", "message"}`.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: { status: 200, description: 'The lines, as one text.', body: z.object({ logs: z.string() }) },
      errors: [503],
      async handle({ agent, signal }) {
        const path = `/v1/logs?lines=${KEPT_LINES}`
        const answer = await askAgent(agent, FAILURE, () =>
          agentd.json(agent, { path, maxBytes: MAX_BYTES, signal }),
        )
        const parsed = logLines.safeParse(answer)
        if (!parsed.success) throw contractError(500, 'agent_failed', FAILURE, 'agentd answered no lines')
        return { body: { logs: parsed.data.lines.map(formatLine).join('\n') } }
      },
    }),
  ]
}
