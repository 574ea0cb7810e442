/**
 * Connections to the server: a connection beyond the limit is closed, and one that has ended frees its place. Requests
 * that Node's parser rejects get a response.
 */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import type { RequestListener } from 'node:http'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, it } from 'node:test'
import { listen } from '../../../src/http/listen.ts'
import { Bounds } from '../../../src/lib/bounds.ts'
import { until } from '../../support/processes.ts'

const bounds = new Bounds({ connections: { caller: 2, process: 3 } })
const app: RequestListener = (req, res) => void (req.url === '/waits' ? req.resume() : res.end('here'))
const server = await listen(app, {
  port: 0,
  host: '127.0.0.1',
  admit: (address) => bounds.take('connections', { address }),
})
after(() => server.close())

const open = (allowHalfOpen = false) => {
  const { port } = new URL(server.url)
  return connect({ port: Number(port), host: '127.0.0.1', allowHalfOpen }).on('error', () => {})
}

it('an address has a limited number of connections', async () => {
  const asks = async (socket: Socket) => {
    socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
    return `${await once(socket, 'data')}`
  }
  const [first, second] = [open().resume(), open().resume()]
  await until('both are open', () => bounds.underWay('connections') === 2)
  await once(open().resume(), 'close')
  assert.match(await asks(second), /here/)
  first.destroy()
  await until('one is free', () => bounds.underWay('connections') === 1)
  const third = open().resume()
  assert.match(await asks(third), /here/)
  for (const socket of [second, third]) socket.destroy()
  await until('all are free', () => bounds.underWay('connections') === 0)
})

it('a client with long headers receives 431, even if it is still sending', async () => {
  const socket = open(true)
  const response = text(socket)
  socket.write('GET / HTTP/1.1\r\nHost: x\r\n\r\n')
  await until('the first response', () => socket.bytesRead > 0)
  const { bytesRead } = socket
  socket.write(`GET /${'x'.repeat(20_000)}`)
  await until('the second response', () => socket.bytesRead > bytesRead)
  socket.end(`${'x'.repeat(2 ** 20)} HTTP/1.1\r\nHost: x\r\n\r\n`)
  await once(socket, 'finish')
  const [head = '', body = ''] = (await response).split('\r\n\r\n').slice(-2)
  assert.match(head, /HTTP\/1\.1 431 /)
  assert.equal(body, '{"error":"The URL and the headers are longer than 16 KiB"}')
})

it('invalid bytes get 400, and a request with an invalid chunk ends', async () => {
  for (const [request, expected] of [
    ['nonsense\r\n\r\n', /^HTTP\/1\.1 400 [\s\S]*\{"error":"This is not a valid HTTP request"\}$/],
    ['POST /waits HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n', /^HTTP\/1\.1 400 /],
  ] as const) {
    const socket = open()
    const response = text(socket)
    socket.write(request)
    assert.match(await response, expected)
    await until('no request runs', () => server.requests() === 0)
  }
})
