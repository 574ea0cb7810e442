/** A real egress proxy for tests, with real servers behind it. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import {
  createServer as createHttpServer,
  type IncomingMessage,
  type RequestListener,
  request,
} from 'node:http'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import type { TestContext } from 'node:test'
import { Registry } from 'prom-client'
import { parseDestination } from '../../src/agent-proxy/destination.ts'
import { type Admitted, type EgressOptions, EgressProxy } from '../../src/agent-proxy/egress.ts'
import { createLogger } from '../../src/log.ts'

export interface Started {
  port: number
  proxy: EgressProxy
  registry: Registry
  /** Lines of the log, JSON each. */
  lines: string[]
}

/** A proxy that allows the given host:port pairs, closed when the test ends. */
export async function startProxy(
  t: TestContext,
  allowed: string[] = [],
  { admitted, ...options }: Partial<EgressOptions> & { admitted?: Admitted } = {},
): Promise<Started> {
  const lines: string[] = []
  const log = createLogger('test', 'debug', { write: (line: string) => void lines.push(line) })
  const registry = new Registry()
  const destinations = allowed.flatMap((item) => parseDestination(item) ?? [])
  assert.equal(destinations.length, allowed.length)
  const { limits, ...rest } = options
  const proxy = new EgressProxy({
    allowed: destinations,
    log,
    registry,
    limits: { drainMs: 50, ...limits },
    ...rest,
  })
  const settings = { host: 'BERTH_EGRESS_HOST', port: 'BERTH_EGRESS_PORT' }
  const port = await proxy.listen({ host: '127.0.0.1', port: 0, settings }, admitted)
  t.after(() => proxy.close())
  return { port, proxy, registry, lines }
}

export async function listen(t: TestContext, server: Server, host = '127.0.0.1', port = 0): Promise<number> {
  const sockets = new Set<Socket>()
  server.on('connection', (socket: Socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
  })
  server.listen(port, host)
  await once(server, 'listening')
  t.after(() => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return (server.address() as AddressInfo).port
}

export const serveHttp = (t: TestContext, handler: RequestListener) => listen(t, createHttpServer(handler))
/** A server that handles raw connections with `onConnection`; they may be half closed. */
export const serveTcp = (t: TestContext, onConnection: (socket: Socket) => void) =>
  listen(t, createServer({ allowHalfOpen: true }, onConnection))

/** Sends bytes to the proxy, and resolves with everything that it returns until the connection ends. */
export async function talk(port: number, bytes: string): Promise<string> {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.write(bytes)
  const answer = await text(socket)
  socket.destroy()
  return answer
}

/** Sends a request in absolute form through the proxy. */
export async function get(port: number, url: string, headers: Record<string, string> = {}) {
  const req = request({ host: '127.0.0.1', port, path: url, headers, agent: false })
  req.end()
  const [res] = (await once(req, 'response')) as [IncomingMessage]
  return { status: res.statusCode, headers: res.headers, rawHeaders: res.rawHeaders, body: await text(res) }
}

/** A CONNECT; `socket` is the tunnel if the status is 200. */
export async function openTunnel(port: number, authority: string, headers: Record<string, string> = {}) {
  const req = request({ host: '127.0.0.1', port, method: 'CONNECT', path: authority, headers, agent: false })
  req.end()
  const [res, socket, head] = (await once(req, 'connect')) as [IncomingMessage, Socket, Buffer]
  socket.on('error', () => {})
  if (res.statusCode !== 200) socket.resume()
  return { status: res.statusCode, socket, head }
}

export const statusOf = (answer: string) => Number(/^HTTP\/1\.1 (\d{3}) /.exec(answer)?.[1])
