import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, get, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { Response } from 'express'
import { openEventStream } from './event-stream.ts'

test('an event stream with a slow reader accumulates no listeners', async () => {
  const server = createServer(async (_req, res) => {
    const stream = openEventStream(res as Response)
    const count = () => res.listenerCount('close') + res.listenerCount('error') + res.listenerCount('drain')
    await stream.send('first', '')
    const before = count()
    for (let i = 0; i < 50; i++) await stream.send('large', 'x'.repeat(200_000))
    await stream.send('listeners', count() - before)
    stream.end()
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  try {
    const sent = get({ port: (server.address() as AddressInfo).port, agent: false })
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    const text = Buffer.concat(await response.toArray()).toString()
    assert.match(text.slice(-100), /\nevent: listeners\ndata: 0\n\n$/)
  } finally {
    server.close()
  }
})
