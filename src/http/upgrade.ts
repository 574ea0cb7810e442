/**
 * WebSocket upgrades pass through the application like every other request, so that hosts, keys, limits, the log and
 * errors work the same for both. A handler that wants the connection takes it; every other response rejects the
 * upgrade.
 */
import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { detachedResponse } from '../lib/net/websocket.ts'

/** A connection, and the bytes that the client sent after its request. */
export interface Upgrade {
  socket: Socket
  head: Buffer
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

/** Passes upgrades to `app`, with a response that is sent on the connection unless a handler takes the connection. */
export function serveUpgrades(server: Server, app: RequestListener): void {
  server.on('upgrade', (req, duplex, head) => {
    const socket = duplex as Socket
    // Node only handles errors of a connection until an upgrade. A close event follows each error.
    socket.on('error', () => {})
    const res = detachedResponse(req, socket)
    if (!res) return
    upgrades.set(req, { socket, head })
    toOriginForm(req)
    app(req, res)
  })
}

/** True for a request that asks for an upgrade. */
export const isUpgrade = (req: IncomingMessage): boolean => upgrades.has(req)

/** Takes the connection of an upgrade; the response can no longer be used. @throws Error for any other request. */
export function takeUpgrade(req: IncomingMessage, res: ServerResponse): Upgrade {
  const upgrade = upgrades.get(req)
  if (!upgrade) throw new Error('no upgrade was requested, or it was already taken')
  upgrades.delete(req)
  res.detachSocket(upgrade.socket)
  return upgrade
}

/**
 * Converts a request whose target is a whole URL, as proxies receive it, to one with a path and a `Host`. The URL's
 * host then counts, regardless of `Host` (RFC 9112, 3.2.2). This must happen before Express sees the request, because
 * its router splits paths by the length of the target's original origin.
 */
export function toOriginForm(req: IncomingMessage): void {
  const [, host, path] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(req.url ?? '') ?? []
  if (host === undefined || path === undefined) return
  req.headers.host = host
  req.url = path.startsWith('/') ? path : `/${path}`
}
