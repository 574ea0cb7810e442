/**
 * Chat by WebSocket: two connections joined, with backpressure, and nothing of the messages read. Only the bounds of
 * frames are followed on the way to the client, so that Berth can say why it closes.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Request, Response } from 'express'
import type { Agent } from '../../agents/agent.ts'
import { type AgentdClient, AgentdError, type Switched } from '../../agents/agentd-client.ts'
import { ApiError } from '../../errors.ts'
import { takeUpgrade } from '../../http/upgrade.ts'
import { CLOSE, type CloseCode, closeFrame, FrameScanner } from '../../net/websocket.ts'
import { refuseSocket } from './socket.ts'

/** The gateway sends a tick every half a minute. */
const IDLE_MS = 300_000
const KEEP_ALIVE_MS = 60_000
/** What a client that does not read gets to take its Close frame. */
const CLOSING_MS = 1000

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
export async function openChat({ agentd, agent, req, res, signal }: ChatRequest): Promise<Chat | undefined> {
  if (agent.status !== 'running') return refuseSocket(req, res, CLOSE.tryAgainLater, 'The agent is not ready')
  let gateway: Switched
  try {
    gateway = await agentd.upgrade(agent, { path: '/v1/gateway/', headers: forwarded(req), signal })
  } catch (error) {
    if (!(error instanceof AgentdError)) throw error
    if (NOT_READY.includes(error.code))
      return refuseSocket(req, res, CLOSE.tryAgainLater, 'The agent is not ready')
    throw new ApiError(502, 'bad_answer', 'The agent takes no WebSocket', { cause: error })
  }
  if (req.socket.destroyed) return void gateway.socket.destroy()
  const { socket, head } = takeUpgrade(req, res)
  socket.write(switchingProtocols(gateway.response), 'latin1')
  const chat = new Chat(socket, gateway.socket)
  chat.begin(head, gateway.head)
  return chat
}

/** One WebSocket through Berth. */
export class Chat {
  /** Resolves when both connections are closed. */
  readonly closed: Promise<void>
  readonly #client: Socket
  readonly #gateway: Socket
  readonly #scanner = new FrameScanner()

  constructor(client: Socket, gateway: Socket) {
    this.#client = client
    this.#gateway = gateway
    for (const socket of [client, gateway]) {
      socket.setNoDelay(true)
      // Finds a peer that is gone without a word sooner than the idle limit does.
      socket.setKeepAlive(true, KEEP_ALIVE_MS)
      socket.setTimeout(IDLE_MS, () => socket.destroy())
    }
    this.closed = Promise.all([once(client), once(gateway)]).then(() => {})
  }

  /** Joins the connections; each side has sent something already. */
  begin(fromClient: Buffer, fromGateway: Buffer): void {
    const client = this.#client
    const gateway = this.#gateway
    gateway.write(fromClient)
    client.pipe(gateway)
    client.once('close', () => gateway.destroy())
    const pass = (chunk: Buffer) => {
      this.#scanner.push(chunk)
      if (!client.write(chunk)) gateway.pause()
    }
    pass(fromGateway)
    client.on('drain', () => gateway.resume())
    gateway.on('data', pass)
    gateway.once('close', () => this.end(CLOSE.serviceRestart, 'The agent closed the connection'))
  }

  /** Closes both sides now, with a Close frame for the client where one fits in. */
  end(code: CloseCode, reason: string): void {
    const client = this.#client
    client.unpipe(this.#gateway)
    this.#gateway.removeAllListeners('data')
    this.#gateway.destroy()
    if (client.destroyed || client.writableEnded) return
    if (!this.#scanner.isBetweenFrames) return void client.destroy()
    if (this.#scanner.sawClose) client.end()
    else client.end(closeFrame(code, reason))
    // What the client still sends is for nobody; its own Close ends the connection.
    client.resume()
    setTimeout(() => client.destroy(), CLOSING_MS).unref()
  }
}

const once = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))

function forwarded(req: Request): Record<string, string> {
  return Object.fromEntries(
    HEADERS.flatMap((name) => {
      const value = req.headers[name]
      return typeof value === 'string' ? [[name, value]] : []
    }),
  )
}

function switchingProtocols({ headers }: IncomingMessage): string {
  const names = ['sec-websocket-accept', 'sec-websocket-protocol', 'sec-websocket-extensions']
  const agreed = names.flatMap((name) => (headers[name] === undefined ? [] : [`${name}: ${headers[name]}`]))
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', ...agreed]
  return `${lines.join('\r\n')}\r\n\r\n`
}
