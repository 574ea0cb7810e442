/** What the stream from Kubo does when the other side, or the body, is slow. */
import assert from 'node:assert/strict'
import { createServer, type RequestListener } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, describe, test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { KuboStream } from '../../../src/storage/kubo/stream.ts'
import { failsWith, MIB } from './cases/context.ts'
import { collect } from './content.ts'

const IDLE_MS = 1500

describe("Kubo's stream", () => {
  const closing: (() => void)[] = []
  after(() => {
    for (const close of closing) close()
  })

  /** Calls a server that answers like this. */
  const call = async (answer: RequestListener, content?: AsyncIterable<Uint8Array>) => {
    const server = createServer(answer).listen(0, '127.0.0.1')
    await new Promise((resolve) => server.once('listening', resolve))
    const stream = new KuboStream(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
    closing.push(() => {
      server.closeAllConnections()
      server.close()
      void stream.close()
    })
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
})
