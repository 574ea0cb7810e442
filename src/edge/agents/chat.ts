/** Chat by WebSocket: with the agent's gateway, whose messages nobody here reads. */
import type { Request, Response } from 'express'
import type { Agent } from '../../agents/agent.ts'
import { type AgentdClient, AgentdError } from '../../agents/agentd-client.ts'
import { ApiError } from '../../errors.ts'
import { CLOSE } from '../../net/websocket.ts'
import { type JoinedSockets, joinSockets } from '../joined-sockets.ts'
import { refuseSocket } from './socket.ts'

const NOT_READY = ['unreachable', 'not_ready', 'timeout']
/** What is the client's to say; the rest agentd and the gateway have to agree on between themselves. */
const HEADERS = [
  'sec-websocket-key',
  'sec-websocket-version',
  'sec-websocket-protocol',
  'sec-websocket-extensions',
  'user-agent',
] as const

export interface ChatRequest {
  agentd: AgentdClient
  agent: Agent
  req: Request
  res: Response
  /** Ends the attempt to open it. */
  signal: AbortSignal
}

/**
 * Opens the gateway's WebSocket for a client whose upgrade it is. One that is not ready is told so by closing (1013).
 * @returns the chat, or undefined where it was closed already.
 * @throws ApiError 502 when the gateway refuses the upgrade.
 */
export async function openChat({
  agent,
  req,
  res,
  ...rest
}: ChatRequest): Promise<JoinedSockets | undefined> {
  if (agent.status !== 'running') return refuseSocket(req, res, CLOSE.tryAgainLater, 'The agent is not ready')
  try {
    return await joinSockets({ ...rest, agent, req, res, path: '/v1/gateway/', headers: forwarded(req) })
  } catch (error) {
    if (!(error instanceof AgentdError)) throw error
    if (NOT_READY.includes(error.code))
      return refuseSocket(req, res, CLOSE.tryAgainLater, 'The agent is not ready')
    throw new ApiError(502, 'bad_answer', 'The agent takes no WebSocket', { cause: error })
  }
}

function forwarded(req: Request): Record<string, string> {
  return Object.fromEntries(
    HEADERS.flatMap((name) => {
      const value = req.headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}
