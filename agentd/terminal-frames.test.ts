import assert from 'node:assert/strict'
import { test } from 'node:test'
import { bytesFrames, FrameReader, MAX_FRAME_BYTES, messageFrame } from './terminal-frames.ts'

const resize = { type: 'resize', columns: 80, rows: 24 } as const

test('frames of bytes and messages are read in every split', () => {
  const sent = Buffer.concat([
    bytesFrames(Buffer.from('ls\r')),
    messageFrame(resize),
    bytesFrames(Buffer.from('x')),
  ])
  for (let size = 1; size <= sent.length; size++) {
    const reader = new FrameReader()
    const frames = []
    for (let at = 0; at < sent.length; at += size) frames.push(...reader.push(sent.subarray(at, at + size)))
    assert.deepEqual(
      frames.map((frame) => ('bytes' in frame ? `${frame.bytes}` : frame.message)),
      ['ls\r', resize, 'x'],
    )
  }
})

test('more bytes than a frame holds become several frames', () => {
  const bytes = Buffer.alloc(MAX_FRAME_BYTES * 2 + 1, 'x')
  const frames = new FrameReader().push(bytesFrames(bytes))
  assert.deepEqual(
    frames.map((frame) => 'bytes' in frame && frame.bytes.length),
    [MAX_FRAME_BYTES, MAX_FRAME_BYTES, 1],
  )
})

for (const [what, bytes] of [
  ['an unknown kind', Buffer.from([2, 0, 0, 0, 0])],
  ['a length beyond the limit', Buffer.from([0, 0, 1, 0, 1])],
  ['a message that is not JSON', Buffer.from([1, 0, 0, 0, 1, 0x7b])],
] as const)
  test(`a frame with ${what} is refused`, () => {
    assert.throws(() => new FrameReader().push(bytes))
  })
