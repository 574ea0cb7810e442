/**
 * WebSocket upgrades pass through the application like every other request, so that hosts, keys, limits, the log and
 * errors are the same for both. A handler that wants the connection takes it; every other answer refuses the upgrade.
 */
import { type IncomingMessage, type RequestListener, type Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** A connection, and what the client sent on it after its request. */
export interface Upgrade {
  socket: Socket
  head: Buffer
}

const upgrades = new WeakMap<IncomingMessage, Upgrade>()

/** Hands upgrades to `app`, with a response that goes out on the connection as long as nobody takes that. */
export function serveUpgrades(server: Server, app: RequestListener): void {
  server.on('upgrade', (req, duplex, head) => {
    const socket = duplex as Socket
    // Node handles errors of a connection only until an upgrade. A close event follows each.
    socket.on('error', () => {})
    const res = new ServerResponse(req)
    res.shouldKeepAlive = false
    try {
      res.assignSocket(socket)
    } catch {
      // Sent behind a request that is not answered yet: an answer now would come out of order.
      socket.destroy()
      return
    }
    res.once('finish', () => {
      // Unread bytes would make the connection end in a reset, before the client has seen the answer.
      socket.resume()
      socket.destroySoon()
    })
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
  if (!upgrade) throw new Error('no upgrade was asked for, or it was taken already')
  upgrades.delete(req)
  res.detachSocket(upgrade.socket)
  return upgrade
}

/**
 * Makes a request whose target is a whole URL, as a proxy gets it, one with a path and a `Host`: the URL's
 * host counts then, whatever `Host` says (RFC 9112, 3.2.2). It must be done before Express sees the request:
 * its router takes paths apart by the length of the origin that the target began with.
 */
export function toOriginForm(req: IncomingMessage): void {
  const [, host, path] = /^https?:\/\/([^/?#]*)(.*)$/is.exec(req.url ?? '') ?? []
  if (host === undefined || path === undefined) return
  req.headers.host = host
  req.url = path.startsWith('/') ? path : `/${path}`
}
