/** Runs a command in an agent. Kills it when the client disconnects, or when its time is up. */
import type { Response } from 'express'
import type { z } from 'zod'
import type { ExecRequest } from '../../../agentd/protocol.ts'
import type { Config } from '../../config.ts'
import { contractError, messages } from '../../errors.ts'
import { type EventStream, openEventStream } from '../../http/event-stream.ts'
import { within } from '../../lib/signals.ts'
import type { Agent } from '../agent.ts'
import { type AgentdClient, AgentdError, type AgentdRequest } from '../agentd-client.ts'
import { jsonLines } from '../agentd-stream.ts'
import { type Answers, askAgent } from '../engine-call.ts'
import { type command, execEvent, execResult } from './console-schema.ts'

/** Time for agentd to report that it has killed a late command. */
const MARGIN_MS = 5000
/** One byte of output takes at most six in JSON: `\u0000`. */
const JSON_FACTOR = 6
const LINE_BYTES = 1_048_576
/** Room for agentd's own line about exhausted memory. */
const NOTE_BYTES = 1000

export interface Execution {
  agentd: AgentdClient
  agent: Agent
  command: z.output<typeof command>
  /** The command's stdin; without it, there is none. */
  input?: string
  timeoutMs: number
  /** Maximum bytes of output to keep. */
  outputBytes: number
  /** Fires when the client has disconnected. */
  signal: AbortSignal
}

/** The operator's limits of a command. */
export const commandLimits = ({ BERTH_AGENT_LIMITS: { consoleSeconds, consoleBytes } }: Config) => ({
  timeoutMs: consoleSeconds * 1000,
  outputBytes: consoleBytes,
})

/** The response if agentd refuses the command or its folder; its message names the field. */
const refused = (error: AgentdError) =>
  contractError(400, 'bad_request', messages.invalidCommand, error.message)
const answers: Answers = { bad_request: refused, not_found: refused }

function request({ command, input, timeoutMs, outputBytes, signal }: Execution): AgentdRequest {
  const json: ExecRequest = { ...command, input, timeoutMs, outputBytes }
  return { method: 'POST', path: '/v1/exec', json, timeoutMs: timeoutMs + MARGIN_MS, signal }
}

/**
 * Runs a command to its end. An exit code other than 0 is a normal result.
 * @throws ApiError 400 for a bad folder, 503 if the agent is unavailable, 500 `Execution failed`.
 */
export function runCommand(execution: Execution): Promise<z.output<typeof execResult>> {
  const { agentd, agent, outputBytes } = execution
  const maxBytes = outputBytes * JSON_FACTOR + 4096
  return askAgent(
    agent,
    messages.executionFailed,
    () => agentd.json(agent, { ...request(execution), maxBytes }, execResult),
    answers,
  )
}

/**
 * Runs a command and streams its output as server-sent events: `stdout`, `stderr`, and finally `exit`, or `error` if
 * the outcome is unknown. A slow client slows the command down.
 * @throws ApiError as {@link runCommand}, before the first byte.
 */
export async function streamCommand(execution: Execution, res: Response): Promise<void> {
  const { agentd, agent, timeoutMs, outputBytes } = execution
  const signal = within(timeoutMs + MARGIN_MS, execution.signal)
  const output = await askAgent(
    agent,
    messages.executionFailed,
    () =>
      agentd.stream(agent, {
        ...request(execution),
        signal,
        headers: { accept: 'application/x-ndjson' },
      }),
    answers,
  )
  const events = openEventStream(res)
  try {
    await writeEvents(output, outputBytes, events)
  } catch {
    // The status has been sent, so the client has disconnected or learns of the error in the stream.
    await events.send('error', { error: messages.executionFailed })
  } finally {
    output.destroy()
    events.end()
  }
}

async function writeEvents(
  output: AsyncIterable<Buffer>,
  outputBytes: number,
  events: EventStream,
): Promise<void> {
  // A byte that is not UTF-8 became U+FFFD, which takes three bytes.
  let left = outputBytes * 3 + NOTE_BYTES
  for await (const event of jsonLines(output, LINE_BYTES, execEvent)) {
    if ('exit' in event) {
      return events.send('exit', { ...event.exit, timestamp: new Date().toISOString() })
    }
    left -= Buffer.byteLength(event.text)
    if (left < 0) throw new AgentdError('bad_answer', 'agentd sent more output than was asked for')
    await events.send(event.stream, { text: event.text })
  }
  throw new AgentdError('bad_answer', "agentd's stream ended without an exit")
}
