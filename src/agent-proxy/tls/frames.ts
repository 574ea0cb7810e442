/**
 * Masks the payloads of messages in frames: of WebSockets (RFC 6455) and of gRPC. Heads of frames pass as they came; a
 * message is masked as one text, however its frames split it.
 */
import { Transform } from 'node:stream'
import { Masker, type Pattern } from './mask.ts'

/** A frame's head. */
interface Head {
  bytes: number
  /** Bytes of payload that follow. */
  payload: number
  /** False for a frame whose payload belongs to no message, and does not end one. */
  isData: boolean
  /** True if the message ends with this frame. */
  isLast: boolean
}

/** Reads the head at the beginning of `bytes`; undefined if it is not whole yet. @throws Error if it cannot be masked. */
export type ReadHead = (bytes: Buffer) => Head | undefined

/** Frames of a server: without a mask, and without compression, which no extension was agreed for. */
export const webSocketHead: ReadHead = (bytes) => {
  if (bytes.length < 2) return undefined
  const [first, second] = [bytes[0] as number, bytes[1] as number]
  if (first & 0x70 || second & 0x80) throw new Error('compressed or masked frame')
  const short = second & 0x7f
  const length = short === 127 ? 10 : short === 126 ? 4 : 2
  if (bytes.length < length) return undefined
  const payload =
    short === 127 ? Number(bytes.readBigUInt64BE(2)) : short === 126 ? bytes.readUInt16BE(2) : short
  const isData = (first & 0x0f) < 8
  return { bytes: length, payload, isData, isLast: isData && (first & 0x80) !== 0 }
}

export const grpcHead: ReadHead = (bytes) => {
  if (bytes.length < 5) return undefined
  if (bytes[0] !== 0) throw new Error('compressed message')
  return { bytes: 5, payload: bytes.readUInt32BE(1), isData: true, isLast: true }
}

/** A part of the output: unchanged bytes, or as many bytes of masked payload. */
type Part = Buffer | number

export function maskFrames(patterns: readonly Pattern[], readHead: ReadHead): Transform {
  const masker = new Masker(patterns)
  let rest = Buffer.alloc(0)
  let frame: Head | undefined
  let left = 0
  /** In order. Parts behind a payload that is held back wait for it. */
  const parts: Part[] = []
  let masked: Buffer[] = []

  const take = (chunk: Buffer) => {
    let bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk
    for (;;) {
      if (!frame) {
        frame = readHead(bytes)
        if (!frame) break
        parts.push(bytes.subarray(0, frame.bytes))
        bytes = bytes.subarray(frame.bytes)
        left = frame.payload
      }
      const payload = bytes.subarray(0, left)
      bytes = bytes.subarray(payload.length)
      left -= payload.length
      if (frame.isData) {
        parts.push(payload.length)
        masked.push(masker.push(payload))
      } else parts.push(payload)
      if (left > 0) break
      if (frame.isLast) masked.push(masker.end())
      frame = undefined
    }
    rest = Buffer.from(bytes)
  }

  const output = (): Buffer => {
    let ready = Buffer.concat(masked)
    const passed: Buffer[] = []
    while (parts.length > 0) {
      const part = parts[0] as Part
      if (typeof part !== 'number') passed.push(part)
      else {
        passed.push(ready.subarray(0, part))
        const missing = part - ready.length
        ready = ready.subarray(Math.min(part, ready.length))
        if (missing > 0) {
          parts[0] = missing
          break
        }
      }
      parts.shift()
    }
    masked = [ready]
    return Buffer.concat(passed)
  }

  return new Transform({
    transform(chunk: Buffer, _encoding, done) {
      try {
        take(chunk)
        done(null, output())
      } catch (error) {
        done(error as Error)
      }
    },
    // A message that the end cuts off is masked as far as it came; half a head is dropped.
    flush(done) {
      masked.push(masker.end())
      done(null, output())
    },
  })
}
