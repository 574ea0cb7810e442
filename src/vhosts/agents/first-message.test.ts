import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, before, describe, test } from 'node:test'
import { clientFrame as frame } from '../../../test/support/frames.ts'
import { readFirstMessage } from './first-message.ts'

const server = createServer()
const open = new Set<Socket>()
before(async () => {
  await once(server.listen(0, '127.0.0.1'), 'listening')
})
after(() => {
  for (const socket of open) socket.destroy()
  server.close()
})

/** A client, and the server's connection to it. */
async function pair(): Promise<{ client: Socket; socket: Socket }> {
  const accepted = once(server, 'connection')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').setNoDelay(true)
  const [socket] = (await accepted) as [Socket]
  for (const side of [client, socket]) open.add(side.on('error', () => {}))
  return { client, socket }
}

/** Reads the first message of a client that sends `bytes`, in pieces of `size`. */
async function readOf(bytes: Buffer, size = bytes.length) {
  const { client, socket } = await pair()
  const first = readFirstMessage(socket, Buffer.alloc(0))
  for (let at = 0; at < bytes.length; at += size) {
    client.write(bytes.subarray(at, at + size))
    if (size < bytes.length) await new Promise((resolve) => setImmediate(resolve))
  }
  return first
}

const ping = frame('ping', { opcode: 9 })
const empty = frame('', { fin: false, opcode: 0 })
const parts = [frame('he', { fin: false }), ping, empty, frame('llo', { opcode: 0 })]
const REFUSED = { refusal: 'The first message is no text of at most 16 KiB' }

describe('a first message', () => {
  for (const [what, frames] of Object.entries({
    'in one frame': [frame('hello')],
    'in parts, with pings between them': [ping, ...parts],
    'with frames behind it': [frame('hello'), frame('next'), frame(Buffer.alloc(2000), { opcode: 2 })],
    'with a Close behind it': [frame('hello'), frame('', { opcode: 8 })],
  }))
    test(`a first message is read, and all bytes are kept unchanged: ${what}`, async () => {
      const bytes = Buffer.concat(frames)
      for (const size of [1, 3, bytes.length]) {
        const first = await readOf(bytes, size)
        assert.ok(first && 'text' in first, JSON.stringify(first))
        assert.equal(first.text, 'hello')
        assert.ok(first.bytes.equals(bytes.subarray(0, first.bytes.length)))
      }
    })

  test('a first message is read from the bytes that came with the upgrade', async () => {
    const { client, socket } = await pair()
    const bytes = frame('hello')
    const first = readFirstMessage(socket, bytes.subarray(0, 4))
    client.write(bytes.subarray(4))
    assert.deepEqual(await first, { text: 'hello', bytes })
  })
  test('a first message leaves later bytes on the connection for the next reader', async () => {
    const { client, socket } = await pair()
    const first = readFirstMessage(socket, Buffer.alloc(0))
    client.write(frame('hello'))
    await first
    assert.equal(socket.isPaused(), true)
    client.write('later')
    const [later] = await once(socket.resume(), 'data')
    assert.equal(String(later), 'later')
  })
  test('a first message may have 16 KiB', async () => {
    const text = 'x'.repeat(16_384)
    assert.deepEqual(await readOf(frame(text)).then((first) => first && 'text' in first && first.text), text)
    assert.deepEqual(await readOf(frame(`${text}x`)), REFUSED)
  })

  for (const [what, bytes] of Object.entries({
    'that is binary': frame('hello', { opcode: 2 }),
    'that is not masked': frame('hello', { masked: false }),
    'that is compressed': frame('hello', { rsv: 0x40 }),
    'that begins in the middle': frame('hello', { opcode: 0 }),
    'of which two begin': Buffer.concat([frame('a', { fin: false }), frame('b')]),
    'that says it is huge': Buffer.from([0x81, 0xff, 0, 0, 0, 1, 0, 0, 0, 0, 1, 2, 3, 4]),
    'that goes on and on': Buffer.concat([frame('a', { fin: false }), ...Array(5000).fill(empty)]),
    'behind pings without end': Buffer.concat(Array(3000).fill(ping)),
    'that is larger, in parts': Buffer.concat([
      frame('x'.repeat(9000), { fin: false }),
      frame('x'.repeat(9000), { opcode: 0 }),
    ]),
  }))
    test(`a first message is rejected ${what}`, async () => {
      assert.deepEqual(await readOf(bytes), REFUSED)
    })

  test('a first message that is incomplete after ten seconds is rejected', async (t) => {
    const { client, socket } = await pair()
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const first = readFirstMessage(socket, Buffer.alloc(0))
    client.write(frame('hello').subarray(0, 5))
    await once(socket, 'data')
    t.mock.timers.tick(10_000)
    assert.deepEqual(await first, { refusal: 'No message came within 10 seconds' })
  })
  test('a first message is undefined if the client disconnects or closes first', async () => {
    for (const leave of [
      (client: Socket) => client.end(),
      (client: Socket) => client.destroy(),
      (client: Socket) => client.write(frame('', { opcode: 8 })),
    ]) {
      const { client, socket } = await pair()
      const first = readFirstMessage(socket, Buffer.alloc(0))
      leave(client)
      assert.equal(await first, undefined)
    }
  })
})
