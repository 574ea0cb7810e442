/** Requests of HTTP/2 on terminated connections. */
import {
  constants,
  type IncomingHttpHeaders,
  type OutgoingHttpHeaders,
  performServerHandshake,
  type ServerHttp2Session,
  type ServerHttp2Stream,
} from 'node:http2'
import type { Socket } from 'node:net'
import { type Body, rawEndToEnd } from '../../../agentd/relay.ts'
import type { ProxyError } from '../dial.ts'
import type { Answered, Asked } from './asked.ts'

export interface Http2Limits {
  headerBytes: number
  /** Requests at once on a connection. */
  streams: number
}

/** Serves a connection. @param exchange never rejects. */
export function serveHttp2(
  socket: Socket,
  { headerBytes, streams }: Http2Limits,
  exchange: (asked: Asked) => void,
): ServerHttp2Session {
  const session = performServerHandshake(socket, {
    settings: { maxConcurrentStreams: streams, maxHeaderListSize: headerBytes, enablePush: false },
    maxHeaderListPairs: 1024,
  })
  session.on('error', () => {})
  session.on('stream', (stream, headers, _flags, rawHeaders) => {
    stream.on('error', () => {})
    exchange(asked(stream, headers, rawHeaders))
  })
  return session
}

function asked(stream: ServerHttp2Stream, headers: IncomingHttpHeaders, rawHeaders: string[]): Asked {
  const valuesOf = (name: string) => rawHeaders.filter((_, i) => i % 2 === 1 && rawHeaders[i - 1] === name)
  const isForwarded = (name: string) =>
    !name.startsWith(':') && !['host', 'expect', 'cookie', 'http2-settings'].includes(name)
  const cookies = valuesOf('cookie')
  return {
    method: String(headers[':method'] ?? ''),
    target: String(headers[':path'] ?? ''),
    authorities: [...valuesOf(':authority'), ...valuesOf('host')],
    headers: [
      ...rawEndToEnd({ headers, rawHeaders }, isForwarded),
      // HTTP/2 may split it (RFC 9113, 8.2.3).
      ...(cookies.length > 0 ? ['cookie', cookies.join('; ')] : []),
    ],
    hasBody: !stream.endAfterHeaders,
    body: withComplete(stream),
    asksForUpgrade: false,
    isGrpc: /^application\/grpc(\+|;|$)/i.test(headers['content-type'] ?? ''),
    isOver: () => stream.closed || stream.destroyed,
    onOver: (over) => void stream.once('close', over),
    pass: (answer) => pass(stream, answer),
    refuse: (refusal) => refuse(stream, refusal),
    abandon: () => stream.close(constants.NGHTTP2_INTERNAL_ERROR),
  }
}

const withComplete = (stream: ServerHttp2Stream): Body =>
  Object.defineProperty(stream, 'complete', { get: () => stream.readableEnded && !stream.aborted }) as never

function pass(stream: ServerHttp2Stream, { body, through, trailers, ...answer }: Answered): Promise<void> {
  const cut = () => stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  body.on('error', () => {})
  body.once('close', () => body.complete || cut())
  stream.once('wantTrailers', () => stream.sendTrailers(rawToHeaders(trailers())))
  const frame = answer.hasBody ? { waitForTrailers: true } : { endStream: true }
  stream.respond({ ...rawToHeaders(answer.headers), ':status': answer.status }, {
    sendDate: false,
    ...frame,
  } as object)
  if (!answer.hasBody) body.resume()
  else if (through) body.pipe(through.on('error', cut)).pipe(stream)
  else body.pipe(stream)
  return new Promise((resolve) => {
    const over = () => {
      body.destroy()
      through?.destroy()
      resolve()
    }
    if (stream.closed) over()
    else stream.once('close', over)
  })
}

/** Headers as an object, from names and values in turn. */
export function rawToHeaders(raw: string[]): OutgoingHttpHeaders {
  const headers: Record<string, string | string[]> = Object.create(null)
  for (let i = 0; i < raw.length; i += 2) {
    const name = (raw[i] as string).toLowerCase()
    const value = raw[i + 1] as string
    headers[name] = name in headers ? [headers[name] as string, value].flat() : value
  }
  return headers
}

function refuse(stream: ServerHttp2Stream, { status, message }: ProxyError): void {
  if (stream.headersSent || stream.closed) return void stream.close(constants.NGHTTP2_INTERNAL_ERROR)
  stream.respond({ ':status': status, 'content-type': 'text/plain; charset=utf-8' })
  stream.end(`${message}\n`)
  // The rest of a body is not read.
  if (!stream.readableEnded) stream.resume()
}
