/** The names that get a certificate from Caddy: those that Berth serves, and no others. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { after, before, describe, it } from 'node:test'
import { CONTENT_TYPE, encodeForm, file } from '../contract/upload-form.ts'
import type { TestAgent } from '../integration/vhosts/agents/world.ts'
import { until } from '../support/processes.ts'
import { AGENTS, API, APPS, GATEWAYS, startTlsWorld, type TlsWorld } from './world.ts'

const REFUSED = /alert|ECONNRESET|EPROTO|disconnected before secure/i
const page = createServer((req, res) => void res.end(`page of ${req.headers.host}`))
let tls: TlsWorld
let agent: TestAgent
let port: number
before(async () => {
  tls = await startTlsWorld()
  agent = await tls.world.agent()
  page.listen(0, '127.0.0.1')
  await once(page, 'listening')
  port = (page.address() as AddressInfo).port
})
after(async () => {
  await tls?.stop()
  page.closeAllConnections()
  page.close()
})

/** Asserts that a handshake for a name fails, and that no certificate was created. */
async function assertNone(name: string | undefined): Promise<void> {
  await assert.rejects(tls.handshake(name), REFUSED, name)
  if (name) assert.ok(!(await tls.caddy.names()).includes(name), name)
}

/** Resolves once a name has a certificate: on a busy machine, Caddy first gets 503. */
const certified = (name: string) => until(`${name} has a certificate`, () => tls.handshake(name))

const addDomain = async (body: object) => {
  const added = await tls.api(`/v0/agents/${agent.agentId}/domains`, { targetPort: port, ...body })
  assert.equal(added.status, 200, added.text)
  return added.body.domain
}

describe('the API', () => {
  it('the API has a certificate from the start', async () => {
    assert.ok((await tls.caddy.names()).includes(API))
    const { status, headers } = await tls.ask(API, '/healthz')
    assert.equal(status, 200)
    assert.equal(headers['alt-svc'], undefined)
  })
  it('plain HTTP requests are redirected to HTTPS', async () => {
    for (const name of [API, `someone.${GATEWAYS}`]) {
      const { status, headers } = await tls.plain(tls.ports.http, '/a?b=c', { host: name })
      assert.equal(status, 308)
      assert.equal(headers.location, `https://${name}/a?b=c`)
    }
  })
})

describe('a gateway', () => {
  it('a gateway gets a certificate and serves a file, and so does the host of its CID', async () => {
    await assertNone(`files.${GATEWAYS}`)
    assert.equal((await tls.api('/v3/gateways', { domain: 'files' })).status, 200)
    const uploaded = await tls.ask(API, '/v3/files', {
      method: 'POST',
      headers: { authorization: `Bearer ${tls.key}`, 'content-type': CONTENT_TYPE },
      body: encodeForm([['network', 'public'], file('a file behind TLS', 'a.txt', 'text/plain')]),
    })
    assert.equal(uploaded.status, 200, uploaded.text)
    const { cid } = uploaded.body.data
    const atGateway = () => tls.ask(`files.${GATEWAYS}`, `/ipfs/${cid}`)
    const served = await until('its name is known', () => atGateway().catch(() => undefined))
    assert.deepEqual([served.status, served.text], [200, 'a file behind TLS'])
    await certified(`${cid}.ipfs.files.${GATEWAYS}`)
    const own = await tls.ask(`${cid}.ipfs.files.${GATEWAYS}`, '/')
    assert.deepEqual([own.status, own.text], [200, 'a file behind TLS'])
    await assertNone(`bafkqaaa.ipfs.files.${GATEWAYS}`)
    await assertNone(`${cid}.ipfs.others.${GATEWAYS}`)
  })
  it('a deleted gateway gets no more certificates', async () => {
    const { body } = await tls.api('/v3/gateways', { domain: 'gone' })
    await certified(`gone.${GATEWAYS}`)
    assert.equal((await tls.api(`/v3/gateways/${body.data.id}`, undefined, 'DELETE')).status, 200)
    await until('Berth refuses the name', async () => {
      return (await fetch(`${tls.askUrl}?domain=gone.${GATEWAYS}`)).status === 404
    })
    assert.equal((await tls.ask(`gone.${GATEWAYS}`, '/')).status, 404)
    // Caddy uses a certificate in memory until it must be renewed, and does not load it from disk again.
    await tls.caddy.restart()
    await assert.rejects(tls.handshake(`gone.${GATEWAYS}`), REFUSED)
    await certified(`files.${GATEWAYS}`)
  })
})

describe('an agent', () => {
  it('an agent gets a certificate for its own host, its subdomain and its paths', async () => {
    await certified(`${agent.agentId}.${AGENTS}`)
    const { status } = await tls.ask(`${agent.agentId}.${AGENTS}`, '/v1/models', {
      headers: { authorization: `Bearer ${agent.token}` },
    })
    assert.equal(status, 200)
    await certified(AGENTS)
    await assertNone(`xnobody1.${AGENTS}`)

    await assertNone(`${agent.agentId}.${APPS}`)
    const routes = `/v0/agents/${agent.agentId}/port-forwarding`
    assert.equal((await tls.api(routes, { mappings: [{ port, pathPrefix: '/' }] }, 'PUT')).status, 200)
    await addDomain({ subdomain: 'shop' })
    for (const name of [`${agent.agentId}.${APPS}`, `shop.${APPS}`]) {
      const answer = await until(`${name} is known`, () => tls.ask(name, '/').catch(() => undefined))
      assert.equal(answer.text, `page of ${name}:${tls.ports.https}`)
    }
    await assertNone(`www.shop.${APPS}`)
  })
})

describe('a custom domain', () => {
  it('a custom domain gets a certificate and is served only after it is verified by TXT', async () => {
    const name = 'shop.example.org'
    const { id, status, txtName, txtValue } = await addDomain({ customDomain: name })
    assert.equal(status, 'pending_ownership')
    await assertNone(name)
    tls.dns.setTxt(txtName, txtValue)
    const verify = `/v0/agents/${agent.agentId}/domains/${id}/verify`
    assert.equal((await tls.api(verify, {})).body.verified, true)
    const answer = await until('its name is known', () => tls.ask(name, '/').catch(() => undefined))
    assert.equal(answer.text, `page of ${name}:${tls.ports.https}`)
    assert.ok((await tls.caddy.names()).includes(name))
    await assertNone(`www.${name}`)
  })
  it('an unclaimed custom domain gets no certificate, and neither does a client without a name', async () => {
    await assertNone('nobody.example.org')
    await assertNone(undefined)
  })
})

describe('while Berth does not respond', () => {
  it('names get no certificate while Berth does not respond', async () => {
    await tls.api('/v3/gateways', { domain: 'late' })
    await tls.world.stopWeb()
    await assertNone(`late.${GATEWAYS}`)
  })
})
