import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { openTunnel } from '../../../src/agent-proxy/tunnel-client.ts'
import { serveTcp, statusOf, talk } from '../../support/egress.ts'
import { holdUp, run, until } from '../../support/processes.ts'
import { AGENT_PROXY_KEY, startTunnelServer } from '../../support/tunnel-server.ts'

const key = AGENT_PROXY_KEY
const authorization = `Proxy-Authorization: Bearer ${key}`

test('a tunnel passes bytes both ways, and each side ends separately', async (t) => {
  const agentd = await serveTcp(t, (socket) => void text(socket).then((sent) => socket.end(`${sent} back`)))
  const { port } = await startTunnelServer(t)
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.end(`CONNECT 127.0.0.1:${agentd} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\nthere`)
  assert.equal(await text(socket), 'HTTP/1.1 200 Connection Established\r\n\r\nthere back')
})

test('the tunnel server requires the key and serves only tunnels', async (t) => {
  const agentd = await serveTcp(t, () => assert.fail('nobody may get here'))
  const { port } = await startTunnelServer(t)
  const target = `127.0.0.1:${agentd}`
  const cases: [expected: number, request: string][] = [
    [407, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\n\r\n`],
    [407, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Bearer ${key}x\r\n\r\n`],
    [407, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\nProxy-Authorization: Basic ${key}\r\n\r\n`],
    [407, `CONNECT ${target} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${key}\r\n\r\n`],
    [407, `GET http://${target}/ HTTP/1.1\r\nHost: x\r\n\r\n`],
    [405, `GET http://${target}/ HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`],
    [
      405,
      `GET / HTTP/1.1\r\nHost: x\r\n${authorization}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n`,
    ],
    [400, `CONNECT nowhere HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`],
    [400, 'nonsense\r\n\r\n'],
    [431, `CONNECT ${target} HTTP/1.1\r\nX: ${'x'.repeat(20_000)}\r\n\r\n`],
  ]
  for (const [expected, request] of cases) {
    assert.equal(statusOf(await talk(port, request)), expected, request.slice(0, 90))
  }
})

test('tunnels lead only to agents’ addresses', async (t) => {
  const agentd = await serveTcp(t, (socket) => socket.end('agentd'))
  const { port } = await startTunnelServer(t, { networks: ['127.0.1.0/24', '10.231.0.0/16'] })
  const hosts = ['127.0.0.1', '127.1', '0.0.0.0', 'localhost', '10.232.0.1', '[::1]', '[::ffff:127.0.1.1]']
  for (const host of [...hosts, '169.254.169.254', 'example.org', '127.0.1.1.example']) {
    const answer = await talk(
      port,
      `CONNECT ${host}:${agentd} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`,
    )
    assert.equal(statusOf(answer), 403, host)
  }
  const answer = await talk(port, `CONNECT 127.0.1.9:1 HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`)
  assert.equal(statusOf(answer), 502)
})

test('the address of another Berth’s agent returns 502', async (t) => {
  const agentd = await serveTcp(t, () => assert.fail('nobody may get here'))
  const { port } = await startTunnelServer(t, { isOwn: (address) => address === '127.0.0.2' })
  const ask = (host: string) =>
    talk(port, `CONNECT ${host}:${agentd} HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`)
  const answer = await ask('127.0.0.1')
  assert.equal(statusOf(answer), 502)
  assert.match(answer, /No agent of this Berth has this address/)
})

test('an address that does not answer times out', async (t) => {
  const { port } = await startTunnelServer(t, { networks: ['192.0.2.0/24'], limits: { connectMs: 100 } })
  const answer = await talk(port, `CONNECT 192.0.2.1:80 HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`)
  // If there is no route to it, it is unreachable at once.
  assert.ok([502, 504].includes(statusOf(answer)), answer)
})

test('tunnels have a number limit and an idle limit, and a broken side closes the other', async (t) => {
  const accepted: Socket[] = []
  const agentd = await serveTcp(t, (socket) => void accepted.push(socket.resume()))
  const { port, registry } = await startTunnelServer(t, { limits: { tunnels: 2, idleMs: 3000 } })
  const way = { hostname: '127.0.0.1', port, key }
  const target = `127.0.0.1:${agentd}`
  const [first, second] = [await openTunnel(way, target), await openTunnel(way, target)]
  await until('both have arrived', () => accepted.length === 2)
  await assert.rejects(openTunnel(way, target), /no free tunnel/)
  const ended = once(first, 'close')
  first.resume()
  accepted[0]?.resetAndDestroy()
  await ended
  second.resume()
  await once(second, 'close')
  const metrics = () => registry.metrics()
  await until('both are counted', async () => /passed"} 2/.test(await metrics()))
  assert.match(await metrics(), /berth_tunnels_total\{outcome="503"\} 1/)
  assert.match(await metrics(), /berth_tunnels_open 0/)
})

test('the log names targets but no key', async (t) => {
  const { port, lines } = await startTunnelServer(t)
  await talk(port, `CONNECT 127.0.0.1:1 HTTP/1.1\r\nHost: x\r\n${authorization}\r\n\r\n`)
  const line = await until('it is logged', () => lines.find((text) => text.includes('"msg":"tunnel"')))
  assert.match(line, /"target":"127.0.0.1:1","outcome":"502"/)
  assert.ok(!lines.join('').includes(key))
})

test('a client learns why a tunnel failed, and never waits long', async (t) => {
  const silent = await serveTcp(t, (socket) => socket.resume())
  const web = await serveTcp(t, (socket) => socket.end('HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n'))
  const gone = await serveTcp(t, (socket) => socket.destroy())
  const way = (port: number) => openTunnel({ hostname: '127.0.0.1', port, key }, '127.0.0.1:1')
  await assert.rejects(way(web), /answered 404/)
  await assert.rejects(way(gone))
  await assert.rejects(way(1), /ECONNREFUSED/)
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const waiting = assert.rejects(way(silent), /does not answer/)
  t.mock.timers.tick(5000)
  await waiting
})

/**
 * Forwards connections to the port in its argument and prints its own port. Its backlog holds one waiting connection.
 */
const GATE = `import { connect, createServer } from 'node:net'
createServer((client) => {
  const upstream = connect(Number(process.argv[1]), '127.0.0.1')
  client.on('error', () => {}).pipe(upstream).on('error', () => {}).pipe(client)
}).listen({ host: '127.0.0.1', port: 0, backlog: 1 }, function () { console.log('port', this.address().port) })`

test('a client waits for an agent proxy whose connections take longer than one attempt', async (t) => {
  const { port } = await startTunnelServer(t)
  const agent = await serveTcp(t, (socket) => socket.end('hello'))
  const gate = run(process.execPath, ['--input-type=module', '--eval', GATE, String(port)])
  t.after(() => gate.end('SIGKILL'))
  const [, at] = await until('it listens', () => /port (\d+)/.exec(gate.output()) ?? undefined)
  await holdUp(gate.process.pid ?? 0)
  // They fill the backlog: the next connection is neither accepted nor refused.
  const waiting = [1, 2, 3].map(() => connect(Number(at), '127.0.0.1').on('error', () => {}))
  t.after(() => waiting.map((socket) => socket.destroy()))
  await until('two wait', () => waiting.filter(({ readyState }) => readyState === 'open').length === 2)
  const beganAt = performance.now()
  const opening = openTunnel({ hostname: '127.0.0.1', port: Number(at), key }, `127.0.0.1:${agent}`)
  await until('some attempts have passed', () => performance.now() - beganAt > 3300)
  gate.process.kill('SIGCONT')
  assert.equal(await text(await opening), 'hello')
})
