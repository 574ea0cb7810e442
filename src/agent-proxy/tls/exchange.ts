/** One request on a terminated connection: what it must not be, the values that it gets, and what its response hides. */
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { rawEndToEnd, switchingProtocols } from '../../../agentd/relay.ts'
import { type Destination, parseDestination } from '../destination.ts'
import { ProxyError } from '../dial.ts'
import { plainPath } from '../policy/path.ts'
import type { Visit } from '../policy/visit.ts'
import type { Answer, Asked, UpstreamRequest } from './asked.ts'
import { grpcHead, maskFrames, webSocketHead } from './frames.ts'
import { insertSecrets } from './insert.ts'
import { maskStream, maskText, type Pattern, patternsOf } from './mask.ts'
import { StaleConnection, type Upstream, type UpstreamResponse } from './upstream.ts'

export interface Terms {
  destination: Destination
  /** The name in the client's TLS handshake; undefined if it sent none. */
  serverName: string | undefined
  visit: Visit
  upstream: Upstream
  /** Maximum time without a byte. */
  idleMs: number
}

/** RFC 9110, 7.6.3. */
const VIA = ['Via', '1.1 berth']
/** Headers with which some servers read another method or path than the request has. */
const OVERRIDES = [
  'x-http-method-override',
  'x-http-method',
  'x-method-override',
  'x-original-url',
  'x-rewrite-url',
]
/** Parts of a body, and compression: values in them could not be found. */
const UNMASKABLE = [
  'accept-encoding',
  'range',
  'if-range',
  'sec-websocket-extensions',
  'grpc-accept-encoding',
]

/** Handles a request until it ends. @throws ProxyError if it is refused or fails. */
export async function exchange(asked: Asked, terms: Terms): Promise<void> {
  const { visit, upstream } = terms
  checkHost(asked, terms)
  const { secrets } = visit
  checkForm(asked, secrets.length > 0)
  using _request = visit.admit(asked)
  if (visit.isLimited) checkOverrides(asked)
  const patterns = patternsOf(secrets)
  const { target, headers } = insertSecrets(asked, secrets)
  const { response, upgraded } = await send(asked, upstream, {
    method: asked.method,
    target,
    headers: [...(patterns.length > 0 ? identityOnly(headers) : headers), ...VIA],
    body: asked.hasBody ? asked.body : undefined,
    onOver: asked.onOver,
    ...(asked.takeWebSocket && { upgrade: 'websocket' }),
  })
  if (asked.isOver()) return void response.destroy()
  const { name } = upstream
  const passed = [...rawEndToEnd(response, (name) => !name.startsWith(':')), ...VIA]
  const shown = passed.map((text) => maskText(patterns, text))
  if (upgraded) return joinWebSocket(asked, { response, ...upgraded }, { ...terms, headers: shown, patterns })
  const hasBody =
    !response.isEmpty && asked.method !== 'HEAD' && ![204, 304].includes(response.statusCode ?? 0)
  if (patterns.length > 0 && hasBody) checkCoding(response, name)
  try {
    await asked.pass({
      status: response.statusCode ?? 0,
      message: maskText(patterns, response.statusMessage ?? ''),
      headers: shown,
      hasBody,
      body: response,
      trailers: () => response.rawTrailers.map((text) => maskText(patterns, text)),
      ...(patterns.length > 0 &&
        hasBody && { through: asked.isGrpc ? maskFrames(patterns, grpcHead) : maskStream(patterns) }),
    })
  } catch (error) {
    response.destroy()
    throw new ProxyError(502, `${name} sent no valid response: ${(error as Error).message}`)
  }
}

/** @throws ProxyError 421 if the request names another host than the tunnel. */
function checkHost({ authorities }: Asked, { destination, serverName }: Terms): void {
  const plain = (host: string) => host.toLowerCase().replace(/\.$/, '')
  const expected = plain(destination.host)
  if (plain(serverName ?? '') !== expected)
    throw new ProxyError(421, `The name in TLS is not ${expected}, for which this tunnel was opened`)
  const isIt = (authority: string) => {
    const named = parseDestination(authority, 443)
    return named && plain(named.host) === expected && named.port === destination.port
  }
  if (authorities.length === 0 || !authorities.every(isIt))
    throw new ProxyError(421, `The request is not for ${expected}, for which this tunnel was opened`)
}

