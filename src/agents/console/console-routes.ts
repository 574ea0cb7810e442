import { messages } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { command, execAnswer } from './console-schema.ts'
import { runCommand, streamCommand } from './exec.ts'

const agentRoute = agentRoutesOf('Console')

/** The console of an agent (contract 4.3). */
export function consoleRoutes({ agentd, config }: AgentServices): Route[] {
  return [
    agentRoute({
      method: 'post',
      path: '/v0/agents/:agentId/console/exec',
      id: 'execCommand',
      summary: 'Run a command in an agent',
      description:
        'A shell runs it as the agent, with the agent’s environment. An exit code other than 0 is a normal ' +
        'result. The command is killed when it runs too long, and when the client disconnects before it ' +
        'ends. Its background processes are killed with it, including `nohup … &`; `setsid … &` keeps ' +
        'running.\n\nWith `Accept: text/event-stream` the output arrives while it runs: events `stdout` ' +
        'and `stderr` (`{"text"}`), then `exit` (`{"exitCode", "truncated", "timedOut", "timestamp"}`), or ' +
        '`error` if the outcome is unknown.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'commands',
      body: command,
      invalidBody: messages.invalidCommand,
      success: { description: 'How the command ended.', body: execAnswer },
      async handle({ agent, body, req, res, signal }) {
        const execution = {
          agentd,
          agent,
          command: body,
          timeoutMs: config.BERTH_AGENT_LIMITS.consoleSeconds * 1000,
          outputBytes: config.BERTH_AGENT_LIMITS.consoleBytes,
          signal,
        }
        if (req.accepts(['json', 'text/event-stream']) === 'text/event-stream') {
          await streamCommand(execution, res)
          return undefined
        }
        const result = await runCommand(execution)
        return { body: { ...result, command: body.command, timestamp: new Date().toISOString() } }
      },
    }),
  ]
}
