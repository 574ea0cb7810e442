/**
 * Requests from within this process, for a caller who is already authenticated. They pass the steps of every request
 * (rights, validation, audit, bounds), on connections in memory.
 */
import { createServer, type IncomingMessage, type RequestListener, request, type Server } from 'node:http'
import { type Duplex, duplexPair } from 'node:stream'
import type { Request, Response } from 'express'
import type { Principal } from './principal.ts'

/** The caller of a connection in memory, and `OpenCalls.changeCount` before its key was checked. */
interface Vouched {
  principal: Principal
  since: number
}

const vouched = new WeakMap<Duplex, Vouched>()

/** The caller who is known without a key, because the request comes from this process. */
export const callerOfConnection = ({ socket }: IncomingMessage): Vouched | undefined => vouched.get(socket)

export interface InnerRequest {
  method: string
  /** The path and the query. */
  path: string
  headers?: Record<string, string>
  body?: string | Uint8Array | undefined
  signal: AbortSignal
}

export class InProcess {
  readonly #server: Server

  constructor(app: RequestListener) {
    this.#server = createServer({ requestTimeout: 0 }, app)
  }

  /**
   * Sends a request for the caller of `outer`. It is a part of that request: it counts neither towards the limit per
   * minute nor as a use of the key.
   */
  async send(
    outer: Request,
    { method, path, headers, body, signal }: InnerRequest,
  ): Promise<IncomingMessage> {
    const { principal, since } = (outer.res as Response).locals
    const [client, connection] = duplexPair()
    vouched.set(connection, { principal, since })
    // Routes read these from a socket: the address for the audit, and the scheme of links.
    const socket = { remoteAddress: outer.ip, encrypted: outer.secure, bytesRead: 0, bytesWritten: 0 }
    this.#server.emit('connection', Object.assign(connection, socket))
    return new Promise((resolve, reject) => {
      const inner = request({
        createConnection: () => client,
        method,
        path,
        signal,
        headers: {
          ...headers,
          host: outer.host,
          'user-agent': outer.get('user-agent') ?? '',
          ...(body !== undefined && { 'content-length': `${Buffer.byteLength(body)}` }),
        },
      })
      inner.once('response', resolve).once('error', reject).end(body)
    })
  }
}
