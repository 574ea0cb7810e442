/**
 * Custom domains of gateways, with the test's own DNS server; domains of agents are tested in `agents/domains.test.ts`.
 */
import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { after, beforeEach, describe, it } from 'node:test'
import { assertError, soon } from '../support/client.ts'
import { startDnsServer } from '../support/dns.ts'
import { gatewayReader } from '../support/gateway.ts'
import { freePort, until } from '../support/processes.ts'
import { insertAgent } from './agents/rows.ts'
import { inlineCid, openContext, type Workspace } from './context.ts'
import { openGateway } from './gateway.ts'
import { store } from './stored.ts'
import { startWebProcess } from './web-process.ts'

const GATEWAYS = '/v3/gateways'
const NO_DOMAIN = 'The gateway has no such domain'
const TAKEN = 'This domain is already registered and verified'

const context = await openContext()
const dns = await startDnsServer()
after(() => dns.close())
const askPort = await freePort()
const web = await startWebProcess(context.env, {
  BERTH_DNS_SERVER: dns.address,
  BERTH_TLS_ASK: `${askPort}`,
})
after(() => web.running.end())
beforeEach(() => dns.clear())

const own = await context.workspace()
const other = await context.workspace()
const newName = () => `${randomUUID().slice(0, 13)}.example.test`
/** The API of a workspace, at the process that uses the test's DNS server. */
const here = ({ api }: Workspace) => api.at(web.url)

async function newGateway(of: Workspace = own) {
  const { id, host } = await openGateway(context, of)
  const api = here(of)
  const path = `${GATEWAYS}/${id}/custom_domain`
  const verifyOnce = (domainId: string) => api.post(`${path}/${domainId}/verify`, undefined)
  /** Repeats the request if the DNS response came too late. */
  const verify = (domainId: string) =>
    soon(
      () => verifyOnce(domainId),
      ({ status }) => status !== 503,
    )
  return {
    id,
    api,
    path,
    host: host.replace(/:\d+$/, ''),
    add: (domain: unknown) => api.post(path, { domain }),
    verify,
    verifyOnce,
    remove: (domainId: string) => api.delete(`${path}/${domainId}`),
    /** An active domain. */
    async proven(name = newName()) {
      const { body } = await api.post(path, { domain: name })
      dns.setTxt(body.data.txt_name, body.data.txt_value)
      return (await verify(body.data.custom_domain_id)).body.data
    },
  }
}
const isAsked = async (name: string) => (await fetch(`http://127.0.0.1:${askPort}/?domain=${name}`)).status

