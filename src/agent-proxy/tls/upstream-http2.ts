/** The connection of a terminated tunnel to its host in HTTP/2, for gRPC: its calls end with trailers. */
import {
  type ClientHttp2Session,
  type ClientHttp2Stream,
  constants,
  type IncomingHttpHeaders,
  connect as openSession,
} from 'node:http2'
import type { TLSSocket } from 'node:tls'
import { ProxyError } from '../dial.ts'
import type { Answer, UpstreamRequest } from './asked.ts'
import { rawToHeaders } from './http2.ts'

export interface Http2UpstreamOptions {
  /** Host and port. */
  name: string
  /** Opens a connection to the host, which may also offer HTTP/1.1. @throws ProxyError */
  connect(): Promise<TLSSocket>
  /** Maximum time without a byte. */
  idleMs: number
}

export class Http2Upstream {
  readonly #options: Http2UpstreamOptions
  #session: Promise<ClientHttp2Session | undefined> | undefined

  constructor(options: Http2UpstreamOptions) {
    this.#options = options
  }

  /**
   * Sends a request with its body, and resolves when a response begins; with undefined if the host speaks no HTTP/2.
   * @throws ProxyError 502, 504
   */
  async send(asked: UpstreamRequest): Promise<Answer | undefined> {
    const session = await this.#open()
    if (!session) return undefined
    const { name, idleMs } = this.#options
    const failed = (why: string) => new ProxyError(502, `${name} sent no valid response: ${why}`)
    return new Promise((resolve, reject) => {
      const head = {
        ':method': asked.method,
        ':scheme': 'https',
        ':authority': name.replace(/:443$/, ''),
        ':path': asked.target,
        ...rawToHeaders(asked.headers),
        te: 'trailers',
      }
      const stream = session.request(head, { endStream: !asked.body })
      stream.setTimeout(idleMs, () => {
        reject(new ProxyError(504, `${name} was silent for ${idleMs / 1000} s`))
        stream.close(constants.NGHTTP2_CANCEL)
      })
      stream.on('error', (error: NodeJS.ErrnoException) => reject(failed(error.code ?? error.message)))
      stream.once('close', () => reject(failed('closed')))
      stream.once('response', (headers, flags, rawHeaders) =>
        resolve(answerOf(stream, headers, { flags, rawHeaders: rawHeaders as string[] })),
      )
      // A client that leaves ends the call.
      asked.onOver(() => stream.close(constants.NGHTTP2_CANCEL))
      asked.body?.pipe(stream)
    })
  }

  close(): void {
    this.#session?.then((session) => session?.destroy()).catch(() => {})
  }

  async #open(): Promise<ClientHttp2Session | undefined> {
    const known = await this.#session?.catch(() => undefined)
    if (known && !known.closed && !known.destroyed) return known
    this.#session = this.#connect()
    return this.#session
  }

  async #connect(): Promise<ClientHttp2Session | undefined> {
    const { name, connect, idleMs } = this.#options
    const socket = await connect()
    if (socket.alpnProtocol !== 'h2') return void socket.destroy()
    const session = openSession(`https://${name}`, {
      createConnection: () => socket,
      settings: { enablePush: false },
    })
    session.on('error', () => {})
    session.setTimeout(idleMs, () => session.destroy())
    return session
  }
}

/** The response in the form of one in HTTP/1.1. */
function answerOf(
  stream: ClientHttp2Stream,
  headers: IncomingHttpHeaders & { ':status'?: number | undefined },
  { flags, rawHeaders }: { flags: number; rawHeaders: string[] },
): Answer {
  const answer = Object.assign(stream, {
    statusCode: headers[':status'],
    statusMessage: '',
    headers,
    rawHeaders,
    rawTrailers: [] as string[],
    isEmpty: (flags & constants.NGHTTP2_FLAG_END_STREAM) !== 0,
  })
  stream.on('trailers', (_headers, _flags, raw) => {
    answer.rawTrailers = raw as unknown as string[]
  })
  return Object.defineProperty(answer, 'complete', {
    get: () => stream.readableEnded && stream.rstCode === constants.NGHTTP2_NO_ERROR,
  }) as never
}
