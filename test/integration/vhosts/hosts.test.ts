/** Hosts under settings that the contract suite's Berth does not have: behind a proxy, and with a public address. */
import assert from 'node:assert/strict'
import { after, describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import type { RouteServices } from '../../../src/http/admission.ts'
import { createServer } from '../../../src/http/server.ts'
import { type TrustedProxies, trustProxies } from '../../../src/lib/net/trusted-proxies.ts'
import { createLogger } from '../../../src/log.ts'
import { byHost } from '../../../src/vhosts/hosts.ts'
import { serve } from '../../support/gateway.ts'
import { listen } from '../../support/http-server.ts'
import { until } from '../../support/processes.ts'

/** A server whose gateways return 200 for everything and whose API has no routes. */
async function start({
  trustProxy = 0,
  publicUrl,
}: {
  trustProxy?: TrustedProxies
  publicUrl?: string
} = {}) {
  const lines: string[] = []
  const log = createLogger('test', 'debug', { write: (line) => void lines.push(line) })
  const answer =
    (name: string): RequestHandler =>
    (req, res) =>
      void res.send(`${name} of ${req.host}`)
  const vhosts = byHost(publicUrl, [
    { domain: 'gateway.example', handler: answer('gateway') },
    { domain: 'agents.gateway.example', handler: answer('agent') },
  ])
  const services = {} as RouteServices // there are no routes to serve
  const app = createServer({ routes: [], services, vhosts, gatewayUrl: '', log })
  after(trustProxies(app, trustProxy, log))
  const url = await listen(app)
  const ask = async (headers: Record<string, string>, path = '/') => {
    const { status, text } = await serve(url, 'GET', path, headers)
    return status === 404 ? 'api' : text
  }
  return { ask, lines }
}

describe('behind a trusted proxy', () => {
  it('the host of a request behind a trusted proxy is the host that the proxy was asked for', async () => {
    const { ask } = await start({ trustProxy: 1 })
    const host = 'api.example'
    assert.equal(await ask({ host, 'x-forwarded-host': 'a.gateway.example' }), 'gateway of a.gateway.example')
    assert.equal(await ask({ host: 'a.gateway.example', 'x-forwarded-host': host }), 'api')
    assert.equal(await ask({ host: 'a.gateway.example' }), 'gateway of a.gateway.example')
  })

  it('a trusted proxy is identified by its address, its network or its name', async () => {
    const headers = { host: 'api.example', 'x-forwarded-host': 'a.gateway.example' }
    for (const trustProxy of [['127.0.0.1'], ['10.0.0.0/8', '127.0.0.0/30'], ['loopback'], ['localhost']]) {
      const { ask } = await start({ trustProxy })
      const isTrusted = async () => (await ask(headers)) === 'gateway of a.gateway.example'
      await until(`${trustProxy} is trusted`, isTrusted)
    }
  })

  it('only listed proxies are trusted', async () => {
    const headers = { host: 'api.example', 'x-forwarded-host': 'a.gateway.example' }
    for (const trustProxy of [['10.229.0.2'], ['127.0.0.2'], ['uniquelocal'], ['proxy.invalid']]) {
      const { ask } = await start({ trustProxy })
      assert.equal(await ask(headers), 'api', `${trustProxy}`)
    }
  })

  it('the host of a request does not come from an unknown proxy’s headers', async () => {
    const { ask } = await start()
    assert.equal(await ask({ host: 'api.example', 'x-forwarded-host': 'a.gateway.example' }), 'api')
  })
})

describe('the address of the API', () => {
  it('the address of the API stays reserved, even below the gateway domain', async () => {
    const { ask } = await start({ publicUrl: 'https://API.gateway.example:8443/berth' })
    assert.equal(await ask({ host: 'api.gateway.example:8443' }), 'api')
    assert.equal(await ask({ host: 'Api.Gateway.Example' }), 'api')
    assert.equal(await ask({ host: 'other.gateway.example' }), 'gateway of other.gateway.example')
    assert.equal(await ask({ host: 'gateway.example' }), 'api')
  })
})

describe('a domain below another', () => {
  it('a domain below another keeps its own hosts', async () => {
    const { ask } = await start()
    assert.equal(await ask({ host: 'a.agents.gateway.example' }), 'agent of a.agents.gateway.example')
    assert.equal(await ask({ host: 'A.Agents.gateway.example.' }), 'agent of A.Agents.gateway.example.')
    assert.equal(await ask({ host: 'agents.gateway.example' }), 'api')
    assert.equal(await ask({ host: 'agents.example' }), 'api')
  })
})

describe('the log', () => {
  it('the log has requests to gateways, without their tokens', async () => {
    const { ask, lines } = await start()
    const secrets = '?pinataGatewayToken=s3cret&a=1&X-Signature=s3cret'
    await ask({ host: 'a.gateway.example' }, `/ipfs/x${secrets}`)
    const line = await until('the request is logged', () => lines.find((text) => text.includes('/ipfs/x')))
    assert.match(line, /pinataGatewayToken=…&a=1&X-Signature=…/)
    assert.doesNotMatch(lines.join(), /s3cret/)
  })
})
