import assert from 'node:assert/strict'
import { createServer as createHttpServer } from 'node:http'
import { test } from 'node:test'
import {
  get,
  listen,
  openTunnel,
  serveHttp,
  serveTcp,
  startProxy,
  statusOf,
  talk,
} from '../../test/support/egress.ts'

test('private addresses are refused in every spelling, by request, CONNECT and upgrade', async (t) => {
  let connections = 0
  const upstream = await serveTcp(t, (socket) => {
    connections++
    socket.destroy()
  })
  const { port } = await startProxy(t)
  const hosts = ['127.0.0.1', 'localhost', 'LOCALHOST', '127.1', '0x7f000001', '2130706433', '0.0.0.0']
  hosts.push('[::1]', '[::ffff:127.0.0.1]', '[::]', '[64:ff9b::7f00:1]')
  for (const host of hosts) {
    const { status, body } = await get(port, `http://${host}:${upstream}/`)
    assert.equal(status, 403, host)
    assert.match(body, /^\S+ is not on the public internet\n$/)
    assert.equal((await openTunnel(port, `${host}:${upstream}`)).status, 403, host)
    const upgrade = `GET http://${host}:${upstream}/ HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`
    assert.equal(statusOf(await talk(port, upgrade)), 403, host)
  }
  for (const host of ['169.254.169.254', '10.0.0.1', '192.168.0.1', '[fd00::1]', '[fe80::1]']) {
    assert.equal((await openTunnel(port, `${host}:80`)).status, 403, host)
  }
  assert.equal(connections, 0)
})

test("Berth's hosts on loopback lead to web, with the requested host name", async (t) => {
  const web = await serveHttp(t, (req, res) => res.end(`web for ${req.headers.host}`))
  const hosts = ['localhost', '*.agents.localhost'].map((host) => ({ host, port: 3000 }))
  const at = { host: '127.0.0.1', port: web }
  const { port } = await startProxy(t, [], { routes: [{ hosts, at }] })
  for (const host of ['localhost:3000', 'x123.agents.localhost:3000'])
    assert.equal((await get(port, `http://${host}/`)).body, `web for ${host}`)
  assert.equal((await openTunnel(port, 'localhost:3000')).status, 200)
  for (const host of [`localhost:${web}`, 'localhost:3001', '127.0.0.1:3000'])
    assert.equal((await get(port, `http://${host}/`)).status, 403, host)
})

test('one private address among public ones refuses the name', async (t) => {
  const resolve = async () => [
    { address: '1.1.1.1', family: 4 },
    { address: '10.0.0.1', family: 4 },
  ]
  const { port } = await startProxy(t, [], { resolve })
  assert.equal((await get(port, 'http://mixed.example/')).status, 403)
})

test('a name is resolved once, and the checked address is used (DNS rebinding)', async (t) => {
  const checked = await serveHttp(t, (_req, res) => res.end('checked'))
  await listen(
    t,
    createHttpServer((_req, res) => res.end('rebound')),
    '127.0.0.2',
    checked,
  )
  let calls = 0
  const resolve = async () => [{ address: `127.0.0.${++calls}`, family: 4 }]
  const { port } = await startProxy(t, [`rebind.example:${checked}`], { resolve })
  assert.equal((await get(port, `http://rebind.example:${checked}/`)).body, 'checked')
  assert.equal(calls, 1)
})

test('a name with several addresses connects to the one that responds', async (t) => {
  const upstream = await serveHttp(t, (_req, res) => res.end('here'))
  const resolve = async () => [
    { address: '::1', family: 6 },
    { address: '127.0.0.9', family: 4 },
    { address: '127.0.0.1', family: 4 },
  ]
  const { port } = await startProxy(t, [`many.example:${upstream}`], { resolve })
  assert.equal((await get(port, `http://many.example:${upstream}/`)).body, 'here')
})

test('the allow-list covers only the listed port and name', async (t) => {
  const upstream = await serveHttp(t, (_req, res) => res.end('ok'))
  const other = await serveHttp(t, (_req, res) => res.end('ok'))
  const resolve = async () => [{ address: '127.0.0.1', family: 4 }]
  const { port } = await startProxy(t, [`Allowed.example:${upstream}`], { resolve })
  assert.equal((await get(port, `http://allowed.EXAMPLE:${upstream}/`)).status, 200)
  assert.equal((await get(port, `http://allowed.example:${other}/`)).status, 403)
  assert.equal((await get(port, `http://other.example:${upstream}/`)).status, 403)
  assert.equal((await get(port, `http://127.0.0.1:${upstream}/`)).status, 403)
})
