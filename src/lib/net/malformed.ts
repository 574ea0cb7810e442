/** Responses to bytes that Node's parser rejects as a request. */
import { type Server, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

/** How long a client may keep sending after its response. */
export const LINGER_MS = 10_000

const STATUSES: Record<string, number> = { ERR_HTTP_REQUEST_TIMEOUT: 408, HPE_HEADER_OVERFLOW: 431 }

/**
 * Responds to malformed, late and oversized requests with 400, 408 and 431, discards the rest, and closes the
 * connection. If the connection were closed while the client still sends, it would be reset, and the client might never
 * see the response (RFC 9112, section 9.6).
 * @param mediaType of the bodies. @param body of a response, by status.
 */
export function refuseMalformed(server: Server, mediaType: string, body: (status: number) => string): void {
  const latest = new WeakMap<Socket, ServerResponse>()
  const refused = new WeakSet<Socket>()
  server.prependListener('request', ({ socket }, res) => void latest.set(socket, res))
  server.on('clientError', (error: NodeJS.ErrnoException, client) => {
    const socket = client as Socket
    // The parser reports each further piece.
    if (refused.has(socket)) return
    refused.add(socket)
    const last = latest.get(socket)
    const open = last?.closed ? undefined : last
    // The client could take this for a part of a response that has begun. A response without a socket waits for another.
    const hasBegun = open && (open.headersSent || open.socket !== socket)
    if (!socket.writable || hasBegun) return void socket.destroy()
    const status = STATUSES[error.code ?? ''] ?? 400
    const text = body(status)
    const head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${mediaType}\r\nContent-Length: ${Buffer.byteLength(text)}`
    socket.end(`${head}\r\nConnection: close\r\n\r\n${text}`, () => {
      // Its request would wait for the rest of the body.
      if (open) socket.destroy()
    })
    const cut = setTimeout(() => socket.destroy(), LINGER_MS)
    socket.once('close', () => clearTimeout(cut))
  })
}
