/** Frames of a WebSocket as clients send them (RFC 6455, 5.2). */
import { randomBytes } from 'node:crypto'

/** A frame in the shortest form. */
export function clientFrame(
  payload: string | Buffer,
  { opcode = 1, fin = true, masked = true, rsv = 0 } = {},
): Buffer {
  const bytes = Buffer.from(payload)
  const length = bytes.length
  const head =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 255]
        : [127, 0, 0, 0, 0, ...uint32(length)]
  head[0] = (head[0] ?? 0) | (masked ? 0x80 : 0)
  const mask = masked ? randomBytes(4) : Buffer.alloc(0)
  const sent = masked ? bytes.map((byte, i) => byte ^ (mask[i % 4] ?? 0)) : bytes
  return Buffer.concat([Buffer.from([(fin ? 0x80 : 0) | rsv | opcode, ...head]), mask, sent])
}
const uint32 = (n: number) => [n >>> 24, (n >> 16) & 255, (n >> 8) & 255, n & 255]
