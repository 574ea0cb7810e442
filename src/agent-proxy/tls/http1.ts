/** Requests of HTTP/1.1 on terminated connections. */
import { createServer, type IncomingMessage, type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'
import { hasBody, passBody, rawEndToEnd } from '../../../agentd/relay.ts'
import { refuseMalformed } from '../../lib/net/malformed.ts'
import { detachedResponse, isWebSocket } from '../../lib/net/websocket.ts'
import { type Detached, refuse } from '../listener.ts'
import type { Answered, Asked } from './asked.ts'

export interface Http1Limits {
  headerBytes: number
  /** Maximum time for a client to send the head of its request. */
  headerMs: number
  /** Maximum time without a byte. */
  idleMs: number
}

/** A server for connections that are given to it by the event `connection`. @param exchange never rejects. */
export function serveHttp1(limits: Http1Limits, exchange: (socket: Socket, asked: Asked) => void): Server {
  const server = createServer({
    maxHeaderSize: limits.headerBytes,
    headersTimeout: limits.headerMs,
    keepAliveTimeout: limits.idleMs,
    requestTimeout: 0,
    shouldUpgradeCallback: isWebSocket,
  })
  server.maxHeadersCount = 0
  // Longer than a host may be silent, so that a 504 can still be sent.
  server.timeout = 2 * limits.idleMs
  const detached = (req: IncomingMessage, taken: Detached) => {
    taken.client.on('error', () => {})
    const res = detachedResponse(req, taken.client)
    if (res) exchange(taken.client, asked(req, res, taken))
  }
  server.on('request', (req, res) => exchange(req.socket, asked(req, res)))
  server.on('upgrade', (req, client, head) => detached(req, { client: client as Socket, head }))
  server.on('connect', (req, client, head) => detached(req, { client: client as Socket, head }))
  refuseMalformed(server, 'text/plain', (status) => `${STATUS_CODES[status]}\n`)
  return server
}

function asked(req: IncomingMessage, res: ServerResponse, webSocket?: Detached): Asked {
  return {
    method: req.method ?? '',
    target: req.url ?? '',
    authorities: req.headersDistinct.host ?? [],
    headers: rawEndToEnd(req, (name) => name !== 'host' && name !== 'expect'),
    hasBody: hasBody(req),
    body: req,
    ...(webSocket && req.method !== 'CONNECT' && { takeWebSocket: () => detach(res, webSocket) }),
    asksForUpgrade: req.headers.upgrade !== undefined,
    isGrpc: false,
    isOver: () => res.closed || req.socket.destroyed,
    onOver: (over) => void res.once('close', over),
    pass: (answer) => pass(req, res, answer),
    refuse: (refusal) => refuse(res, refusal),
    abandon: () => void req.socket.destroy(),
  }
}

function detach(res: ServerResponse, taken: Detached): Detached {
  res.detachSocket(taken.client)
  return taken
}

function pass(req: IncomingMessage, res: ServerResponse, answer: Answered): Promise<void> {
  // The host may respond before the body ends. The rest must not be parsed as the next request.
  if (!req.complete) res.shouldKeepAlive = false
  res.sendDate = false
  res.writeHead(answer.status, answer.message, answer.headers)
  return passBody(answer.body, res, answer.through && { through: answer.through })
}
