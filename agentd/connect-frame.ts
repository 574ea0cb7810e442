/**
 * Rewrites the first message of a gateway client (WebSocket, RFC 6455), so that the gateway accepts old clients and
 * gets its own token. All other bytes pass unchanged.
 */

import { randomBytes } from 'node:crypto'
import { isObject, type Json } from './json.ts'

/** A `connect` request takes about 1 KB. */
const MESSAGE_BYTES = 65_536
/** The engine's protocol (2026.9); it refuses clients that only know older ones. */
const PROTOCOL = 4
const TEXT = 1
const FIN = 0x80
const MASKED = 0x80
/** Bits that are zero because no extension is negotiated. */
const RESERVED = 0x70

interface Frame {
  final: boolean
  opcode: number
  payload: Buffer
  /** Offset of the next frame. */
  end: number
}

export class ConnectFrame {
  readonly #rewrite: (message: string) => string | undefined
  #done = false
  /** Bytes of an incomplete frame. */
  #held: Buffer = Buffer.alloc(0)
  /** The frames of the message so far, verbatim; their payloads; and the number of their bytes. */
  #frames: Buffer[] = []
  #message: Buffer[] = []
  #read = 0

  /** @param rewrite returns the replacement for the message; undefined to keep it. */
  constructor(rewrite: (message: string) => string | undefined) {
    this.#rewrite = rewrite
  }

  /** True once the message was read or given up: all further bytes pass unchanged. */
  get isDone(): boolean {
    return this.#done
  }

  /**
   * Takes bytes from the client, and returns those to forward to the gateway. Messages that cannot be understood, or
   * are too long for a `connect` request, pass unchanged: the gateway has to refuse them.
   */
  push(chunk: Buffer): Buffer {
    if (this.#done) return chunk
    const bytes = Buffer.concat([this.#held, chunk])
    const passed: Buffer[] = []
    let at = 0
    while (!this.#done) {
      const frame = readFrame(bytes, at)
      if (frame === 'unknown' || this.#read > MESSAGE_BYTES) return this.#giveUp(passed, bytes.subarray(at))
      if (!frame) break
      const raw = bytes.subarray(at, frame.end)
      // Control frames may come between the parts of a message.
      if (frame.opcode >= 8) passed.push(raw)
      else if (frame.opcode !== (this.#message.length === 0 ? TEXT : 0))
        return this.#giveUp(passed, bytes.subarray(at))
      else {
        this.#frames.push(raw)
        this.#message.push(frame.payload)
        this.#read += raw.length
      }
      at = frame.end
      if (frame.opcode < 8 && frame.final) this.#finish(passed)
    }
    if (this.#done) passed.push(bytes.subarray(at))
    else this.#held = bytes.subarray(at)
    return Buffer.concat(passed)
  }

  #finish(passed: Buffer[]): void {
    const message = this.#rewrite(Buffer.concat(this.#message).toString('utf8'))
    passed.push(...(message === undefined ? this.#frames : [textFrame(message)]))
    this.#end()
  }

  #giveUp(passed: Buffer[], rest: Buffer): Buffer {
    const all = Buffer.concat([...passed, ...this.#frames, rest])
    this.#end()
    return all
  }

  #end(): void {
    this.#done = true
    this.#held = Buffer.alloc(0)
    this.#frames = []
    this.#message = []
  }
}

/** The frame at `start`; undefined if it is incomplete, `unknown` if no client may send it. */
function readFrame(bytes: Buffer, start: number): Frame | 'unknown' | undefined {
  const head = bytes.subarray(start, start + 2)
  if (head.length < 2) return undefined
  const [first = 0, second = 0] = head
  if (first & RESERVED || !(second & MASKED)) return 'unknown'
  let length = second & 0x7f
  let at = start + 2
  if (length === 126) {
    if (bytes.length < at + 2) return undefined
    length = bytes.readUInt16BE(at)
    at += 2
  } else if (length === 127) return 'unknown'
  if (length > MESSAGE_BYTES) return 'unknown'
  if (bytes.length < at + 4 + length) return undefined
  const mask = bytes.subarray(at, at + 4)
  const payload = Buffer.from(bytes.subarray(at + 4, at + 4 + length))
  unmask(payload, mask)
  return { final: (first & FIN) !== 0, opcode: first & 0x0f, payload, end: at + 4 + length }
}

/** A text as one frame of a client. */
function textFrame(text: string): Buffer {
  const payload = Buffer.from(text)
  const mask = randomBytes(4)
  unmask(payload, mask)
  const head = Buffer.alloc(payload.length < 126 ? 2 : payload.length < 65_536 ? 4 : 10)
  head[0] = FIN | TEXT
  if (head.length === 2) head[1] = MASKED | payload.length
  else if (head.length === 4) {
    head[1] = MASKED | 126
    head.writeUInt16BE(payload.length, 2)
  } else {
    head[1] = MASKED | 127
    head.writeBigUInt64BE(BigInt(payload.length), 2)
  }
  return Buffer.concat([head, mask, payload])
}

/** Also masks a payload: the operation is its own inverse. */
function unmask(bytes: Buffer, mask: Buffer): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (bytes[i] as number) ^ (mask[i & 3] as number)
}

/**
 * Rewrites a client's `connect` request so that the gateway accepts it as one from its own machine. The gateway's token
 * replaces the client's, because access to the agent has already been checked. {@link PROTOCOL} replaces older
 * protocols, because the parts that clients use are the same.
 * @param isBrowser keeps the client's own identity: without a device the gateway gives no rights to browsers.
 * @returns undefined for anything except a `connect` request.
 */
export function rewriteConnect(message: string, token: string, isBrowser = false): string | undefined {
  const request = parse(message)
  if (request?.type !== 'req' || request.method !== 'connect' || !isObject(request.params)) return undefined
  const { device, ...params } = request.params
  const { maxProtocol } = params
  if (typeof maxProtocol === 'number' && maxProtocol < PROTOCOL) params.maxProtocol = PROTOCOL
  // A device signs the token that it sends, so it passes only with the right one.
  const signed = isObject(params.auth) && params.auth.token === token
  if (device !== undefined && signed) params.device = device
  else if (!isBrowser) params.client = knownClient(params.client)
  params.auth = { token }
  return JSON.stringify({ ...request, params })
}

/** Without a device the gateway gives rights only to these clients, and refuses ids that it does not know. */
function knownClient(client: unknown): unknown {
  if (!isObject(client)) return client
  if (client.id === 'cli' && client.mode === 'cli') return client
  return { ...client, id: 'gateway-client', mode: 'backend' }
}

function parse(message: string): Json | undefined {
  try {
    const value = JSON.parse(message)
    return isObject(value) ? value : undefined
  } catch {
    return undefined
  }
}
