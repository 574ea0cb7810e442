import assert from 'node:assert/strict'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { grpcHead, maskFrames, type ReadHead, webSocketHead } from './frames.ts'
import { patternsOf } from './mask.ts'

const VALUE = 'sk-test-realvalue'
const STARS = '*'.repeat(VALUE.length)
const PATTERNS = patternsOf([{ placeholder: 'p', value: VALUE, hosts: [], via: { as: 'bearer' } }])

/** A frame of a server. @param first the first byte. */
function frame(first: number, payload: string): string {
  const { length } = payload
  const size =
    length < 126
      ? [length]
      : length < 65_536
        ? [126, length >> 8, length & 255]
        : [127, 0, 0, 0, 0, 0, length >> 16, (length >> 8) & 255, length & 255]
  return String.fromCharCode(first, ...size) + payload
}
const grpc = (payload: string) =>
  String.fromCharCode(0, 0, 0, payload.length >> 8, payload.length & 255) + payload

async function masked(input: string, readHead: ReadHead, size: number): Promise<string> {
  const stream = maskFrames(PATTERNS, readHead)
  stream.setDefaultEncoding('latin1').setEncoding('latin1')
  const bytes = Buffer.from(input, 'latin1')
  for (let at = 0; at < bytes.length; at += size) stream.write(bytes.subarray(at, at + size))
  stream.end()
  return text(stream)
}
const SIZES = [1, 2, 3, 9, 100_000]

test('messages of a WebSocket are masked across frames, and control frames between them pass', async () => {
  const [half, rest] = [VALUE.slice(0, 8), VALUE.slice(8)]
  const of = (one: string, two: string, whole: string) =>
    [
      frame(0x81, `a ${whole} b`),
      frame(0x01, `x${one}`) + frame(0x89, 'ping') + frame(0x00, '') + frame(0x80, `${two}y`),
      frame(0x82, 'z'.repeat(300) + whole),
      frame(0x81, 'ends like sk-test') + frame(0x81, 'next') + frame(0x88, ''),
    ].join('')
  for (const size of SIZES)
    assert.equal(
      await masked(of(half, rest, VALUE), webSocketHead, size),
      of('*'.repeat(half.length), '*'.repeat(rest.length), STARS),
    )
  const long = (text: string) => frame(0x82, 'z'.repeat(70_000) + text)
  assert.equal(await masked(long(VALUE), webSocketHead, 1000), long(STARS))
})

test('a message passes whole without waiting for the next', () => {
  const stream = maskFrames(PATTERNS, webSocketHead)
  stream.write(Buffer.from(frame(0x81, 'ends like sk-te'), 'latin1'))
  assert.equal(stream.read().toString('latin1'), frame(0x81, 'ends like sk-te'))
  stream.write(Buffer.from(frame(0x01, 'sk-te'), 'latin1'))
  assert.equal(stream.read().length, 2)
})

test('messages of gRPC are masked one by one', async () => {
  for (const size of SIZES)
    assert.equal(
      await masked(grpc(`a${VALUE}`) + grpc('') + grpc('sk-test') + grpc(VALUE), grpcHead, size),
      grpc(`a${STARS}`) + grpc('') + grpc('sk-test') + grpc(STARS),
    )
})

test('compressed and masked frames end the stream', async () => {
  await assert.rejects(masked(frame(0xc1, 'abc'), webSocketHead, 100), /compressed/)
  await assert.rejects(masked('\x81\x83abcdefg', webSocketHead, 100), /masked/)
  await assert.rejects(masked(`\x01${grpc('abc').slice(1)}`, grpcHead, 100), /compressed/)
})
