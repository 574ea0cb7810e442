import assert from 'node:assert/strict'
import { test } from 'node:test'
import { encode } from 'it-length-prefixed'
import { encode as varint } from 'uint8-varint'
import { Frames } from './frames.ts'

const MIB = 1_048_576

/** A stream of these chunks, which then stalls until it is aborted. */
function standsStill(...chunks: Uint8Array[]) {
  const { promise, reject } = Promise.withResolvers<never>()
  promise.catch(() => {})
  return {
    abort: reject as (error: Error) => void,
    async *[Symbol.asyncIterator]() {
      yield* chunks
      await promise
    },
  }
}

async function* once(...chunks: Uint8Array[]) {
  yield* chunks
}
const ends = (...chunks: Uint8Array[]) => Object.assign(once(...chunks), { abort: () => {} })
const framed = (bytes: Uint8Array) => encode.single(bytes).subarray()
const all = async (frames: AsyncIterable<Uint8Array>) => {
  const read: Buffer[] = []
  for await (const frame of frames) read.push(Buffer.from(frame))
  return read
}

test('messages are read however they are cut', async () => {
  const messages = [Buffer.from('first'), Buffer.alloc(0), Buffer.alloc(300, 7), Buffer.alloc(20_000, 8)]
  const bytes = Buffer.concat(messages.map(framed))
  const frames = new Frames()
  for (const size of [1, 2, 1000, bytes.length]) {
    const chunks = []
    for (let at = 0; at < bytes.length; at += size) chunks.push(bytes.subarray(at, at + size))
    assert.deepEqual(await all(frames.read(ends(...chunks), 'peer')), messages)
  }
})

test('messages that never end are bounded for each peer and for all, and make room when they are given up', async () => {
  const frames = new Frames()
  const held: { error: (error: Error) => void; done: Promise<unknown> }[] = []
  const begin = (peer: string) => {
    const stream = standsStill(framed(new Uint8Array(4 * MIB - 8)).subarray(0, 100))
    const done = all(frames.read(stream, peer)).catch((error) => error.message)
    held.push({ error: stream.abort, done })
    return Promise.race([done, new Promise((resolve) => setImmediate(resolve, 'held'))])
  }
  for (let i = 0; i < 16; i++) assert.equal(await begin('first'), 'held')
  assert.equal(await begin('first'), 'Too many messages are under way')
  for (let i = 0; i < 48; i++) assert.equal(await begin(`other ${i}`), 'held')
  assert.equal(await begin('another'), 'Too many messages are under way')
  for (const { error, done } of held) {
    error(new Error('given up'))
    await done
  }
  assert.equal(await begin('first'), 'held')
})

test('a message that takes too long, that is too large or has no length is given up', async () => {
  const late = standsStill(framed(Buffer.from('a message')).subarray(0, 3))
  await assert.rejects(all(new Frames(20).read(late, 'peer')), /longer than 20 ms/)
  const large = ends(varint(4 * MIB + 1), Buffer.alloc(10))
  await assert.rejects(all(new Frames().read(large, 'peer')), /A message of 4194305 bytes/)
  await assert.rejects(all(new Frames().read(ends(Buffer.alloc(9, 0xff)), 'peer')), /without a length/)
})