describe('a custom domain of a gateway', () => {
  it('a custom domain of a gateway is pending until its TXT record is found, then active', async () => {
    const gateway = await newGateway()
    const name = newName()
    const { status, body } = await gateway.add(name.toUpperCase())
    assert.equal(status, 200)
    const { custom_domain_id, txt_value, ...rest } = body.data
    assert.match(txt_value, /^berth-verify=[\w-]{43}$/)
    assert.deepEqual(rest, {
      domain: name,
      domain_validation_status: 'pending',
      ssl_validation_status: 'initializing',
      txt_name: `_service-verify.${name}`,
      cname_target: gateway.host,
    })
    assert.deepEqual((await gateway.api.get(`${gateway.path}/${custom_domain_id}`)).body, body)
    assert.deepEqual((await gateway.api.get(`${GATEWAYS}/${gateway.id}`)).body.data.custom_domains, [
      body.data,
    ])
    assert.deepEqual((await gateway.verify(custom_domain_id)).body, body)
    dns.setTxt(rest.txt_name, 'v=spf1 -all', txt_value)
    const verified = await gateway.verify(custom_domain_id)
    const states = { domain_validation_status: 'active', ssl_validation_status: 'active' }
    const active = { ...body.data, ...states, txt_name: null, txt_value: null }
    assert.deepEqual([verified.status, verified.body], [200, { data: active }])
    const { rows } = (await gateway.api.get(GATEWAYS)).body.data
    assert.deepEqual(rows.find(({ id }: { id: string }) => id === gateway.id).custom_domains, [active])
    dns.clear()
    assert.deepEqual((await gateway.verify(custom_domain_id)).body, { data: active })
  })

  it('a custom domain is active at once if its TXT record exists, even one for an agent', async () => {
    const gateway = await newGateway()
    const agent = await insertAgent(context, own)
    const name = newName()
    const challenge = await here(own).post(`${agent.path}/domains/challenge`, { customDomain: name })
    dns.setTxt(challenge.body.name, challenge.body.value)
    const { body } = await gateway.api.post(gateway.path.replace('/v3/', '/v3/ipfs/'), {
      custom_domain: name,
    })
    assert.equal(body.data.domain_validation_status, 'active')
  })

  it("a custom domain serves the gateway's content, public and private, once it is active", async () => {
    const gateway = await newGateway()
    const name = newName()
    const reader = gatewayReader(web.url, name)
    const [open, hidden] = [await store(own.api, 'public', 'open'), await store(own.api, 'private', 'hidden')]
    const { body } = await gateway.add(name)
    assert.equal((await reader.get(`/ipfs/${open.cid}`)).status, 404)
    assert.equal(await isAsked(name), 404)
    dns.setTxt(body.data.txt_name, body.data.txt_value)
    await gateway.verify(body.data.custom_domain_id)
    const served = await reader.get(`/ipfs/${open.cid}`)
    assert.deepEqual([served.status, served.text], [200, 'open'])
    assert.match(`${served.headers['content-security-policy']}`, /^sandbox /)
    await until('a certificate may be issued', async () => (await isAsked(name)) === 200)
    const asked = { url: `https://${name}/files/${hidden.cid}`, expires: 60, method: 'GET' }
    const link = new URL((await gateway.api.post('/v3/files/private/download_link', asked)).body.data)
    assert.equal((await reader.get(`${link.pathname}${link.search}`)).text, 'hidden')
    assert.equal((await reader.get(`/files/${hidden.cid}`)).status, 401)
    // The API is not served here.
    assert.equal((await reader.get('/v3/gateways', { authorization: `Bearer ${own.api.key}` })).status, 404)
    assert.equal((await gateway.remove(body.data.custom_domain_id)).status, 200)
    assert.equal((await reader.get(`/ipfs/${open.cid}`)).status, 404)
    assertError(await gateway.remove(body.data.custom_domain_id), 404, NO_DOMAIN)
  })

  it('a custom domain goes to the first gateway or agent that proves it', async () => {
    const gateway = await newGateway()
    const name = newName()
    const rival = await newGateway(other)
    const agent = await insertAgent(context, other)
    const late = (await rival.add(name)).body.data
    assertError(await rival.add(name), 409, 'The gateway has this domain already')
    await gateway.proven(name)
    assertError(await rival.verify(late.custom_domain_id), 409, TAKEN)
    assertError(await (await newGateway(other)).add(name), 409, TAKEN)
    const domains = `${agent.path}/domains`
    const asAgent = { customDomain: name, targetPort: 3000 }
    assertError(await here(other).post(domains, asAgent), 409, TAKEN)
    const agents = newName()
    const { body } = await here(other).post(domains, { ...asAgent, customDomain: agents })
    dns.setTxt(body.domain.txtName, body.domain.txtValue)
    await here(other).post(`${domains}/${body.domain.id}/verify`, undefined)
    assertError(await gateway.add(agents), 409, TAKEN)
  })

  it('a custom domain goes to one of several gateways that prove it at once', async () => {
    const gateways = await Promise.all(Array.from({ length: 6 }, () => newGateway()))
    const name = newName()
    const added = await Promise.all(gateways.map((gateway) => gateway.add(name)))
    const [first] = added
    dns.setTxt(first?.body.data.txt_name, first?.body.data.txt_value)
    const replies = await Promise.all(
      gateways.map((gateway, i) => gateway.verify(added[i]?.body.data.custom_domain_id)),
    )
    assert.deepEqual(replies.map(({ status }) => status).sort(), [200, 409, 409, 409, 409, 409])
  })

  it('a custom domain is free again after its gateway is deleted', async () => {
    const gateway = await newGateway()
    const { domain } = await gateway.proven()
    await gateway.api.delete(`${GATEWAYS}/${gateway.id}`)
    assert.equal((await (await newGateway(other)).proven(domain)).domain_validation_status, 'active')
  })

  it('a pending custom domain stays pending without DNS, and verifying it returns 503', async () => {
    const gateway = await newGateway()
    dns.behave('broken')
    const { status, body } = await gateway.add(newName())
    assert.deepEqual([status, body.data.domain_validation_status], [200, 'pending'])
    assertError(await gateway.verifyOnce(body.data.custom_domain_id), 503, 'DNS did not answer: try again')
  })

  it("a custom domain of a gateway redirects to CID hosts of the gateway's own host", async () => {
    const gateway = await newGateway()
    const { domain } = await gateway.proven()
    const cid = `${inlineCid('at a custom domain')}`
    await gateway.api.request('PATCH', `${GATEWAYS}/${gateway.id}`, { json: { cid_hosts: true } })
    const { status, headers } = await gatewayReader(web.url, domain).get(`/ipfs/${cid}/x?a=b`)
    assert.deepEqual([status, headers.location], [301, `http://${cid}.ipfs.${gateway.host}/x?a=b`])
  })
  it('a gateway can have five custom domains', async () => {
    const gateway = await newGateway()
    for (let i = 0; i < 5; i++) assert.equal((await gateway.add(newName())).status, 200)
    assertError(await gateway.add(newName()), 400, 'A gateway can have at most 5 domains')
  })

  it('a custom domain of a gateway is not part of the free plan', async () => {
    const gateway = await newGateway(await context.workspace('free'))
    assertError(await gateway.add(newName()), 403, 'Custom domains are not part of the free plan')
  })
})
