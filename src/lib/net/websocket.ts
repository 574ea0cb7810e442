/** The parts of WebSockets (RFC 6455) that a proxy needs to know when it forwards their bytes. */
import { type IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** True for a WebSocket request. Other upgrades (h2c) are optional: clients continue without them. */
export function isWebSocket(req: IncomingMessage): boolean {
  const bodiless = !('content-length' in req.headers || 'transfer-encoding' in req.headers)
  return bodiless && req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket'
}

/**
 * A response to a request whose connection Node's server has released, for an upgrade or a CONNECT. If an earlier
 * request on the connection has no response yet, a response would be out of order: closes the connection instead, and
 * returns undefined.
 */
export function detachedResponse(req: IncomingMessage, socket: Socket): ServerResponse | undefined {
  const res = new ServerResponse(req)
  res.shouldKeepAlive = false
  try {
    res.assignSocket(socket)
  } catch {
    socket.destroy()
    return undefined
  }
  res.once('finish', () => {
    // Unread bytes would make the connection end in a reset, before the client has seen the response.
    socket.resume()
    socket.destroySoon()
  })
  return res
}

/** The reason why a connection is closed (RFC 6455, 7.4.1, and IANA's registry). */
export const CLOSE = {
  goingAway: 1001,
  policyViolation: 1008,
  internalError: 1011,
  serviceRestart: 1012,
  tryAgainLater: 1013,
} as const
export type CloseCode = (typeof CLOSE)[keyof typeof CLOSE]

const CLOSE_OPCODE = 0x8

/** A Close frame from a server: unmasked. */
export function closeFrame(code: CloseCode, reason: string): Buffer {
  const payload = Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason).subarray(0, 123)])
  return Buffer.concat([Buffer.from([0x80 | CLOSE_OPCODE, payload.length]), payload])
}

/** A Ping frame from a server. */
export const PING_FRAME = Buffer.from([0x89, 0])

/** A text of up to 64 KiB from a server: one unmasked frame. */
export function textFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const { length } = payload
  const head = length < 126 ? [0x81, length] : [0x81, 126, length >> 8, length & 0xff]
  return Buffer.concat([Buffer.from(head), payload])
}

/** The longest frame head: two bytes, eight of length, four of mask. */
const HEAD_BYTES = 14

/**
 * Follows a stream of frames (RFC 6455, 5.2) to know where another frame may be inserted. A chunk may contain tens of
 * thousands of frames without a payload, so it allocates nothing per frame.
 */
export class FrameScanner {
  /** The received part of a frame's head. */
  readonly #head = Buffer.alloc(HEAD_BYTES)
  #headBytes = 0
  /** Remaining bytes of the current frame's payload. */
  #left = 0
  #sawClose = false

  /** True if the next byte would begin a frame. */
  get isBetweenFrames(): boolean {
    return this.#left === 0 && this.#headBytes === 0
  }

  /** True once a Close frame has begun: no other frame may follow it. */
  get sawClose(): boolean {
    return this.#sawClose
  }

  push(chunk: Buffer): void {
    let left = this.#left
    let at = 0
    while (at < chunk.length) {
      if (left > 0) {
        const passed = Math.min(left, chunk.length - at)
        left -= passed
        at += passed
      } else if (this.#headBytes === 0 && at + HEAD_BYTES <= chunk.length) {
        left = this.#readHead(chunk, at)
        at += headSize(chunk[at + 1] as number)
      } else {
        // A head that may be split is assembled first.
        const head = this.#head
        head[this.#headBytes++] = chunk[at++] as number
        if (this.#headBytes < 2 || this.#headBytes < headSize(head[1] as number)) continue
        left = this.#readHead(head, 0)
        this.#headBytes = 0
      }
    }
    this.#left = left
  }

  /** Processes a complete head, and returns the length of its frame's payload. */
  #readHead(bytes: Buffer, at: number): number {
    if (((bytes[at] as number) & 0xf) === CLOSE_OPCODE) this.#sawClose = true
    const short = (bytes[at + 1] as number) & 0x7f
    if (short === 127) return bytes.readUInt32BE(at + 2) * 2 ** 32 + bytes.readUInt32BE(at + 6)
    return short === 126 ? bytes.readUInt16BE(at + 2) : short
  }
}

/** The length of a frame's head, from its second byte. */
function headSize(second: number): number {
  const short = second & 0x7f
  const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0
  return 2 + lengthBytes + (second & 0x80 ? 4 : 0)
}
