import { messages } from '../../errors.ts'
import type { Route } from '../../http/route.ts'
import { type AgentServices, agentRoutesOf } from '../agent-route.ts'
import { holdSocket, SINCE_UNKNOWN } from '../connections.ts'
import { command, execAnswer } from './console-schema.ts'
import { commandLimits, runCommand, streamCommand } from './exec.ts'
import { TerminalSocket } from './terminal.ts'
import { terminalQuery } from './terminal-schema.ts'

const agentRoute = agentRoutesOf('Console')

/** The console of an agent (contract 4.3). */
export function consoleRoutes({ agentd, config, connections }: AgentServices): Route[] {
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
          ...commandLimits(config),
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
    agentRoute({
      method: 'get',
      path: '/v0/agents/:agentId/console/terminal',
      id: 'openTerminal',
      summary: 'Open a terminal in an agent',
      description:
        'A WebSocket to a shell on a terminal, with the environment and the folder of console commands. Binary ' +
        'messages are bytes of the terminal, both ways, 64 KiB at most; text messages are JSON.\n\n' +
        'The client sends `{"type": "resize", "columns", "rows"}`. Berth sends `ready` (`{"terminal", "from"}`) ' +
        'first, and one of these last: `exit` (`{"code", "reason"}`), `taken` if another client connected to ' +
        'the same terminal, or `error` (`{"code", "message"}`) if it could not be opened.\n\nAfter any other ' +
        'end, connect again with `terminal`: a shell without a client is kept for 10 minutes. The position of the ' +
        'output is `from` plus the bytes received since; with `after`, only what followed is sent, out of the ' +
        'last 256 KiB. An agent has 8 terminals at most, of which a new one replaces the one that has been without ' +
        'a client for longest. A terminal without input or output for 12 hours ends.\n\nBrowsers authenticate ' +
        'with the session of the dashboard, other clients with a header. The audit has an entry for the beginning ' +
        '(`openTerminal`) and one for the end (`closeTerminal`) of each connection, and never what was typed.',
      scope: 'org:agents:write',
      callers: ['gateway', 'platform'],
      bound: 'agentSockets',
      connection: { ended: 'closeTerminal' },
      query: terminalQuery,
      success: { status: 101, description: 'The terminal opens.' },
      handle: ({ agent, principal, query, req, res }) =>
        holdSocket(
          res,
          (end) => connections.add(agent, principal, SINCE_UNKNOWN, end),
          (signal) => TerminalSocket.open({ agentd, agent, query, req, res, signal }),
        ).then(() => undefined),
    }),
  ]
}
