/** WebSockets that Berth itself speaks: those that it closes at once, and streams of its own. */
import type { Request, Response } from 'express'
import { type WebSocket, WebSocketServer } from 'ws'
import { takeUpgrade } from '../../http/upgrade.ts'
import type { CloseCode } from '../../net/websocket.ts'

/** Clients have nothing to say on them. */
const MAX_MESSAGE_BYTES = 4096

const server = new WebSocketServer({
  noServer: true,
  clientTracking: false,
  perMessageDeflate: false,
  maxPayload: MAX_MESSAGE_BYTES,
})

/** Takes the upgrade of a request; undefined where the client's handshake is wrong, which it was told. */
export function acceptSocket(req: Request, res: Response): WebSocket | undefined {
  const { socket, head } = takeUpgrade(req, res)
  let accepted: WebSocket | undefined
  server.handleUpgrade(req, socket, head, (webSocket) => {
    accepted = webSocket
  })
  // After each comes a close.
  accepted?.on('error', () => {})
  return accepted
}

/** Takes the upgrade and closes: browsers show the code of a WebSocket, and never the status of a refused upgrade. */
export function refuseSocket(req: Request, res: Response, code: CloseCode, reason: string): undefined {
  acceptSocket(req, res)?.close(code, reason)
}
