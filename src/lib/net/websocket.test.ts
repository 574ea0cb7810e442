import assert from 'node:assert/strict'
import { test } from 'node:test'
import { CLOSE, closeFrame, FrameScanner, textFrame } from './websocket.ts'

/** An unmasked frame with a payload of this length, each byte of which could begin a Close frame. */
function frame(opcode: number, length: number): Buffer {
  const head = Buffer.alloc(length < 126 ? 2 : length < 65_536 ? 4 : 10)
  head[0] = 0x80 | opcode
  head[1] = length < 126 ? length : length < 65_536 ? 126 : 127
  if (head.length === 4) head.writeUInt16BE(length, 2)
  if (head.length === 10) head.writeBigUInt64BE(BigInt(length), 2)
  return Buffer.concat([head, Buffer.alloc(length, 0x88)])
}

test('the ends of frames are found regardless of how the bytes are split', () => {
  const lengths = [0, 1, 125, 126, 300, 65_535, 65_536, 70_000]
  for (const step of [1, 7, 4096, 1_000_000]) {
    const scanner = new FrameScanner()
    for (const length of lengths) {
      const bytes = frame(0x2, length)
      assert.equal(scanner.isBetweenFrames, true)
      for (let at = 0; at < bytes.length; at += step) {
        assert.equal(scanner.isBetweenFrames, at === 0, `${length} at ${at}`)
        scanner.push(bytes.subarray(at, at + step))
      }
    }
    assert.equal(scanner.isBetweenFrames, true)
    assert.equal(scanner.sawClose, false)
  }
})

test('a masked frame has four more bytes', () => {
  const scanner = new FrameScanner()
  scanner.push(Buffer.from([0x81, 0x81, 1, 2, 3, 4]))
  assert.equal(scanner.isBetweenFrames, false)
  scanner.push(Buffer.from([9]))
  assert.equal(scanner.isBetweenFrames, true)
})

test('a Close frame is detected, including Berth’s own', () => {
  const scanner = new FrameScanner()
  const reason = 'x'.repeat(200)
  const bytes = closeFrame(CLOSE.policyViolation, reason)
  scanner.push(bytes)
  assert.deepEqual([scanner.sawClose, scanner.isBetweenFrames], [true, true])
  assert.equal(bytes.readUInt16BE(2), 1008)
  assert.equal(`${bytes.subarray(4)}`, reason.slice(0, 123))
})

test('frames without a payload are detected, however many there are', () => {
  for (const head of [
    [0x8a, 0],
    [0x8a, 126, 0, 0],
    [0x8a, 0x80, 1, 2, 3, 4],
  ]) {
    const scanner = new FrameScanner()
    const bytes = Buffer.alloc(60_000, Buffer.from(head))
    // The last piece ends within a frame head.
    for (const end of [60_000, 60_000, 1]) scanner.push(bytes.subarray(0, end))
    assert.equal(scanner.isBetweenFrames, false)
    scanner.push(bytes.subarray(1, head.length))
    assert.equal(scanner.isBetweenFrames, true)
  }
})

test('a text is one frame with its length', () => {
  for (const length of [0, 125, 126, 300, 65_535]) {
    const scanner = new FrameScanner()
    const bytes = textFrame('x'.repeat(length))
    scanner.push(bytes)
    assert.deepEqual([scanner.isBetweenFrames, bytes[0], bytes.at(-1)], [true, 0x81, length ? 120 : 0])
  }
})
