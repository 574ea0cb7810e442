import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { type Duplex, pipeline, type Readable, Transform } from 'node:stream'
import { pipeline as pipe } from 'node:stream/promises'
import { ConnectFrame, rewriteConnect } from './connect-frame.ts'
import { AgentdError, isErrno } from './errors.ts'
import {
  type Agent,
  type Call,
  type GatewayHandle,
  refuseUpgrade,
  type Service,
  type Upgrade,
} from './server.ts'

/** A model may think for minutes before its first word; a connection on which nothing moves for longer is dead. */
const SILENCE_MS = 600_000
/** How long a side that has ended its half may wait for the other's. */
const HALF_OPEN_MS = 2000
/** Of one connection only (RFC 9110, 7.6.1). */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]
/**
 * The gateway trusts its own machine's clients as long as they do not look like a browser or as if they came through
 * another proxy; who may talk to the agent, and from which page, was decided before.
 */
const NOT_FOR_THE_GATEWAY =
  /^(host|authorization|cookie|origin|referer|expect|forwarded|via|x-forwarded-.*|x-real-ip|sec-fetch-.*|berth-.*)$/

/** `/v1/gateway/*`: the gateway's HTTP and WebSocket, with its token in place of the client's. */
export function proxyService({ gateway }: Agent): Service {
  const tunnels = new Set<Duplex>()
  return {
    routes: [{ method: '*', path: '/v1/gateway/*', handle: (call) => forward(gateway, call) }],
    upgrades: [
      {
        path: '/v1/gateway/*',
        handle(call, socket, head) {
          tunnels.add(socket)
          socket.once('close', () => tunnels.delete(socket))
          tunnel(gateway, call, socket, head)
        },
      },
    ],
    async stop() {
      for (const socket of tunnels) socket.destroy()
    },
  }
}

async function forward(gateway: GatewayHandle, { req, res, url, rest, signal }: Call): Promise<undefined> {
  const { port, token } = readyGateway(gateway)
  const sent = request({
    host: '127.0.0.1',
    port,
    method: req.method,
    path: `/${rest}${url.search}`,
    headers: {
      ...forGateway(req.headers, port, token),
      // Node frames a body by itself for some methods only; without a frame it would be the next request.
      ...(req.headers['transfer-encoding'] && { 'transfer-encoding': 'chunked' }),
    },
    // A kept connection may have been closed just now; a new one takes 0.1 ms.
    agent: false,
    signal,
  })
  sent.setTimeout(SILENCE_MS, () => sent.destroy(new Error(`nothing came for ${SILENCE_MS / 1000} s`)))
  const answered = new Promise<IncomingMessage>((resolve, reject) => {
    sent.once('response', resolve).on('error', reject)
  })
  req.pipe(sent)
  const answer = await answered.catch((error) => {
    if (isErrno(error, 'ECONNREFUSED')) throw new AgentdError('not_ready', 'the gateway takes no connection')
    throw new AgentdError('engine', `the gateway did not answer: ${error.message}`, { cause: error })
  })
  res.writeHead(answer.statusCode ?? 502, endToEnd(answer.headers))
  // The head goes at once: an event stream may be silent for long.
  res.flushHeaders()
  await pipe(answer, res)
}

/** @throws AgentdError not_ready */
function readyGateway({ state, port, token }: GatewayHandle): { port: number; token: string } {
  if (state !== 'ready' || token === null) throw new AgentdError('not_ready', 'the gateway is not ready')
  return { port, token }
}

function endToEnd(headers: IncomingHttpHeaders): IncomingHttpHeaders {
  const named = (headers.connection ?? '').split(',').map((name) => name.trim().toLowerCase())
  return only(headers, (name) => !HOP_BY_HOP.includes(name) && !named.includes(name))
}

/** What of a client's headers the gateway gets. */
function forGateway(headers: IncomingHttpHeaders, port: number, token: string): OutgoingHttpHeaders {
  return {
    ...only(endToEnd(headers), (name) => !NOT_FOR_THE_GATEWAY.test(name)),
    host: `127.0.0.1:${port}`,
    authorization: `Bearer ${token}`,
  }
}

function only(headers: IncomingHttpHeaders, keep: (name: string) => boolean): IncomingHttpHeaders {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => keep(name)))
}

function tunnel(
  gateway: GatewayHandle,
  { req, url, rest }: Parameters<Upgrade['handle']>[0],
  socket: Duplex,
  head: Buffer,
): void {
  const { state, port, token } = gateway
  if (state !== 'ready' || token === null)
    return refuseUpgrade(socket, 'not_ready', 'the gateway is not ready')
  const { 'sec-websocket-extensions': _compression, ...headers } = forGateway(req.headers, port, token)
  const asked = request({
    host: '127.0.0.1',
    port,
    path: `/${rest}${url.search}`,
    headers: {
      // No compression: the first message has to be read.
      ...headers,
      connection: 'Upgrade',
      upgrade: 'websocket',
    },
    agent: false,
    timeout: HALF_OPEN_MS * 5,
  })
  // Read from the start, or its end would not be noticed while the gateway is asked.
  const first = new ConnectFrame((message) => rewriteConnect(message, token))
  const sent = new Transform({ transform: (chunk, _encoding, done) => done(null, first.push(chunk)) })
  if (head.length > 0) socket.unshift(head)
  socket.pipe(sent)
  const gone = () => asked.destroy()
  socket.once('end', gone).once('close', gone)
  asked.once('timeout', () => asked.destroy(new Error('no answer')))
  asked.once('error', (error) =>
    refuseUpgrade(socket, 'engine', `the gateway cannot be reached: ${error.message}`),
  )
  asked.once('response', (answer) => {
    answer.destroy()
    refuseUpgrade(socket, 'engine', `the gateway answered ${answer.statusCode}`)
  })
  asked.once('upgrade', (answer, upstream, upstreamHead) => {
    upstream.setTimeout(0)
    const lines = pairs(answer.rawHeaders).map(([name, value]) => `${name}: ${value}`)
    socket.write(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('\r\n')}\r\n\r\n`)
    if (upstreamHead.length > 0) upstream.unshift(upstreamHead)
    socket.off('end', gone).off('close', gone)
    join(socket, sent, upstream)
  })
  asked.end()
}

/** Passes bytes both ways until one side has ended; each waits for the other when it is slower. */
function join(socket: Duplex, sent: Readable, upstream: Duplex): void {
  const close = () => {
    socket.destroy()
    upstream.destroy()
  }
  const ended = (error: unknown) => {
    if (error) close()
    else setTimeout(close, HALF_OPEN_MS).unref()
  }
  socket.once('close', close)
  pipeline(sent, upstream, ended)
  pipeline(upstream, socket, ended)
}

function pairs(raw: string[]): [string, string][] {
  return raw.flatMap((name, i) => (i % 2 === 0 ? [[name, raw[i + 1] ?? ''] as [string, string]] : []))
}
