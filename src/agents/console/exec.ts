/** Running a command in an agent. It is killed when the client goes, and after the time that a command has. */
import type { Response } from 'express'
import type { z } from 'zod'
import type { ExecRequest } from '../../../agentd/protocol.ts'
import { contractError, messages } from '../../errors.ts'
import { type EventStream, openEventStream } from '../../http/event-stream.ts'
import type { Agent } from '../agent.ts'
import { type AgentdClient, AgentdError, type AgentdRequest } from '../agentd-client.ts'
import { jsonLines } from '../agentd-stream.ts'
import { type Answers, askAgent } from '../engine-call.ts'
import { type command, execEvent, execResult } from './console-schema.ts'

/** agentd kills a command that is late, and then has this long to say so. */
const MARGIN_MS = 5000
/** A byte of output is at most six in JSON: `\u0000`. */
const JSON_FACTOR = 6
const LINE_BYTES = 1_048_576
/** Room for agentd's own line, which says that memory ran out. */
const NOTE_BYTES = 1000

export interface Execution {
  agentd: AgentdClient
  agent: Agent
  command: z.output<typeof command>
  timeoutMs: number
  /** Output that is kept. */
  outputBytes: number
  /** Fires when the client has gone. */
  signal: AbortSignal
}

/** The answer if agentd refuses the command or its folder; its message names the field. */
const refused = (error: AgentdError) =>
  contractError(400, 'bad_request', messages.invalidCommand, error.message)
const answers: Answers = { bad_request: refused, not_found: refused }

function request({ command, timeoutMs, outputBytes, signal }: Execution): AgentdRequest {
  const json: ExecRequest = { ...command, timeoutMs, outputBytes }
  return { method: 'POST', path: '/v1/exec', json, timeoutMs: timeoutMs + MARGIN_MS, signal }
}

/**
 * Runs a command to its end. An exit code other than 0 is a result like any other.
 * @throws ApiError 400 for a bad folder, 503 when the agent is not there, 500 `Execution failed`.
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
 * Runs a command and writes what it says as server-sent events while it does: `stdout`, `stderr`, and `exit` at the
 * end, or `error` where the end is not known. A slow client slows the command down.
 * @throws ApiError as {@link runCommand}, before the first byte.
 */
export async function streamCommand(execution: Execution, res: Response): Promise<void> {
  const { agentd, agent, timeoutMs, outputBytes } = execution
  const late = AbortSignal.timeout(timeoutMs + MARGIN_MS)
  const signal = AbortSignal.any([execution.signal, late])
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
    // The status is sent: the client has gone, or hears of it in the stream.
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
  // A byte that is no UTF-8 became U+FFFD, which is three.
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
