/** Plain HTTP through the proxy: one request or one WebSocket upgrade, on its own connection. */
import { type ClientRequest, type IncomingMessage, request, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { joinSockets, passBody, rawEndToEnd, switchingProtocols } from '../../agentd/relay.ts'
import { type Destination, formatDestination } from './destination.ts'
import { ProxyError } from './dial.ts'

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
    client.write(switchingProtocols(response.headers.upgrade ?? '', [...rawEndToEnd(response), ...VIA]))
    client.write(upgradeHead)
    upstream.write(head)
    return joinSockets(client, upstream, { idleMs })
  }
  // The upstream may respond before the body ends. The rest must not be parsed as the next request.
  if (!req.complete) res.shouldKeepAlive = false
  res.sendDate = false
  try {
    const headers = [...rawEndToEnd(response), ...VIA]
    res.writeHead(response.statusCode ?? 0, response.statusMessage ?? '', headers)
  } catch (error) {
    throw new ProxyError(502, `${name} sent no valid response: ${(error as Error).message}`)
  }
  await passBody(response, res)
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
        ...rawEndToEnd(req, (name) => name !== 'host' && name !== 'expect'),
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
