/**
 * WebSockets of an agent's own host: chat with its gateway, whose messages are not read here, and its log, one message
 * per line, beginning with the last lines.
 */
import type { Request, Response } from 'express'
import type { WebSocket } from 'ws'
import { endToEnd } from '../../../agentd/relay.ts'
import type { Agent } from '../../agents/agent.ts'
import { type AgentdClient, AgentdError } from '../../agents/agentd-client.ts'
import { logLine, SHOWN_LINES } from '../../agents/agentd-status.ts'
import { jsonLines } from '../../agents/agentd-stream.ts'
import { ApiError } from '../../errors.ts'
import { acceptSocket, keepAlive, refuseSocket, send } from '../../http/web-socket.ts'
import { CLOSE, type CloseCode } from '../../lib/net/websocket.ts'
import { openBridge, type SocketBridge } from '../socket-bridge.ts'

const NOT_READY = ['unreachable', 'not_ready', 'timeout']
/** Headers that the client determines; the others are between agentd and the gateway. */
const HEADERS = /^(sec-websocket-(key|version|protocol|extensions)|user-agent)$/

export interface SocketRequest {
  agentd: AgentdClient
  agent: Agent
  req: Request
  res: Response
  /** Aborts the attempt to open it. */
  signal: AbortSignal
}

/**
 * Opens the gateway's WebSocket for a client that requests an upgrade. If the gateway is not ready, the socket is
 * closed with 1013.
 * @param more headers for agentd.
 * @returns undefined if the socket was already closed.
 * @throws ApiError 502 if the gateway rejects the upgrade.
 */
export async function openChat(
  request: SocketRequest,
  more: Record<string, string> = {},
): Promise<SocketBridge | undefined> {
  const { agent, req, res } = request
  if (agent.status !== 'running') return refuseSocket(req, res, CLOSE.tryAgainLater, 'The agent is not ready')
  try {
    const headers = { ...endToEnd(req.headers, (name) => HEADERS.test(name)), ...more }
    return await openBridge({ ...request, path: '/v1/gateway/', headers })
  } catch (error) {
    if (!(error instanceof AgentdError)) throw error
    if (NOT_READY.includes(error.code))
      return refuseSocket(req, res, CLOSE.tryAgainLater, 'The agent is not ready')
    throw new ApiError(502, 'bad_answer', 'The agent takes no WebSocket', { cause: error })
  }
}

const CLOSING_MS = 1000
const MAX_LINE_BYTES = 65_536

export class LogStream {
  /** Resolves when it has ended. */
  readonly closed: Promise<void>
  readonly #socket: WebSocket
  readonly #gone: AbortController

  private constructor(socket: WebSocket, lines: AsyncIterable<Buffer>, gone: AbortController) {
    this.#socket = socket
    this.#gone = gone
    this.closed = this.#run(lines)
  }

  /**
   * Opens the log for a client's upgrade request. If the agent is unavailable, the socket is closed (1013).
   * @returns undefined if it was already closed.
   */
  static async open({ agentd, agent, req, res, signal }: SocketRequest): Promise<LogStream | undefined> {
    const gone = new AbortController()
    try {
      const path = `/v1/logs/stream?lines=${SHOWN_LINES}`
      const response = await agentd.stream(agent, { path, signal: AbortSignal.any([gone.signal, signal]) })
      const socket = req.socket.destroyed ? undefined : acceptSocket(req, res)
      if (socket) return new LogStream(socket, response, gone)
      response.destroy()
    } catch (error) {
      if (!(error instanceof AgentdError)) throw error
      refuseSocket(req, res, CLOSE.tryAgainLater, 'The agent is not there')
    }
  }

  /** Closes it now. */
  end(code: CloseCode, reason: string): void {
    this.#socket.close(code, reason)
    this.#gone.abort()
    setTimeout(() => this.#socket.terminate(), CLOSING_MS).unref()
  }

  async #run(lines: AsyncIterable<Buffer>): Promise<void> {
    const socket = this.#socket
    const stopPings = keepAlive(socket, () => this.end(CLOSE.policyViolation, 'The client answered no ping'))
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    void closed.then(() => this.#gone.abort())
    try {
      for await (const line of jsonLines(lines, MAX_LINE_BYTES, logLine))
        await send(socket, JSON.stringify(line))
      this.end(CLOSE.serviceRestart, 'The agent ended its log')
    } catch (error) {
      const isBad = error instanceof AgentdError && error.code === 'bad_answer'
      const reason = isBad ? error.message : 'the connection to the agent broke off'
      this.end(CLOSE.internalError, `The log broke off: ${reason}`)
    }
    await closed
    stopPings()
  }
}
