/** WebSockets whose messages Berth itself reads and writes. */
import type { Request, Response } from 'express'
import { type WebSocket, WebSocketServer } from 'ws'
import type { CloseCode } from '../lib/net/websocket.ts'
import { takeUpgrade } from './upgrade.ts'

const PING_MS = 30_000

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: 65_536,
})

/**
 * Accepts the upgrade of a request, for messages of 64 KiB at most; undefined if the client's handshake is wrong, which
 * the client was told.
 */
export function acceptSocket(req: Request, res: Response): WebSocket | undefined {
  const { socket, head } = takeUpgrade(req, res)
  let accepted: WebSocket | undefined
  server.handleUpgrade(req, socket, head, (webSocket) => {
    accepted = webSocket
  })
  // A close event follows each error.
  accepted?.on('error', () => {})
  return accepted
}

/**
 * Accepts the upgrade and closes: browsers show the close code of a WebSocket, but not the status of a rejected
 * upgrade.
 */
export function refuseSocket(req: Request, res: Response, code: CloseCode, reason: string): undefined {
  acceptSocket(req, res)?.close(code, reason)
}

/** Resolves when a message is sent: nothing is buffered here for a slow reader. */
export function send(socket: WebSocket, message: string | Buffer): Promise<void> {
  return new Promise((resolve, reject) =>
    socket.send(message, (error) => (error ? reject(error) : resolve())),
  )
}

/**
 * Pings a client until the returned function is called.
 * @param lose called if the client does not answer.
 */
export function keepAlive(socket: WebSocket, lose: () => void): () => void {
  let isThere = true
  socket.on('pong', () => {
    isThere = true
  })
  const timer = setInterval(() => {
    // While nothing is read, no answer can arrive.
    if (!isThere && !socket.isPaused) return lose()
    isThere = false
    socket.ping()
  }, PING_MS)
  return () => clearInterval(timer)
}
