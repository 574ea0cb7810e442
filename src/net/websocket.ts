/** What of WebSockets (RFC 6455) a proxy has to know that passes their bytes on. */
import type { IncomingMessage } from 'node:http'

/** Whether a request asks for a WebSocket. Other upgrades (h2c) are optional for clients: they go on without. */
export function isWebSocket(req: IncomingMessage): boolean {
  const bodiless = !('content-length' in req.headers || 'transfer-encoding' in req.headers)
  return bodiless && req.method === 'GET' && req.headers.upgrade?.toLowerCase() === 'websocket'
}

/** Why a connection is closed (RFC 6455, 7.4.1, and IANA's registry). */
export const CLOSE = {
  goingAway: 1001,
  policyViolation: 1008,
  internalError: 1011,
  serviceRestart: 1012,
  tryAgainLater: 1013,
} as const
export type CloseCode = (typeof CLOSE)[keyof typeof CLOSE]

const CLOSE_OPCODE = 0x8

/** A Close frame as a server sends it: unmasked. */
export function closeFrame(code: CloseCode, reason: string): Buffer {
  const payload = Buffer.concat([Buffer.from([code >> 8, code & 0xff]), Buffer.from(reason).subarray(0, 123)])
  return Buffer.concat([Buffer.from([0x80 | CLOSE_OPCODE, payload.length]), payload])
}

/** Follows a stream of frames (RFC 6455, 5.2), to know where a frame of one's own may be put in between. */
export class FrameScanner {
  /** The bytes so far of a frame's head that is not complete. */
  #head: number[] = []
  /** Bytes of the current frame's payload that are still to come. */
  #left = 0
  #sawClose = false

  /** Whether the next byte would begin a frame. */
  get isBetweenFrames(): boolean {
    return this.#left === 0 && this.#head.length === 0
  }

  /** Whether a Close frame began: no other may follow it. */
  get sawClose(): boolean {
    return this.#sawClose
  }

  push(chunk: Uint8Array): void {
    let at = 0
    while (at < chunk.length) {
      if (this.#left > 0) {
        const passed = Math.min(this.#left, chunk.length - at)
        this.#left -= passed
        at += passed
      } else {
        this.#head.push(chunk[at++] ?? 0)
        this.#endHead()
      }
    }
  }

  #endHead(): void {
    const [first = 0, second = 0] = this.#head
    if (this.#head.length < 2) return
    const short = second & 0x7f
    const lengthBytes = short === 127 ? 8 : short === 126 ? 2 : 0
    const maskBytes = second & 0x80 ? 4 : 0
    if (this.#head.length < 2 + lengthBytes + maskBytes) return
    const long = this.#head.slice(2, 2 + lengthBytes).reduce((length, byte) => length * 256 + byte, 0)
    this.#left = lengthBytes > 0 ? long : short
    this.#sawClose ||= (first & 0xf) === CLOSE_OPCODE
    this.#head = []
  }
}
