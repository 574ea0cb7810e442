/**
 * The first message of a client of the gateway, rewritten on its way (WebSocket, RFC 6455): the gateway must take old
 * clients and its own token. All other bytes pass as they come.
 */

import { randomBytes } from 'node:crypto'
import { isObject, type Json } from './json.ts'

/** A `connect` request takes about 1 KB. */
const MESSAGE_BYTES = 65_536
/** The protocol that the engine speaks (2026.9); it refuses clients that only know older ones. */
const PROTOCOL = 4
const TEXT = 1
const FIN = 0x80
const MASKED = 0x80
/** Bits that are zero as no extension is agreed upon. */
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
  /** Bytes of a frame that is not all there yet. */
  #held: Buffer = Buffer.alloc(0)
  /** The frames of the message so far, as they came; their payloads; and how many bytes they have. */
  #frames: Buffer[] = []
  #message: Buffer[] = []
  #read = 0

  /** @param rewrite what takes the place of the message; undefined leaves it as it is. */
  constructor(rewrite: (message: string) => string | undefined) {
    this.#rewrite = rewrite
  }

  /** The message was read, or cannot be: all bytes from now on pass as they come. */
  get isDone(): boolean {
    return this.#done
  }

  /**
   * Takes bytes from the client; gives those that go on to the gateway. What cannot be understood, or is too long for a
   * `connect` request, goes on as it came: refusing it is the gateway's business.
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

/** The frame at `start`; undefined when it is not all there yet, `unknown` when no client may send it. */
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

/** Masks a payload as well: the operation is its own inverse. */
function unmask(bytes: Buffer, mask: Buffer): void {
  for (let i = 0; i < bytes.length; i++) bytes[i] = (bytes[i] as number) ^ (mask[i & 3] as number)
}

/**
 * Makes of a client's `connect` request one that the gateway takes as its own machine's: the gateway's token in place
 * of the client's (who may talk to the agent was decided before), and {@link PROTOCOL} for clients that know only older
 * ones: what they use of it is the same.
 * @param isBrowser leaves the client as it says it is: without a device the gateway gives no rights to any in a browser.
 * @returns undefined for anything else than a `connect` request.
 */
export function rewriteConnect(message: string, token: string, isBrowser = false): string | undefined {
  const request = parse(message)
  if (request?.type !== 'req' || request.method !== 'connect' || !isObject(request.params)) return undefined
  const { device, ...params } = request.params
  const { maxProtocol } = params
  if (typeof maxProtocol === 'number' && maxProtocol < PROTOCOL) params.maxProtocol = PROTOCOL
  // A device signs the token that it sends, so it can be let through only with the right one.
  const signed = isObject(params.auth) && params.auth.token === token
  if (device !== undefined && signed) params.device = device
  else if (!isBrowser) params.client = knownClient(params.client)
  params.auth = { token }
  return JSON.stringify({ ...request, params })
}

/** Without a device the gateway gives rights to these clients only, and refuses ids that it does not know. */
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
