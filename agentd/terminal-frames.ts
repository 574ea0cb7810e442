/**
 * `/v1/terminal`, once the connection has switched to {@link TERMINAL_UPGRADE}: frames both ways, each a byte for its
 * kind, four for its length, and its payload. Berth imports it too.
 */

/**
 * The upgrade of `/v1/terminal?columns=…&rows=…`: a new shell, or with `terminal=<id>` a running one, which sends its
 * kept output from the position `after` on. 404 `not_found` if no such shell runs, 429 `busy`, 501 `unsupported`. agentd
 * of 0.4.0 returns 404 with another message.
 */
export const TERMINAL_UPGRADE = 'berth-terminal'
/** The message of 404 `not_found` if no such shell runs. */
export const NO_TERMINAL = 'there is no such terminal'

/** From agentd. */
export type TerminalEvent =
  /** Comes first. `from` is the position of the next byte in the output of the shell. */
  | { type: 'ready'; terminal: string; from: number }
  /** Comes last: the shell has ended; 128 + the signal's number if a signal ended it. `reason` if agentd hung up. */
  | { type: 'exit'; code: number; reason?: string }
  /** Comes last: the shell was taken over by another connection. */
  | { type: 'taken' }

/** To agentd; `alive` only keeps the connection open. */
export type TerminalRequest = { type: 'resize'; columns: number; rows: number } | { type: 'alive' }

/** Bytes of the terminal, or a message. */
export type TerminalFrame = { bytes: Buffer } | { message: unknown }

export const MAX_FRAME_BYTES = 65_536
const HEAD_BYTES = 5
const BYTES = 0
const MESSAGE = 1

/** The frames of some bytes of the terminal. */
export function bytesFrames(bytes: Buffer): Buffer {
  const frames: Buffer[] = []
  for (let at = 0; at < bytes.length; at += MAX_FRAME_BYTES)
    frames.push(...frame(BYTES, bytes.subarray(at, at + MAX_FRAME_BYTES)))
  return Buffer.concat(frames)
}

export const messageFrame = (message: TerminalEvent | TerminalRequest): Buffer =>
  Buffer.concat(frame(MESSAGE, Buffer.from(JSON.stringify(message))))

function frame(kind: number, payload: Buffer): Buffer[] {
  const head = Buffer.alloc(HEAD_BYTES)
  head.writeUInt8(kind)
  head.writeUInt32BE(payload.length, 1)
  return [head, payload]
}

/** Splits a stream into frames, and holds one unfinished frame at most. */
export class FrameReader {
  #rest: Buffer = Buffer.alloc(0)

  /** @returns the frames that are complete. @throws Error if a frame is too long, or malformed. */
  push(chunk: Buffer): TerminalFrame[] {
    let rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk])
    const frames: TerminalFrame[] = []
    while (rest.length >= HEAD_BYTES) {
      const kind = rest.readUInt8()
      const end = HEAD_BYTES + rest.readUInt32BE(1)
      if (kind > MESSAGE || end > HEAD_BYTES + MAX_FRAME_BYTES) throw new Error('a frame is malformed')
      if (rest.length < end) break
      const payload = rest.subarray(HEAD_BYTES, end)
      frames.push(kind === BYTES ? { bytes: payload } : { message: JSON.parse(payload.toString()) })
      rest = rest.subarray(end)
    }
    // A copy, so that a few bytes do not keep a large chunk in memory.
    this.#rest = rest.length === 0 ? rest : Buffer.from(rest)
    return frames
  }
}
