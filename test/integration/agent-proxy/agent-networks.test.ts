/** Agent networks use loopback here: this machine owns all of 127.0.0.0/8. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type IncomingMessage, request } from 'node:http'
import { createServer, type Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { type TestContext, test } from 'node:test'
import { AgentNetworks, type Interface } from '../../../src/agent-proxy/agent-networks.ts'
import type { EgressOptions } from '../../../src/agent-proxy/egress.ts'
import { createLogger } from '../../../src/log.ts'
import { serveHttp, serveTcp, startProxy } from '../../support/egress.ts'
import { until } from '../../support/processes.ts'

async function start(t: TestContext, allowed: string[], limits: EgressOptions['limits'] = {}) {
  let up: Interface[] = []
  const { proxy, port } = await startProxy(t, allowed, { limits })
  const lines: string[] = []
  const log = createLogger('test', 'debug', { write: (line: string) => void lines.push(line) })
  let looks = 0
  const interfaces = () => {
    looks++
    return up
  }
  const isOwn = (name: string) => name.startsWith('own')
  const networks = new AgentNetworks({ egress: proxy, port, subnets: '127.9.0.0/16', isOwn, log, interfaces })
  await networks.start()
  t.after(() => networks.stop())
  return {
    port,
    lines,
    looks: () => looks,
    networks,
    setUp(...addresses: string[]) {
      up = addresses.map((cidr, i) => ({ name: `own${i}`, cidr }))
    },
    setUpOthers(...addresses: string[]) {
      up = [...up, ...addresses.map((cidr, i) => ({ name: `other${i}`, cidr }))]
    },
  }
}

/**
 * The status that a client at `from` gets through the proxy at `host`; undefined if the proxy closes the connection.
 */
async function statusFrom(
  from: string,
  host: string,
  port: number,
  url: string,
): Promise<number | undefined> {
  const sent = request({ host, port, path: url, localAddress: from, agent: false })
  sent.end()
  try {
    const [response] = (await once(sent, 'response')) as [IncomingMessage]
    await text(response)
    return response.statusCode
  } catch (error) {
    assert.match(String((error as NodeJS.ErrnoException).code), /ECONNRESET|ECONNREFUSED/)
    return undefined
  }
}

test('the proxy listens on each active agent network and serves only its agent', async (t) => {
  const upstream = await serveHttp(t, (_req, res) => res.end())
  const url = `http://127.0.0.1:${upstream}/`
  const { port, setUp } = await start(t, [`127.0.0.1:${upstream}`])
  const ask = (from: string, host: string) => statusFrom(from, host, port, url)
  assert.equal(await ask('127.9.0.2', '127.9.0.1'), undefined)

  setUp('127.9.0.1/29', '127.9.0.9/29', '127.8.0.1/29')
  await until('the first is open', async () => (await ask('127.9.0.2', '127.9.0.1')) === 200)
  await until('the second is open', async () => (await ask('127.9.0.10', '127.9.0.9')) === 200)
  assert.equal(await ask('127.9.0.10', '127.9.0.1'), undefined, 'another agent')
  assert.equal(await ask('127.0.0.1', '127.9.0.1'), undefined, 'nobody’s')
  assert.equal(await ask('127.8.0.2', '127.8.0.1'), undefined, 'a network that belongs to no agent')
  assert.equal(await statusFrom('127.9.0.2', '127.9.0.1', port, `http://127.0.0.1:${port}/`), 403)

  setUp('127.9.0.9/29')
  await until('the first is closed', async () => (await ask('127.9.0.2', '127.9.0.1')) === undefined)
  assert.equal(await ask('127.9.0.10', '127.9.0.9'), 200)
  setUp('127.9.0.1/29', '127.9.0.9/29')
  await until('the first is open again', async () => (await ask('127.9.0.2', '127.9.0.1')) === 200)
})

test('the proxy ignores an agent network of another Berth in the same subnets', async (t) => {
  const { port, networks, setUp, setUpOthers } = await start(t, [])
  const ask = (from: string, host: string) => statusFrom(from, host, port, 'http://127.0.0.1:1/')
  setUp('127.9.0.1/29')
  setUpOthers('127.9.0.9/29')
  await until('our own network is open', async () => (await ask('127.9.0.2', '127.9.0.1')) === 403)
  assert.equal(await ask('127.9.0.10', '127.9.0.9'), undefined)
  assert.deepEqual([networks.has('127.9.0.2'), networks.has('127.9.0.10')], [true, false])
  setUp('127.9.0.17/29')
  assert.ok(
    networks.has('127.9.0.18'),
    'a lookup checks the system at once, without waiting for the next poll',
  )
})

test('an unavailable address is logged once and retried', async (t) => {
  const { port, setUp, lines, looks } = await start(t, [])
  const holder = createServer().listen(port, '127.9.0.1')
  await once(holder, 'listening')
  t.after(() => holder.close())
  setUp('127.9.0.1/29')
  const warnings = () => lines.filter((line) => line.includes('an agent has no way out'))
  await until('the warning is logged', () => warnings().length > 0)
  const seen = looks()
  await until('the address was retried', () => looks() > seen + 1)
  assert.equal(warnings().length, 1)
  holder.close()
  await until('it is open', async () => {
    return (await statusFrom('127.9.0.2', '127.9.0.1', port, 'http://127.0.0.1:1/')) === 403
  })
})

test('an agent cannot exceed its share of connections', async (t) => {
  const accepted: Socket[] = []
  const upstream = await serveTcp(t, (socket) => void accepted.push(socket))
  const { port, setUp } = await start(t, [`127.0.0.1:${upstream}`], { agentExchanges: 2 })
  setUp('127.9.0.1/29', '127.9.0.9/29')
  const openFrom = async (from: string, host: string) => {
    const sent = request({
      host,
      port,
      method: 'CONNECT',
      path: `127.0.0.1:${upstream}`,
      localAddress: from,
      agent: false,
    })
    sent.end()
    const [response, socket] = (await once(sent, 'connect')) as [IncomingMessage, Socket]
    t.after(() => socket.destroy())
    return response.statusCode
  }
  await until('it is open', () => openFrom('127.9.0.2', '127.9.0.1').catch(() => undefined))
  assert.equal(await openFrom('127.9.0.2', '127.9.0.1'), 200)
  assert.equal(await openFrom('127.9.0.3', '127.9.0.1'), 503)
  const ofAnother = () => openFrom('127.9.0.10', '127.9.0.9').catch(() => undefined)
  assert.equal(await until('the other one is open', ofAnother), 200)
})
