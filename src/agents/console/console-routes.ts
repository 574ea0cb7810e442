import { messages } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoute } from '../agent-route.ts'
import { command, execAnswer } from './console-schema.ts'
import { runCommand, streamCommand } from './exec.ts'

/** The console of an agent (contract 4.3). */
export function consoleRoutes({ agentd, config }: AgentServices): Route[] {
  return [
    agentRoute({
      method: 'post',
      path: '/v0/agents/:agentId/console/exec',
      id: 'execCommand',
      tag: 'Console',
      summary: 'Run a command in an agent',
      description:
        'A shell runs it as the agent, with its environment. An exit code other than 0 is a result like any other. ' +
        'It is killed when it runs for too long, and when the client goes before its end. ' +
        'What it leaves in the background is killed with it, `nohup … &` included; `setsid … &` goes on.\n\n' +
        'With `Accept: text/event-stream` its output comes while it runs: events `stdout` and `stderr` ' +
        '(`{"text"}`), and at the end `exit` (`{"exitCode", "truncated", "timedOut", "timestamp"}`), or `error` ' +
        'where the end is not known.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'commands',
      body: command,
      invalidBody: messages.invalidCommand,
      success: { status: 200, description: 'How it ended.', body: execAnswer },
      async handle({ agent, body, req, res, signal }) {
        const execution = {
          agentd,
          agent,
          command: body,
          timeoutMs: config.BERTH_CONSOLE_SECONDS * 1000,
          outputBytes: config.BERTH_CONSOLE_OUTPUT_BYTES,
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
