/** Hosts with settings that the contract suite's Berth does not have: behind a proxy, and with a public address. */
import assert from 'node:assert/strict'
import { Writable } from 'node:stream'
import { describe, it } from 'node:test'
import type { RequestHandler } from 'express'
import pino from 'pino'
import { Registry } from 'prom-client'
import { byHost } from '../../../src/edge/hosts.ts'
import type { RouteServices } from '../../../src/http/route.ts'
import { createServer } from '../../../src/http/server.ts'
import { serve } from '../../support/gateway.ts'
import { until } from '../../support/processes.ts'
import { listen } from './server.ts'

/** A server whose gateways answer all with 200, and whose API has no routes. */
async function start({ trustProxy = 0, publicUrl }: { trustProxy?: number; publicUrl?: string } = {}) {
  const lines: string[] = []
  const log = pino(
    { level: 'debug' },
    new Writable({ write: (chunk, _, done) => done(void lines.push(`${chunk}`)) }),
  )
  const answer =
    (name: string): RequestHandler =>
    (req, res) =>
      void res.send(`${name} of ${req.host}`)
  const edge = byHost(publicUrl, [
    { domain: 'gateway.example', handler: answer('gateway') },
    { domain: 'agents.gateway.example', handler: answer('agent') },
  ])
  const services = {} as RouteServices // there are no routes to serve
  const url = await listen(
    createServer({ routes: [], services, registry: new Registry(), edge, trustProxy, log }),
  )
  const ask = async (headers: Record<string, string>, path = '/') => {
    const { status, text } = await serve(url, 'GET', path, headers)
    return status === 404 ? 'api' : text
  }
  return { ask, lines }
}

describe('behind a proxy that is trusted', () => {
  it('the host is the one that the proxy was asked for', async () => {
    const { ask } = await start({ trustProxy: 1 })
    const host = 'api.example'
    assert.equal(await ask({ host, 'x-forwarded-host': 'a.gateway.example' }), 'gateway of a.gateway.example')
    assert.equal(await ask({ host: 'a.gateway.example', 'x-forwarded-host': host }), 'api')
    assert.equal(await ask({ host: 'a.gateway.example' }), 'gateway of a.gateway.example')
  })

  it('is not the one of a proxy that is not', async () => {
    const { ask } = await start()
    assert.equal(await ask({ host: 'api.example', 'x-forwarded-host': 'a.gateway.example' }), 'api')
  })
})

describe('the address of the API', () => {
  it('stays its own, also below the domain of the gateways', async () => {
    const { ask } = await start({ publicUrl: 'https://API.gateway.example:8443/berth' })
    assert.equal(await ask({ host: 'api.gateway.example:8443' }), 'api')
    assert.equal(await ask({ host: 'Api.Gateway.Example' }), 'api')
    assert.equal(await ask({ host: 'other.gateway.example' }), 'gateway of other.gateway.example')
    assert.equal(await ask({ host: 'gateway.example' }), 'api')
  })
})

describe('a domain below another', () => {
  it('has its own hosts', async () => {
    const { ask } = await start()
    assert.equal(await ask({ host: 'a.agents.gateway.example' }), 'agent of a.agents.gateway.example')
    assert.equal(await ask({ host: 'A.Agents.gateway.example.' }), 'agent of A.Agents.gateway.example.')
    assert.equal(await ask({ host: 'agents.gateway.example' }), 'api')
    assert.equal(await ask({ host: 'agents.example' }), 'api')
  })
})

describe('the log', () => {
  it('has requests to gateways, without what opens them', async () => {
    const { ask, lines } = await start()
    const secrets = '?pinataGatewayToken=s3cret&a=1&X-Signature=s3cret'
    await ask({ host: 'a.gateway.example' }, `/ipfs/x${secrets}`)
    const line = await until('the request is logged', () => lines.find((text) => text.includes('/ipfs/x')))
    assert.match(line, /pinataGatewayToken=…&a=1&X-Signature=…/)
    assert.doesNotMatch(lines.join(), /s3cret/)
  })
})
