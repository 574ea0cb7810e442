/** The log of an agent as a WebSocket: a message for each line, the last ones first (compatibility 2.2). */
import type { Request, Response } from 'express'
import type { WebSocket } from 'ws'
import type { Agent } from '../../agents/agent.ts'
import { type AgentdClient, AgentdError } from '../../agents/agentd-client.ts'
import { jsonLines } from '../../agents/console/lines.ts'
import { KEPT_LINES, logLine } from '../../agents/logs/lines.ts'
import { CLOSE, type CloseCode } from '../../net/websocket.ts'
import { acceptSocket, refuseSocket } from './socket.ts'

const PING_MS = 30_000
const CLOSING_MS = 1000
const MAX_LINE_BYTES = 65_536

export interface LogRequest {
  agentd: AgentdClient
  agent: Agent
  req: Request
  res: Response
  /** Ends the attempt to open it. */
  signal: AbortSignal
}

export class LogStream {
  /** Resolves when it is over. */
  readonly closed: Promise<void>
  readonly #socket: WebSocket
  readonly #gone: AbortController

  private constructor(socket: WebSocket, lines: AsyncIterable<Buffer>, gone: AbortController) {
    this.#socket = socket
    this.#gone = gone
    this.closed = this.#run(lines)
  }

  /**
   * Opens it for a client whose upgrade it is. An agent that is not there is told of by closing (1013).
   * @returns undefined where it was closed already.
   */
  static async open({ agentd, agent, req, res, signal }: LogRequest): Promise<LogStream | undefined> {
    const gone = new AbortController()
    try {
      const path = `/v1/logs/stream?lines=${KEPT_LINES}`
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
    const stopPings = keepAlive(socket)
    const closed = new Promise<void>((resolve) => socket.once('close', () => resolve()))
    void closed.then(() => this.#gone.abort())
    try {
      for await (const line of jsonLines(lines, MAX_LINE_BYTES)) {
        const parsed = logLine.safeParse(line)
        if (!parsed.success) throw new AgentdError('bad_answer', 'agentd sent no line of a log')
        await send(socket, JSON.stringify(parsed.data))
      }
      this.end(CLOSE.serviceRestart, 'The agent ended its log')
    } catch {
      this.end(CLOSE.internalError, 'The log broke off')
    }
    await closed
    stopPings()
  }
}

/** Resolves when the line is on its way: nothing is collected here for a reader that is slow; agentd drops lines. */
function send(socket: WebSocket, line: string): Promise<void> {
  return new Promise((resolve, reject) => socket.send(line, (error) => (error ? reject(error) : resolve())))
}

/** Ends the socket of a client that answers no ping. Returns its end. */
function keepAlive(socket: WebSocket): () => void {
  let isThere = true
  socket.on('pong', () => {
    isThere = true
  })
  const timer = setInterval(() => {
    if (!isThere) return socket.terminate()
    isThere = false
    socket.ping()
  }, PING_MS)
  return () => clearInterval(timer)
}
