/** Brokered secrets in WebSockets, at a real server. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:https'
import { type TestContext, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import {
  AUTHORIZED,
  HOST,
  PLACEHOLDER,
  ROOTS,
  startBroker,
  VALUE,
  WITH_SECRET,
} from '../../support/brokered.ts'
import { listen } from '../../support/egress.ts'

/** A host that greets with the value, and then returns each message twice. */
async function start(t: TestContext) {
  const server = createServer(ROOTS.leafFor(HOST))
  const sockets = new WebSocketServer({ server, perMessageDeflate: true })
  const seen: {
    authorization: string | undefined
    extensions: string | undefined
    url: string | undefined
  }[] = []
  sockets.on('connection', (socket, { headers, url }) => {
    seen.push({ authorization: headers.authorization, extensions: headers['sec-websocket-extensions'], url })
    socket.send(`hello ${VALUE}`)
    socket.on('message', (data, isBinary) => {
      socket.send(data, { binary: isBinary, fin: false })
      socket.ping()
      socket.send(data, { binary: isBinary, fin: true })
    })
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: await listen(t, server) })
  return { broker, seen }
}

async function open(broker: Awaited<ReturnType<typeof start>>['broker'], path = '/') {
  const secure = await broker.connect()
  const socket = new WebSocket(`wss://${HOST}${path}`, {
    createConnection: () => secure,
    headers: AUTHORIZED,
  })
  const messages: string[] = []
  socket.on('message', (data) => messages.push(String(data)))
  socket.on('error', () => {})
  const next = async () => {
    while (messages.length === 0) await once(socket, 'message')
    return messages.shift()
  }
  return { socket, next }
}

test('a WebSocket is opened with the value, and its messages are masked', async (t) => {
  const { broker, seen } = await start(t)
  const { socket, next } = await open(broker, `/v1/realtime?key=${PLACEHOLDER}`)
  assert.equal(await next(), `hello ${'*'.repeat(VALUE.length)}`)
  assert.deepEqual(seen, [
    { authorization: `Bearer ${VALUE}`, extensions: undefined, url: `/v1/realtime?key=${PLACEHOLDER}` },
  ])
  const half = VALUE.slice(0, 10)
  socket.send(`${VALUE.slice(10)}-${half}`)
  const masked = `${VALUE.slice(10)}-${'*'.repeat(VALUE.length)}-${half}`
  assert.equal(await next(), masked, 'a value in two frames')
  socket.send(Buffer.from(half))
  assert.equal(await next(), half + half, 'a message waits for no other')
  socket.send(PLACEHOLDER)
  assert.equal(await next(), PLACEHOLDER + PLACEHOLDER, 'no value is inserted into messages')
  socket.send('x'.repeat(200_000))
  assert.equal((await next())?.length, 400_000)
  socket.close(1000, 'bye')
  assert.equal((await once(socket, 'close'))[0], 1000)
})

test('a detached secret closes its WebSockets', async (t) => {
  const { broker } = await start(t)
  const { socket, next } = await open(broker)
  await next()
  broker.web.policy = { ...WITH_SECRET, secrets: [] }
  assert.equal((await once(socket, 'close'))[0], 1006)
})
