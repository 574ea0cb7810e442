/** Commands in an agent, and its log. */
import { RequestError, serverEvents, unwrap } from '../../../typescript/src/index.ts'
import { count } from '../arguments.ts'
import { command } from '../command.ts'
import { AdvisedError, EXIT } from '../errors.ts'
import { agentIdOf } from '../find.ts'
import { streamOf } from '../stream.ts'
import { harmless, harmlessLines, isTerminal, paint } from '../terminal.ts'

export const consoleCommands = [
  command({
    name: 'agents exec',
    summary: 'run a command in an agent; the exit code is the command’s',
    usage: '<agent> <command...>',
    options: { cwd: { about: 'the folder to run it in', value: 'path' } },
    isOpenEnded: true,
    more: `A single word is a line for the agent's shell; several words are passed on unchanged.

  berth agents exec Researcher 'ls workspace | wc -l'
  berth agents exec Researcher python3 -c 'print(1 + 1)'`,
    async run({ berth, args: [named, ...words], options: { cwd }, json, signal }) {
      const agentId = await agentIdOf(berth, named)
      const line = words.length === 1 ? (words[0] ?? '') : words.map(quote).join(' ')
      const body = await unwrap(
        berth.POST('/v0/agents/{agentId}/console/exec', {
          params: { path: { agentId } },
          body: { command: line, ...(cwd && { cwd }) },
          headers: { accept: 'text/event-stream' },
          parseAs: 'stream',
          signal,
        }),
      )
      const said = { stdout: '', stderr: '' }
      for await (const { name, data } of serverEvents(streamOf(body))) {
        const event = JSON.parse(data)
        if (name === 'error') throw new RequestError(500, event.error)
        if (name === 'exit') {
          process.exitCode = event.exitCode
          if (event.truncated) console.error('the output was longer than Berth passes on')
          if (event.timedOut) console.error(`the command was killed: it ran too long`)
          return json ? { data: { ...said, ...event }, text: '' } : undefined
        }
        if (name !== 'stdout' && name !== 'stderr') continue
        if (json) said[name] += event.text
        else process[name].write(event.text)
      }
      throw new AdvisedError('the connection ended before the command did', 'its outcome is unknown')
    },
  }),
  command({
    name: 'agents shell',
    summary: 'open a terminal in an agent; the exit code is the shell’s',
    usage: '<agent>',
    more: `All keys go to the agent: Ctrl-C interrupts its programs, and Ctrl-D or exit ends the shell. If the
connection is lost, berth connects again; the shell waits for 10 minutes.`,
    async run({ berth, target, args: [named = ''] }) {
      if (!isTerminal(process.stdin) || !isTerminal())
        throw new AdvisedError(
          'this is not a terminal',
          `run a command instead: berth agents exec ${named} '…'`,
          EXIT.usage,
        )
      if (typeof WebSocket === 'undefined')
        throw new AdvisedError(`Node ${process.versions.node} has no WebSocket`, 'install Node 22 or newer')
      const agentId = await agentIdOf(berth, named)
      // A refused WebSocket has no reason.
      await unwrap(
        berth.GET('/v0/agents/{agentId}/console/terminal', { params: { path: { agentId } } }),
      ).catch((error) => {
        if (!(error instanceof RequestError && error.status === 426)) throw error
      })
      const { joinTerminal } = await import('../remote-terminal.ts')
      const end = await joinTerminal({
        url: `${target.url.replace(/^http/, 'ws')}/v0/agents/${agentId}/console/terminal`,
        headers: { authorization: `Bearer ${target.key}` },
      })
      if ('problem' in end) throw new AdvisedError(end.problem, adviceOf(end.code, agentId), exitOf(end.code))
      if (end.reason) console.error(`the terminal was closed: ${end.reason}`)
      process.exitCode = end.code
      return undefined
    },
  }),
  command({
    name: 'agents logs',
    summary: 'print the end of an agent’s log, or follow it',
    usage: '<agent>',
    options: {
      follow: { about: 'print new lines as they arrive', short: 'f' },
      lines: { about: 'how many lines; default 100', value: 'count', short: 'n' },
    },
    async run({ berth, args, options, json, signal }) {
      const agentId = await agentIdOf(berth, args[0])
      const path = { agentId }
      const lines = count(options.lines, 100)
      if (!options.follow) {
        const data = await unwrap(berth.GET('/v0/agents/{agentId}/logs', { params: { path } }))
        const all = harmlessLines(data.logs).trimEnd().split('\n')
        return { data, text: all.slice(-lines).join('\n') }
      }
      const params = { path, query: { lines } }
      const body = await unwrap(
        berth.GET('/v0/agents/{agentId}/logs/stream', { params, parseAs: 'stream', signal }),
      )
      for await (const { name, data } of serverEvents(streamOf(body)))
        if (name === 'line') console.log(json ? data : lineText(JSON.parse(data)))
      throw new AdvisedError('the log ended: the agent stopped', `berth agents show ${agentId}`)
    },
  }),
]

function adviceOf(code: string, agentId: string): string {
  if (code === 'restart_needed') return `berth agents restart ${agentId}`
  if (code === 'busy') return 'leave another terminal of the agent first'
  if (code === 'refused') return 'get a key that works there: berth login'
  if (code === 'taken') return `berth agents shell ${agentId} opens a new one`
  return `berth agents show ${agentId}`
}

const exitOf = (code: string): number =>
  code === 'refused'
    ? EXIT.signIn
    : ['busy', 'agent_not_ready', 'lost'].includes(code)
      ? EXIT.unavailable
      : EXIT.failed

interface Line {
  timestamp: string
  level: string
  source: string
  message: string
}

const LEVELS: Record<string, 'red' | 'yellow' | 'dim'> = {
  error: 'red',
  fatal: 'red',
  warn: 'yellow',
  debug: 'dim',
}

function lineText({ timestamp, level, source, message }: Line): string {
  const text = harmless(message)
  const style = LEVELS[level]
  return `${paint('dim', timestamp)} ${paint('dim', source)} ${style ? paint(style, text) : text}`
}

/** A word for a POSIX shell. */
const quote = (word: string): string =>
  /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`
