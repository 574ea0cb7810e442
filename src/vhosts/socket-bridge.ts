/**
 * A WebSocket between a client and an agent: two joined connections, with backpressure, without reading any messages.
 * Only the frame boundaries on the way to the client are tracked, so that Berth can state why it closes.
 */
import type { OutgoingHttpHeaders } from 'node:http'
import type { Socket } from 'node:net'
import type { Request, Response } from 'express'
import { rawEndToEnd, switchingProtocols } from '../../agentd/relay.ts'
import type { AgentdClient, AgentdTarget } from '../agents/agentd-client.ts'
import { takeUpgrade } from '../http/upgrade.ts'
import { CLOSE, type CloseCode, closeFrame, FrameScanner, PING_FRAME } from '../lib/net/websocket.ts'

/** The interval of pings to clients: proxies close silent connections, some after only a minute. */
const PING_MS = 30_000
/** A client that sends nothing during this many pings, not even a pong, has disconnected or does not read. */
const MAX_UNANSWERED = 10
const KEEP_ALIVE_MS = 60_000
/** How long a client that does not read may take to accept its Close frame, in milliseconds. */
const CLOSING_MS = 1000

export interface BridgeRequest {
  agentd: AgentdClient
  agent: AgentdTarget
  /** The path at agentd. */
  path: string
  headers: OutgoingHttpHeaders
  /** The client's request for an upgrade. */
  req: Request
  res: Response
  /** Aborts the attempt to open it. */
  signal: AbortSignal
}

/** Headers for the terms of the WebSocket that both sides agreed on. */
const AGREED = /^sec-websocket-(accept|protocol|extensions)$/

/**
 * Opens a WebSocket of an agent for a client.
 * @returns undefined if the client has disconnected in the meantime.
 * @throws AgentdError if the agent does not accept it; the client's upgrade is then still unanswered.
 */
export async function openBridge(request: BridgeRequest): Promise<SocketBridge | undefined> {
  const { agentd, agent, path, headers, req, res, signal } = request
  const upgraded = await agentd.upgrade(agent, { path, headers, signal })
  if (req.socket.destroyed) return void upgraded.socket.destroy()
  const { socket: client, head } = takeUpgrade(req, res)
  const agreed = rawEndToEnd(upgraded.response, (name) => AGREED.test(name))
  client.write(switchingProtocols('websocket', agreed))
  return new SocketBridge(client, head, upgraded.socket, upgraded.head)
}

/** Passes the agent's messages down at once, but nothing up before {@link SocketBridge.passUp}. */
export class SocketBridge {
  /** The client's connection, which nobody reads before {@link SocketBridge.passUp}, and what it has already sent. */
  readonly client: Socket
  readonly head: Buffer
  /** Resolves when both connections are closed. */
  readonly closed: Promise<void>
  readonly #agent: Socket
  readonly #scanner = new FrameScanner()
  /** Bytes received from the client before the last ping, and pings since it last sent any. */
  #heardBytes = 0
  #unanswered = 0

  /** @param fromAgent what the agent has already sent. */
  constructor(client: Socket, head: Buffer, agent: Socket, fromAgent: Buffer) {
    this.client = client
    this.head = head
    this.#agent = agent
    for (const socket of [client, agent]) {
      socket.setNoDelay(true)
      // Detects a peer that disappeared silently.
      socket.setKeepAlive(true, KEEP_ALIVE_MS)
    }
    const pings = setInterval(() => this.#ping(), PING_MS)
    client.once('close', () => clearInterval(pings))
    this.closed = Promise.all([once(client), once(agent)]).then(() => {})
    client.once('close', () => agent.destroy())
    this.#passDown(fromAgent)
  }

  /** Lets the client send to the agent. @param fromClient what it has sent, if somebody has read from it since. */
  passUp(fromClient = this.head): void {
    this.#agent.write(fromClient)
    this.client.pipe(this.#agent)
  }

  /** Pings the client. Its pongs reach the agent, which ignores unsolicited ones (RFC 6455, 5.5.3). */
  #ping(): void {
    const client = this.client
    this.#unanswered = client.bytesRead > this.#heardBytes ? 0 : this.#unanswered + 1
    this.#heardBytes = client.bytesRead
    const { isBetweenFrames, sawClose } = this.#scanner
    if (this.#unanswered > MAX_UNANSWERED)
      this.end(CLOSE.policyViolation, `The client answered no ping for ${MAX_MINUTES} minutes`)
    else if (client.writable && isBetweenFrames && !sawClose) client.write(PING_FRAME)
  }

  #passDown(fromAgent: Buffer): void {
    const client = this.client
    const agent = this.#agent
    const pass = (chunk: Buffer) => {
      this.#scanner.push(chunk)
      // A client may send without end: one chunk per turn gives others their turns.
      agent.pause()
      if (client.write(chunk)) setImmediate(() => agent.resume())
    }
    pass(fromAgent)
    client.on('drain', () => agent.resume())
    agent.on('data', pass)
    agent.once('close', () => this.end(CLOSE.serviceRestart, 'The agent closed the connection'))
  }

  /**
   * Closes both sides now, with a Close frame for the client if one can be inserted.
   * @param last frames for the client before it.
   */
  end(code: CloseCode, reason: string, last: Buffer = Buffer.alloc(0)): void {
    const client = this.client
    client.unpipe(this.#agent)
    this.#agent.removeAllListeners('data')
    this.#agent.destroy()
    if (client.destroyed || client.writableEnded) return
    if (!this.#scanner.isBetweenFrames) return void client.destroy()
    if (this.#scanner.sawClose) client.end()
    else client.end(Buffer.concat([last, closeFrame(code, reason)]))
    // Bytes that the client still sends are dropped; its own Close ends the connection.
    client.resume()
    setTimeout(() => client.destroy(), CLOSING_MS).unref()
  }
}

const MAX_MINUTES = (MAX_UNANSWERED * PING_MS) / 60_000

const once = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))
