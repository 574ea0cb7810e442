/** The rest of a body whose request was answered before its end. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { after, describe, it, mock } from 'node:test'
import express from 'express'
import { discardUnread } from '../../../src/http/server.ts'

const app = express()
app.use(discardUnread)
app.post('/', (_req, res) => void res.status(413).json({ error: 'enough' }))
const server = createServer(app).listen(0, '127.0.0.1')
await once(server, 'listening')
const { port } = server.address() as AddressInfo
after(() => server.close())

/** Sends the head of a request of this length, and waits for the response. */
async function ask(length: number) {
  const socket = connect(port, '127.0.0.1').on('error', () => {})
  socket.write(`POST / HTTP/1.1\r\nHost: x\r\nContent-Length: ${length}\r\n\r\n`)
  assert.match(`${await once(socket, 'data')}`, /^HTTP\/1.1 413 /)
  return socket
}

describe('an unread body', () => {
  it('an unread body is discarded, and its connection accepts another request', async () => {
    const length = 20 * 2 ** 20
    const socket = await ask(length)
    socket.write(Buffer.alloc(length))
    socket.write('POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n')
    assert.match(`${await once(socket, 'data')}`, /^HTTP\/1.1 413 /)
    socket.destroy()
  })
  it('an unread body that continues for ten seconds closes its connection', async (t) => {
    t.after(() => mock.timers.reset())
    mock.timers.enable({ apis: ['setTimeout'] })
    const socket = await ask(2 ** 40)
    const closed = new Promise((resolve) => socket.once('close', resolve))
    socket.write(Buffer.alloc(2 ** 20))
    mock.timers.tick(9999)
    await new Promise(setImmediate)
    assert.ok(!socket.closed)
    mock.timers.tick(1)
    await closed
  })
})
