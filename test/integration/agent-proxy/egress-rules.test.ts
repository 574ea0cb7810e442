/** Rules of methods and paths, in plain HTTP and in tunnels whose TLS the proxy ends. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { ask, askHttp2, HOST, serveHttps, startBroker, WITH_SECRET } from '../../support/brokered.ts'
import { get, openTunnel, serveHttp } from '../../support/egress.ts'
import { until } from '../../support/processes.ts'

const AS_AGENT = { 'proxy-authorization': `Basic ${btoa('agent:secret')}` }
const LIMITED = {
  ...WITH_SECRET,
  secrets: [],
  mode: 'listed' as const,
  allow: [{ host: HOST, methods: ['GET'], paths: ['/v1/*'] }],
}

test('only listed methods and paths of a host pass, and refusals are readable and counted', async (t) => {
  const seen: string[] = []
  const plain = await serveHttp(t, (req, res) => res.end(`plain ${req.method} ${req.url}`))
  const secure = await serveHttps(t, (req, res) => {
    seen.push(req.headers['accept-encoding'] ?? '')
    res.writeHead(200, { 'content-encoding': 'br' }).end(`${req.method} ${req.url}`)
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: secure, [`${HOST}:80`]: plain })
  broker.web.policy = LIMITED
  const one = async (path: string, method = 'GET', headers: Record<string, string> = {}) =>
    ask(await broker.connect(), path, { method, headers: { 'accept-encoding': 'br', ...headers } })
  assert.deepEqual([(await one('/v1/x')).body, seen], ['GET /v1/x', ['br']], 'nothing else changes')
  const session = await broker.connectHttp2()
  for (const { status, body } of [
    await one('/v2'),
    await askHttp2(session, '/v2'),
    await get(broker.port, `http://${HOST}/v2`, AS_AGENT),
  ]) {
    assert.equal(status, 403)
    assert.equal(body, `The egress policy of this agent does not list GET /v2 on ${HOST}\n`)
  }
  assert.equal((await one('/v1/x', 'DELETE')).status, 403)
  assert.equal((await one('/v1/%2e%2e/v2')).status, 403)
  assert.equal((await one('/v1/x', 'GET', { 'x-http-method-override': 'DELETE' })).status, 400)
  assert.equal((await get(broker.port, `http://${HOST}/v1/x`, AS_AGENT)).body, 'plain GET /v1/x')
  await until('all are counted', () => broker.sum('denied') === 5 && broker.sum('requests') === 3)
  assert.equal(seen.length, 1)
})

test('a new rule of methods cuts open tunnels, and requests that it forbids', async (t) => {
  const port = await serveHttps(t, (req, res) => {
    if (req.url === '/v1/slow') res.write('begun')
    else res.end('ok')
  })
  const broker = await startBroker(t, { [`${HOST}:443`]: port })
  broker.web.policy = { ...LIMITED, allow: [HOST] as never }
  const { socket } = await openTunnel(broker.port, `${HOST}:443`, AS_AGENT)
  socket.resume()
  broker.web.policy = LIMITED
  await once(socket, 'close')

  const [slow, other] = [await broker.connect(), await broker.connect()]
  const broken = ask(slow, '/v1/slow')
  assert.equal((await ask(other, '/v1/x')).status, 200)
  broker.web.policy = { ...LIMITED, allow: [{ host: HOST, methods: ['GET'], paths: ['/v1/x'] }] }
  await assert.rejects(broken)
  assert.equal((await ask(other, '/v1/x')).status, 200, 'a connection without such a request stays')
  assert.equal((await ask(other, '/v1/y')).status, 403)
})
