/** Plain HTTP through the proxy: one request or one WebSocket upgrade, on its own connection. */
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { pipeline } from 'node:stream/promises'
import { type Destination, formatDestination } from './destination.ts'
import { ProxyError } from './dial.ts'
import { joinSockets } from './listener.ts'

export interface ForwardOptions {
  destination: Destination
  /** Path and query, as the client wrote them. */
  path: string
  /** An open connection to the destination. */
  upstream: Socket
  /** The client's connection if it asks for an upgrade, and the bytes it sent after the request. */
  upgrade?: { client: Socket; head: Buffer } | undefined
  /** Maximum time without a byte. */
  idleMs: number
  headerBytes: number
}

/** RFC 9110, 7.6.3. */
const VIA = ['Via', '1.1 berth']

/**
 * Forwards a request and returns the response; an upgrade that the upstream accepts becomes a tunnel. Resolves when the
 * exchange is over.
 * @throws ProxyError 400, 502 or 504, unless a response has begun.
 */
export async function forward(
  req: IncomingMessage,
  res: ServerResponse,
  options: ForwardOptions,
): Promise<void> {
  const { upstream, idleMs } = options
  const name = formatDestination(options.destination)
  upstream.setTimeout(idleMs, () => {
    upstream.destroy(new ProxyError(504, `${name} was silent for ${idleMs / 1000} s`))
  })
  // A client that leaves closes the upstream connection, whatever its state.
  res.once('close', () => upstream.destroy())

  const answer = await send(req, options).catch((error: NodeJS.ErrnoException) => {
    if (error instanceof ProxyError) throw error
    throw new ProxyError(502, `${name} sent no valid response: ${error.code ?? error.message}`)
  })
  const { response, upgradeHead } = answer
  if (options.upgrade && upgradeHead) {
    const { client, head } = options.upgrade
    res.detachSocket(client)
    client.write(switchingProtocols(response), 'latin1')
    client.write(upgradeHead)
    upstream.write(head)
    return joinSockets(client, upstream, idleMs)
  }
  // The upstream may respond before the body ends. The rest must not be parsed as the next request.
  if (!req.complete) res.shouldKeepAlive = false
  res.sendDate = false
  try {
    const headers = [...withoutHopByHop(response.rawHeaders), ...VIA]
    res.writeHead(response.statusCode ?? 0, response.statusMessage ?? '', headers)
  } catch (error) {
    throw new ProxyError(502, `${name} sent no valid response: ${(error as Error).message}`)
  }
  await pipeline(response, res).catch(() => {
    // The response was cut short. The client notices, because its connection is closed too.
  })
}

interface UpstreamResponse {
  response: IncomingMessage
  /** For an upgrade: what was read past the response's head. */
  upgradeHead?: Buffer
}

/** Sends the request with its body, and resolves when a response or an upgrade begins. */
function send(req: IncomingMessage, options: ForwardOptions): Promise<UpstreamResponse> {
  return new Promise((resolve, reject) => {
    const outgoing = openRequest(req, options)
    outgoing.on('error', reject)
    outgoing.once('response', (response) => resolve({ response }))
    outgoing.once('upgrade', (response, _socket, upgradeHead) => {
      // An upgrade that nobody requested: no response can follow.
      if (options.upgrade) resolve({ response, upgradeHead })
      else reject(new ProxyError(502, `${formatDestination(options.destination)} sent an upgrade unasked`))
    })
    req.pipe(outgoing)
  })
}

function openRequest(req: IncomingMessage, options: ForwardOptions): ClientRequest {
  const { destination, path, upstream, upgrade, headerBytes } = options
  const host = formatDestination(destination).replace(/:80$/, '')
  const connection = upgrade ? ['Upgrade', 'Upgrade', req.headers.upgrade ?? ''] : ['close']
  const framing = 'transfer-encoding' in req.headers ? ['Transfer-Encoding', 'chunked'] : []
  try {
    return request({
      createConnection: () => upstream,
      method: req.method,
      path,
      maxHeaderSize: headerBytes,
      // Uses the target's host, whatever `Host` the client sent (RFC 9112, 3.2.2). The proxy itself has already
      // answered `Expect`.
      headers: [
        'Host',
        host,
        ...withoutHopByHop(req.rawHeaders, ['host', 'expect']),
        ...VIA,
        ...framing,
        'Connection',
        ...connection,
      ],
    })
  } catch (error) {
    throw new ProxyError(400, `The request cannot be passed on: ${(error as Error).message}`)
  }
}

function switchingProtocols(response: IncomingMessage): string {
  const headers = [...withoutHopByHop(response.rawHeaders), ...VIA]
  headers.push('Connection', 'Upgrade', 'Upgrade', response.headers.upgrade ?? '')
  const lines = headers.map((text, i) => (i % 2 === 0 ? `${text}: ` : `${text}\r\n`)).join('')
  return `HTTP/1.1 101 Switching Protocols\r\n${lines}\r\n`
}

// The parts of an HTTP/1.1 message that a proxy passes on (RFC 9110, 7.6).

/** Headers as Node has them raw: name, value, name, value. Their order and repeated ones are kept. */
type RawHeaders = readonly string[]

/** For one connection only (RFC 9110, 7.6.1). The next connection gets its own body framing. */
const HOP_BY_HOP = [
  'connection',
  'keep-alive',
  'proxy-authenticate',
  'proxy-authentication-info',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
]

/** The headers to forward: all except hop-by-hop headers, those that `Connection` names, and those in `alsoDropped`. */
export function withoutHopByHop(headers: RawHeaders, alsoDropped: readonly string[] = []): string[] {
  const dropped = new Set([...HOP_BY_HOP, ...alsoDropped])
  for (const [name, value] of pairs(headers)) {
    if (name.toLowerCase() !== 'connection') continue
    for (const option of value.split(',')) dropped.add(option.trim().toLowerCase())
  }
  // A malicious `Connection` could name it, and the body would lose its length.
  dropped.delete('content-length')
  return pairs(headers)
    .filter(([name]) => !dropped.has(name.toLowerCase()))
    .flat()
}

function pairs(headers: RawHeaders): [name: string, value: string][] {
  return Array.from({ length: headers.length / 2 }, (_, i) => [
    headers[2 * i] ?? '',
    headers[2 * i + 1] ?? '',
  ])
}
