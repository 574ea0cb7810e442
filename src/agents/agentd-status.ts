/** The current state of an agent and its log, from its agentd. The response is untrusted: it is checked and bounded. */

import { z } from 'zod'
import type { AgentStatus } from '../../agentd/protocol.ts'
import { like, timestamp } from '../http/fields.ts'
import { storableText } from '../lib/read.ts'
import type { Agent } from './agent.ts'
import type { AgentdClient, AgentdTarget } from './agentd-client.ts'

/** The last twenty lines of 2000 characters, each of which may take six bytes in JSON, plus a margin. */
const MAX_BYTES = 524_288

/** A text that PostgreSQL can store: engines print NUL, and a cut text may end in half a surrogate pair. */
export const storable = (max: number) => z.string().max(max).overwrite(storableText)
const line = storable(4000)
const time = storable(40).nullable()

const scriptStatus = z.object({
  state: z.enum(['not_configured', 'pending', 'running', 'success', 'failed']),
  exitCode: z.number().int().nullable(),
  startedAt: time,
  finishedAt: time,
  reason: storable(1000)
    .optional()
    .describe('Why it failed, if the kernel killed one of its processes for memory.'),
})
export const scriptStates = z.object({ build: scriptStatus, start: scriptStatus })

export const gatewayStatus = z.object({
  state: z.enum(['stopped', 'starting', 'ready', 'failed']),
  run: z.string().max(200).nullable(),
  pid: z.number().int().nullable(),
  restarts: z.number().int(),
  exitCode: z.number().int().nullable(),
  reason: line.nullable(),
  // An agentd of 0.3.0 does not report it.
  outOfMemory: line
    .nullable()
    .default(null)
    .describe('When and why it restarted by itself, if the kernel killed it for memory.'),
  lastLines: z.array(line).max(20),
})

const agentStatus = z.object({
  agentId: z.string().max(20),
  version: z.number().int(),
  epoch: z.number().int(),
  startedAt: z.string().max(40),
  gateway: gatewayStatus,
  scripts: scriptStates,
  // An agentd of 0.3.0 does not report it.
  memory: z
    .object({ usedBytes: z.int().nonnegative(), limitBytes: z.int().nonnegative().nullable() })
    .nullable()
    .default(null),
  // An agentd of 0.2.0 does not know hard limits.
  disk: z.object({ usedBytes: z.number(), limitBytes: z.number(), hardLimit: z.boolean().default(false) }),
  // The agentd of Berth 0.3.0 sends no count of runs.
  taskRuns: z.number().int().default(0),
})

/**
 * Asks agentd for its status.
 * @param options.after waits until the status differs from this version, at most `waitMs`.
 * @throws AgentdError, including for a response that is not a status.
 */
export async function readStatus(
  agentd: AgentdClient,
  target: AgentdTarget,
  options: { timeoutMs: number; after?: { version: number; waitMs: number }; signal?: AbortSignal },
): Promise<AgentStatus> {
  const { after, timeoutMs, signal } = options
  const path = after ? `/v1/status?wait=${after.waitMs}&version=${after.version}` : '/v1/status'
  return agentd.json(target, { path, timeoutMs, maxBytes: MAX_BYTES, signal }, agentStatus)
}

/** How long a reader waits for an agent that does not respond. */
const LIVE_MS = 2000

/**
 * The state of an agent as agentd reports it; undefined if agentd cannot be reached, or if its response does not parse.
 * @param timeoutMs longer if no reader waits for it.
 */
export async function fetchLiveStatus(
  agentd: AgentdClient,
  agent: Agent,
  signal: AbortSignal,
  timeoutMs = LIVE_MS,
): Promise<AgentStatus | undefined> {
  if (!agent.address) return undefined
  return readStatus(agentd, agent, { timeoutMs, signal }).catch(() => undefined)
}

/** The number of log lines that clients get. */
export const SHOWN_LINES = 100

export const logLine = z.object({
  timestamp: timestamp.max(40),
  level: z.enum(['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']),
  source: like('gateway').max(200),
  message: like('http server listening'),
})
export const logLines = z.object({ lines: z.array(logLine).max(SHOWN_LINES) })
export type LogLine = z.output<typeof logLine>

/** A line formatted for people. */
export const formatLine = ({ timestamp, level, source, message }: LogLine): string =>
  `${timestamp} ${level} ${source} ${message}`
