import { z } from 'zod'
import { KEPT_LINES } from '../../../agentd/protocol.ts'
import { eventStream } from '../../http/docs/example.ts'
import { openEventStream } from '../../http/event-stream.ts'
import { like } from '../../http/fields.ts'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { formatLine, logLine, logLines, SHOWN_LINES } from '../agentd-status.ts'
import { jsonLines } from '../agentd-stream.ts'
import { askAgent } from '../engine-call.ts'

const agentRoute = agentRoutesOf('Agents')

/** Enough for a hundred of the longest lines. */
const MAX_BYTES = 4_194_304
const LINE_BYTES = 65_536
const FAILURE = 'Failed to read logs'

const followQuery = z.object({
  lines: z.coerce
    .number()
    .int()
    .min(0)
    .max(KEPT_LINES)
    .default(SHOWN_LINES)
    .describe('How many of the last lines to send first.'),
})

/** Reads and follows an agent's log, which the agent's own host also offers as a WebSocket. */
export function logRoutes({ agentd }: AgentServices): Route[] {
  return [
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/logs',
      id: 'readAgentLogs',
      summary: "Read the end of an agent's log",
      description:
        `The last ${SHOWN_LINES} lines of the gateway, the scripts and the supervisor. They outlive restarts of the ` +
        "gateway and the sandbox, but not a supervisor that is killed. On the agent's own host, a WebSocket at " +
        '`/v0/logs` sends them and then each new line: `{"timestamp", "level", "source", "message"}`.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      success: {
        description: 'The lines, as one text.',
        body: z.object({
          logs: like(
            '2026-11-21T10:58:07.120Z INFO gateway/ws listening on 127.0.0.1:18789\n2026-11-21T10:58:09.481Z INFO script/build done',
          ),
        }),
      },
      errors: [503],
      async handle({ agent, signal }) {
        const path = `/v1/logs?lines=${SHOWN_LINES}`
        const { lines } = await askAgent(agent, FAILURE, () =>
          agentd.json(agent, { path, maxBytes: MAX_BYTES, signal }, logLines),
        )
        return { body: { logs: lines.map(formatLine).join('\n') } }
      },
    }),
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/logs/stream',
      id: 'followAgentLogs',
      summary: "Follow an agent's log, as server-sent events",
      description:
        'Events `line`: the last lines, then each new one. A slow reader loses some lines, and learns how ' +
        'many. The stream ends with the sandbox; then read it again.',
      scope: 'org:agents:read',
      callers: ['gateway', 'platform'],
      bound: 'eventStreams',
      query: followQuery,
      success: { description: 'The lines, streamed.', ...eventStream(['line', logLine]) },
      errors: [503],
      async handle({ agent, query, res, signal }) {
        const path = `/v1/logs/stream?lines=${query.lines}`
        const lines = await askAgent(agent, FAILURE, () => agentd.stream(agent, { path, signal }))
        const events = openEventStream(res)
        try {
          for await (const line of jsonLines(lines, LINE_BYTES, logLine)) await events.send('line', line)
        } catch {
          // The status has been sent; the client sees the end of the stream, and reads again.
        } finally {
          lines.destroy()
          events.end()
        }
        return undefined
      },
    }),
  ]
}
