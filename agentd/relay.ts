/**
 * One HTTP relay for agentd, the agent proxy, and Berth in front of them: which headers pass, how bodies are framed and
 * streamed, and how upgraded connections are joined. Each adds its own rules about headers.
 */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from 'node:http'
import type { OnReadOpts, Socket } from 'node:net'
import type { Readable, Transform, Writable } from 'node:stream'
import { pipeline } from 'node:stream/promises'

/** Headers for one connection only (RFC 9110, 7.6.1). The next connection gets its own body framing. */
const HOP_BY_HOP = new Set([
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
])

/** Accepts headers by their name in lower case. */
type Keep = (name: string) => boolean

/** The headers to forward: all that `keep` accepts, except hop-by-hop headers and those that `Connection` names. */
export function endToEnd(headers: IncomingHttpHeaders, keep: Keep = () => true): IncomingHttpHeaders {
  const isForwarded = forwardedBy(headers)
  return Object.fromEntries(Object.entries(headers).filter(([name]) => isForwarded(name) && keep(name)))
}

/** The same as names and values in turn, as Node has them raw: in their order and case, and with repeated ones. */
export function rawEndToEnd(
  { headers, rawHeaders }: Pick<IncomingMessage, 'headers' | 'rawHeaders'>,
  keep: Keep = () => true,
): string[] {
  const isForwarded = forwardedBy(headers)
  return rawHeaders.filter((_text, i) => {
    const name = (rawHeaders[i - (i % 2)] as string).toLowerCase()
    return isForwarded(name) && keep(name)
  })
}

function forwardedBy({ connection = '' }: IncomingHttpHeaders): Keep {
  const dropped = new Set(connection.split(',').map((option) => option.trim().toLowerCase()))
  // A malicious `Connection` could name it, and the body would lose its length.
  dropped.delete('content-length')
  return (name) => !HOP_BY_HOP.has(name) && !dropped.has(name)
}

/** True for a request with a body. */
export const hasBody = ({ headers }: IncomingMessage): boolean =>
  'transfer-encoding' in headers || Number(headers['content-length'] ?? 0) > 0

/**
 * The headers that frame the body of a forwarded request. Node adds them only for some methods; without them, the body
 * would be parsed as the next request.
 */
export function bodyFrame(req: IncomingMessage): Record<string, string> {
  if (!hasBody(req)) return {}
  const length = req.headers['content-length']
  return length === undefined ? { 'transfer-encoding': 'chunked' } : { 'content-length': length }
}

/** A body that is received. */
export type Body = Readable & {
  /** True once it is received whole. */
  readonly complete: boolean
  setTimeout(ms: number, late: () => void): unknown
}

export interface PassOptions {
  /** Changes the body. */
  through?: Transform
  /** How long either side may stall. */
  idleMs?: number
  /** Ends the response. */
  signal?: AbortSignal
}

/**
 * Sends the head of `res`, and streams the body of `answer`. Resolves when everything is sent, or one of them has
 * closed, which closes the other: a truncated response does not look complete. Does not use Node's `pipeline`, which
 * creates and aborts a signal for each call: that costs more than a small body.
 */
export function passBody(
  answer: Body,
  res: ServerResponse,
  { through, idleMs, signal }: PassOptions = {},
): Promise<void> {
  if (idleMs !== undefined) {
    answer.setTimeout(idleMs, () => answer.destroy())
    res.setTimeout(idleMs, () => res.destroy())
  }
  signal?.addEventListener('abort', () => res.destroy(), { once: true })
  // Sends the head together with the part of the body that has already arrived, without waiting for more: an event
  // stream may be silent for long. Corks the connection, because Node mixes up the chunks of a corked response.
  const { socket } = res
  const release = () => socket?.uncork()
  socket?.cork()
  res.flushHeaders()
  setImmediate(release)
  answer.on('error', () => {})
  answer.once('close', () => {
    if (answer.complete) return
    release()
    res.destroy()
  })
  if (through) answer.pipe(through.on('error', () => res.destroy())).pipe(res)
  else answer.pipe(res)
  return new Promise((resolve) => {
    const over = () => {
      answer.destroy()
      through?.destroy()
      resolve()
    }
    if (res.closed) over()
    else res.once('close', over)
  })
}

/** The head of a response that switches protocols. @param headers names and values in turn. */
export function switchingProtocols(protocol: string, headers: string[] = []): Buffer {
  const lines = [...headers, 'Connection', 'Upgrade', 'Upgrade', protocol].map((text, i) =>
    i % 2 === 0 ? `${text}: ` : `${text}\r\n`,
  )
  return Buffer.from(`HTTP/1.1 101 Switching Protocols\r\n${lines.join('')}\r\n`, 'latin1')
}

const KEEP_ALIVE_MS = 60_000

export interface JoinOptions {
  /** The source of bytes from the client, if something reads them first. */
  from?: Readable
  /** Maximum time without a byte. Default: no limit. */
  idleMs?: number
  /** How long a side that has ended its half may wait for the other's. Default: no limit. */
  halfOpenMs?: number
}

/**
 * Joins two connections, and resolves when both are closed. Each direction ends on its own, and each side waits for a
 * slower one. A connection that breaks takes the other with it.
 */
export async function joinSockets(
  client: Socket,
  upstream: Socket,
  { from = client, idleMs = 0, halfOpenMs }: JoinOptions = {},
): Promise<void> {
  const close = () => {
    client.destroy()
    upstream.destroy()
  }
  for (const socket of [client, upstream]) {
    // Detects a silently dead peer sooner than the idle limit does.
    socket.setKeepAlive(true, KEEP_ALIVE_MS)
    socket.setNoDelay(true)
    socket.setTimeout(idleMs, () => socket.destroy())
  }
  // Otherwise a client that breaks would not end `from`.
  if (from !== client) client.once('close', close)
  const ended = () => {
    if (halfOpenMs !== undefined) setTimeout(close, halfOpenMs).unref()
  }
  await Promise.all([
    pipeline(from, upstream).then(ended, close),
    pipeline(upstream, client).then(ended, close),
  ])
  close()
}

/** For requests and pages: every open connection has one. */
const SMALL = 16_384
/** For a connection that fills the small one: fewer and larger reads. */
const LARGE = 262_144

/**
 * The option `onread` of `net.connect` for a connection whose bytes all go to `to`, read into reused memory. Node's
 * streams allocate new memory for each read, and collecting it costs more than the bytes. The connection's user still
 * has to forward its end and errors, with {@link joinSockets}.
 * @param resume resumes reading, once `to` has consumed the bytes.
 */
export function passTo(to: Writable, resume: () => void): OnReadOpts {
  let next = Buffer.allocUnsafeSlow(SMALL)
  let writes = 0
  return {
    buffer: () => next,
    callback(size, memory) {
      const bytes = memory.subarray(0, size)
      const write = ++writes
      let isWaiting = false
      to.write(bytes, () => {
        if (isWaiting && write === writes) resume()
      })
      if (size === SMALL && next.length === SMALL) next = Buffer.allocUnsafeSlow(LARGE)
      else if (size < SMALL && next.length === LARGE) next = Buffer.allocUnsafeSlow(SMALL)
      // Waits until the system has taken everything, because the memory is in use until then.
      isWaiting = to.writableLength > 0
      return !isWaiting
    },
  }
}
