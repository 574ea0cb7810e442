/**
 * A terminal of an agent for a client's WebSocket: its bytes in binary messages, everything else as JSON. Nothing is
 * buffered for a slow side: each waits for the other.
 */
import type { Socket } from 'node:net'
import { stringify } from 'node:querystring'
import type { Request, Response } from 'express'
import type { WebSocket } from 'ws'
import {
  bytesFrames,
  FrameReader,
  messageFrame,
  NO_TERMINAL,
  TERMINAL_UPGRADE,
} from '../../../agentd/terminal-frames.ts'
import { acceptSocket, keepAlive, send } from '../../http/web-socket.ts'
import { CLOSE, type CloseCode } from '../../lib/net/websocket.ts'
import type { Agent } from '../agent.ts'
import { type AgentdClient, AgentdError } from '../agentd-client.ts'
import { toAnswer } from '../engine-call.ts'
import { type TerminalQuery, terminalEvent, terminalResize } from './terminal-schema.ts'

/** The close code of a terminal that has ended, or could not be opened: reconnecting would not help. */
const ENDED = 1000
const CLOSING_MS = 1000
/** Tunnels to agents may close connections that are silent for an hour. */
const ALIVE_MS = 600_000
/** The API's words for what agentd sends. */
const GONE = 'There is no such terminal'
const FAILED = 'The terminal could not be opened'
const OLD = 'The agent was started by an earlier Berth: restart it'

export interface TerminalRequest {
  agentd: AgentdClient
  agent: Agent
  query: TerminalQuery
  req: Request
  res: Response
  /** Aborts the attempt to open it. */
  signal: AbortSignal
}

/** An open terminal, until either side closes it. */
export class TerminalSocket {
  /** Resolves when it has ended. */
  readonly closed: Promise<void>
  readonly #client: WebSocket
  readonly #agent: Socket

  private constructor(client: WebSocket, agent: Socket, head: Buffer) {
    this.#client = client
    this.#agent = agent
    agent.setNoDelay(true)
    this.closed = this.#run(head)
  }

  /**
   * Opens a terminal for a client's upgrade request. If it cannot be opened, the client gets an `error` message.
   * @returns undefined if the socket was already closed.
   */
  static async open({ agentd, agent, query, req, res, signal }: TerminalRequest) {
    const path = `/v1/terminal?${stringify(query)}`
    try {
      const { socket, head } = await agentd.upgrade(agent, { path, signal }, TERMINAL_UPGRADE)
      const client = req.socket.destroyed ? undefined : acceptSocket(req, res)
      if (client) return new TerminalSocket(client, socket, head)
      return void socket.destroy()
    } catch (error) {
      if (!(error instanceof AgentdError)) throw error
      const { code, message } = explain(agent, error)
      const client = acceptSocket(req, res)
      client?.send(JSON.stringify({ type: 'error', code, message }))
      client?.close(code === 'agent_not_ready' || code === 'busy' ? CLOSE.tryAgainLater : ENDED, message)
    }
  }

  /** Closes it now; its shell waits for another client. */
  end(code: CloseCode | typeof ENDED, reason: string): void {
    this.#client.close(code, reason)
    this.#agent.destroy()
    setTimeout(() => this.#client.terminate(), CLOSING_MS).unref()
  }

  async #run(head: Buffer): Promise<void> {
    const client = this.#client
    const agent = this.#agent
    const stopPings = keepAlive(client, () => this.end(CLOSE.policyViolation, 'The client answered no ping'))
    const alive = setInterval(() => agent.write(messageFrame({ type: 'alive' })), ALIVE_MS)
    const closed = new Promise<void>((resolve) => client.once('close', () => resolve()))
    void closed.then(() => agent.destroy())
    client.on('message', (data: Buffer, isBinary) => {
      const frame = isBinary ? bytesFrames(data) : resizeFrame(data)
      if (!frame) this.end(CLOSE.policyViolation, 'A message is not one of a terminal')
      else if (!agent.write(frame)) client.pause()
    })
    agent.on('drain', () => client.resume())
    try {
      if (head.length > 0) agent.unshift(head)
      const frames = new FrameReader()
      for await (const chunk of agent) for (const frame of frames.push(chunk)) await this.#pass(frame)
      this.end(CLOSE.serviceRestart, 'The agent closed the connection')
    } catch {
      this.end(CLOSE.internalError, 'The connection to the agent broke off')
    }
    await closed
    clearInterval(alive)
    stopPings()
  }

  async #pass(frame: ReturnType<FrameReader['push']>[number]): Promise<void> {
    if ('bytes' in frame) return send(this.#client, frame.bytes)
    const event = terminalEvent.parse(frame.message)
    await send(this.#client, JSON.stringify(event))
    if (event.type !== 'ready')
      this.end(ENDED, event.type === 'exit' ? 'The shell has ended' : 'Opened elsewhere')
  }
}

/** The frame for a client's text message; undefined if it is not one of a terminal. */
function resizeFrame(data: Buffer): Buffer | undefined {
  try {
    return messageFrame(terminalResize.parse(JSON.parse(String(data))))
  } catch {
    return undefined
  }
}

function explain(agent: Agent, error: AgentdError): { code: string; message: string } {
  if (error.code === 'unsupported') return { code: 'unsupported', message: error.message }
  if (error.code === 'not_found' && error.message === NO_TERMINAL) return { code: 'not_found', message: GONE }
  if (error.code === 'not_found') return { code: 'restart_needed', message: OLD }
  return toAnswer(agent, FAILED, error)
}
