/**
 * A WebSocket between a client and an agent: two connections joined, with backpressure, and nothing of the messages
 * read. Only the bounds of frames are followed on the way to the client, so that Berth can say why it closes.
 */
import type { IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { Request, Response } from 'express'
import type { AgentdClient, AgentdTarget } from '../agents/agentd-client.ts'
import { takeUpgrade } from '../http/upgrade.ts'
import { CLOSE, type CloseCode, closeFrame, FrameScanner, PING_FRAME } from '../lib/net/websocket.ts'

/** The interval of pings to clients: proxies close silent connections, the first after a minute. */
const PING_MS = 30_000
/** A client that sends nothing for this many pings, not even a pong, has gone or reads nothing. */
const MOST_UNANSWERED = 10
const KEEP_ALIVE_MS = 60_000
/** Time for a client that does not read to take its Close frame, in milliseconds. */
const CLOSING_MS = 1000

export interface JoinRequest {
  agentd: AgentdClient
  agent: AgentdTarget
  /** The path at agentd. */
  path: string
  headers: Record<string, string>
  /** The client's, whose upgrade it is. */
  req: Request
  res: Response
  /** Ends the attempt to open it. */
  signal: AbortSignal
}

/**
 * Opens a WebSocket of an agent for a client.
 * @returns undefined where the client has gone meanwhile.
 * @throws AgentdError where the agent does not take it; the client's upgrade is still to be answered then.
 */
export async function joinSockets(request: JoinRequest): Promise<JoinedSockets | undefined> {
  const opened = await openSockets(request)
  opened?.sockets.passUp(opened.head)
  return opened?.sockets
}

/** A WebSocket on which nothing goes up before {@link JoinedSockets.passUp}; what the agent sends goes down. */
export interface OpenedSockets {
  sockets: JoinedSockets
  /** The client's connection, which nobody reads yet. */
  client: Socket
  /** Bytes that the client has sent already. */
  head: Buffer
}

/** Opens a WebSocket as {@link joinSockets} does, one way only. */
export async function openSockets(request: JoinRequest): Promise<OpenedSockets | undefined> {
  const { agentd, agent, path, headers, req, res, signal } = request
  const upgraded = await agentd.upgrade(agent, { path, headers, signal })
  if (req.socket.destroyed) return void upgraded.socket.destroy()
  const { socket: client, head } = takeUpgrade(req, res)
  client.write(switchingProtocols(upgraded.response), 'latin1')
  return { sockets: new JoinedSockets(client, upgraded.socket, upgraded.head), client, head }
}

export class JoinedSockets {
  /** Resolves when both connections are closed. */
  readonly closed: Promise<void>
  readonly #client: Socket
  readonly #agent: Socket
  readonly #scanner = new FrameScanner()
  /** Bytes of the client before the last ping, and pings since it sent any. */
  #heardBytes = 0
  #unanswered = 0

  /** @param fromAgent what the agent has sent already. */
  constructor(client: Socket, agent: Socket, fromAgent: Buffer) {
    this.#client = client
    this.#agent = agent
    for (const socket of [client, agent]) {
      socket.setNoDelay(true)
      // Finds a peer that is gone without a word.
      socket.setKeepAlive(true, KEEP_ALIVE_MS)
    }
    const pings = setInterval(() => this.#ping(), PING_MS)
    client.once('close', () => clearInterval(pings))
    this.closed = Promise.all([once(client), once(agent)]).then(() => {})
    client.once('close', () => agent.destroy())
    this.#passDown(fromAgent)
  }

  /** Lets the client speak to the agent. @param fromClient what it has sent already. */
  passUp(fromClient: Buffer): void {
    this.#agent.write(fromClient)
    this.#client.pipe(this.#agent)
  }

  /** Pings the client. Its pongs reach the agent, which ignores unsolicited ones (RFC 6455, 5.5.3). */
  #ping(): void {
    const client = this.#client
    this.#unanswered = client.bytesRead > this.#heardBytes ? 0 : this.#unanswered + 1
    this.#heardBytes = client.bytesRead
    const { isBetweenFrames, sawClose } = this.#scanner
    if (this.#unanswered > MOST_UNANSWERED)
      this.end(CLOSE.policyViolation, `The client answered no ping for ${MOST_MINUTES} minutes`)
    else if (client.writable && isBetweenFrames && !sawClose) client.write(PING_FRAME)
  }

  #passDown(fromAgent: Buffer): void {
    const client = this.#client
    const agent = this.#agent
    const pass = (chunk: Buffer) => {
      this.#scanner.push(chunk)
      // A client may send without end: one chunk a turn leaves the others their turns.
      agent.pause()
      if (client.write(chunk)) setImmediate(() => agent.resume())
    }
    pass(fromAgent)
    client.on('drain', () => agent.resume())
    agent.on('data', pass)
    agent.once('close', () => this.end(CLOSE.serviceRestart, 'The agent closed the connection'))
  }

  /**
   * Closes both sides now, with a Close frame for the client where one fits in.
   * @param last frames for the client before it.
   */
  end(code: CloseCode, reason: string, last: Buffer = Buffer.alloc(0)): void {
    const client = this.#client
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

const MOST_MINUTES = (MOST_UNANSWERED * PING_MS) / 60_000

const once = (socket: Socket) => new Promise<void>((resolve) => socket.once('close', () => resolve()))

function switchingProtocols({ headers }: IncomingMessage): string {
  const names = ['sec-websocket-accept', 'sec-websocket-protocol', 'sec-websocket-extensions']
  const agreed = names.flatMap((name) => (headers[name] === undefined ? [] : [`${name}: ${headers[name]}`]))
  const lines = ['HTTP/1.1 101 Switching Protocols', 'Upgrade: websocket', 'Connection: Upgrade', ...agreed]
  return `${lines.join('\r\n')}\r\n\r\n`
}