/** @throws ProxyError 400, 405 */
function checkForm({ method, target, asksForUpgrade, takeWebSocket }: Asked, hasSecrets: boolean): void {
  if (method === 'CONNECT' || (hasSecrets && method === 'TRACE'))
    throw new ProxyError(405, `${method} is not possible through a connection that Berth reads`)
  if (!target.startsWith('/') && !(target === '*' && method === 'OPTIONS'))
    throw new ProxyError(400, 'The target of the request is not a path')
  if (hasSecrets && plainPath(target, true) === undefined)
    throw new ProxyError(400, 'Servers may read this path in several ways')
  if (asksForUpgrade && !takeWebSocket) throw new ProxyError(400, 'Only upgrades to WebSocket are possible')
}

/** @throws ProxyError 400 */
function checkOverrides({ headers }: Asked): void {
  const override = headers.find((name, i) => i % 2 === 0 && OVERRIDES.includes(name.toLowerCase()))
  if (override)
    throw new ProxyError(400, `The egress policy has rules for this host, so ${override} is not possible`)
}

function identityOnly(headers: string[]): string[] {
  const kept = headers.filter((_, i) => !UNMASKABLE.includes((headers[i - (i % 2)] as string).toLowerCase()))
  return [...kept, 'Accept-Encoding', 'identity']
}

/** @throws ProxyError 502 if the body is compressed, so that values could not be found in it. */
function checkCoding({ headers }: Answer, name: string): void {
  const codings = [headers['content-encoding'], headers['grpc-encoding']]
  const isPlain = codings.every((coding) => !coding || coding === 'identity')
  if (!isPlain || !/^chunked$/i.test(headers['transfer-encoding'] ?? 'chunked'))
    throw new ProxyError(502, `${name} sent a compressed response, in which no secret can be masked`)
}

/**
 * Sends a request. If the host closed a kept connection just as it was used, sends it again, unless it has a body.
 * @throws ProxyError
 */
async function send(asked: Asked, upstream: Upstream, request: UpstreamRequest): Promise<UpstreamResponse> {
  const ofHttp2 = asked.isGrpc ? await upstream.sendHttp2(request) : undefined
  if (ofHttp2) return ofHttp2
  for (;;) {
    try {
      return await upstream.send(request)
    } catch (error) {
      if (!(error instanceof StaleConnection)) throw error
      if (request.body) {
        asked.abandon()
        throw new ProxyError(502, `${upstream.name} closed the connection`)
      }
    }
  }
}

interface Upgraded {
  response: Answer
  socket: Duplex
  head: Buffer
}

/** Joins a WebSocket to that of the host, whose messages are masked. */
async function joinWebSocket(
  { takeWebSocket }: Asked,
  { response, socket, head }: Upgraded,
  { upstream, idleMs, headers, patterns }: Terms & { headers: string[]; patterns: readonly Pattern[] },
): Promise<void> {
  if (patterns.length > 0 && response.headers['sec-websocket-extensions']) {
    socket.destroy()
    throw new ProxyError(502, `${upstream.name} compresses a WebSocket, in which no secret can be masked`)
  }
  const taken = takeWebSocket?.()
  if (!taken) return void socket.destroy()
  const { client } = taken
  client.write(switchingProtocols(response.headers.upgrade ?? '', headers))
  socket.unshift(head)
  socket.write(taken.head)
  for (const one of [client, socket as Socket]) one.setTimeout(idleMs, () => one.destroy())
  const masked = patterns.length > 0 ? socket.pipe(maskFrames(patterns, webSocketHead)) : socket
  masked.on('error', () => client.destroy())
  masked.pipe(client).pipe(socket)
  // The end of the host's messages passes through the mask; anything else ends both at once.
  socket.once('close', () => socket.readableEnded || client.destroy())
  await new Promise<void>((resolve) => {
    client.once('close', () => {
      socket.destroy()
      resolve()
    })
    if (client.destroyed) resolve()
  })
}
