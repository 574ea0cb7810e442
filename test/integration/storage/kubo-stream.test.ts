/** What the stream from Kubo does when the other side, or the body, is slow. */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { readBlocks } from '../../../src/storage/kubo/read.ts'
import { KuboStream } from '../../../src/storage/kubo/stream.ts'
import { block, carOf, namesOf, node } from './cases/blocks.ts'
import { failsWith, MIB } from './cases/context.ts'
import { collect } from './content.ts'

const IDLE_MS = 1500

describe("Kubo's stream", () => {
  const closing: (() => void)[] = []
  after(() => {
    for (const close of closing) close()
  })

  /** A server that answers like this. */
  const open = async (answer: RequestListener): Promise<KuboStream> => {
    const server = createServer(answer).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const stream = new KuboStream(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closing.push(() => {
      server.closeAllConnections()
      server.close()
      void stream.close()
    })
    return stream
  }
  const call = async (answer: RequestListener, content?: AsyncIterable<Uint8Array>) => {
    const stream = await open(answer)
    const body = content && { type: 'application/octet-stream', content }
    const { signal } = new AbortController()
    return `${await collect(stream.bytes('add', {}, { signal, idleMs: IDLE_MS, ...(body && { body }) }))}`
  }

  test('a body may take its time, also when the answer has begun', async () => {
    async function* slow() {
      yield Buffer.from('first')
      await delay(2 * IDLE_MS)
      yield Buffer.from('second')
    }
    const echo: RequestListener = (request, response) => {
      response.write('begun,')
      request.pipe(response)
    }
    assert.equal(await call(echo, slow()), 'begun,firstsecond')
  })

  test('a server that does not take the body is unavailable', async () => {
    async function* endless() {
      for (;;) yield Buffer.alloc(MIB)
    }
    await assert.rejects(
      call(() => {}, endless()),
      failsWith('unavailable'),
    )
  })

  test('a server that is silent once it has the body is unavailable', async () => {
    async function* short() {
      yield Buffer.from('all')
    }
    await assert.rejects(
      call((request) => request.resume(), short()),
      failsWith('unavailable'),
    )
  })

  test('a body that fails passes its own error on', async () => {
    async function* broken() {
      yield Buffer.from('a part')
      throw new Error('the upload broke off')
    }
    await assert.rejects(
      call((request) => request.resume(), broken()),
      /^Error: the upload broke off$/,
    )
  })

  test('blocks of a node are refused where one is damaged, where the stream is cut, and where the node fails at the end', async () => {
    const { signal } = new AbortController()
    const leaf = await block(Buffer.from('leaf'))
    const root = await node([leaf.cid])
    const car = carOf(root.cid, [root, leaf])
    const read = async (bytes: Uint8Array, trailer?: string) => {
      const stream = await open((_, response) => {
        response.writeHead(200, { trailer: 'X-Stream-Error' })
        response.write(bytes)
        if (trailer) response.addTrailers({ 'X-Stream-Error': trailer })
        response.end()
      })
      return namesOf(readBlocks(stream, root.cid, signal))
    }
    assert.deepEqual(await read(car), [root.cid, leaf.cid].map(String))
    const flipped = Buffer.from(car)
    flipped[car.length - 1] = (flipped.at(-1) ?? 0) ^ 1
    await assert.rejects(read(flipped), failsWith('not_found'))
    await assert.rejects(read(car.subarray(0, -1)), failsWith('unavailable'))
    await assert.rejects(read(car, 'the disk is broken'), /the disk is broken/)
  })
})
