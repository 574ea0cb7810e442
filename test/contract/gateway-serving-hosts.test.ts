/** The hosts of requests: the API's host serves no content, and a gateway's host serves no API. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertRefused, gatewayReader, sendRaw, serve } from '../support/gateway.ts'
import { inlineCid, openContext } from './context.ts'
import { openGateway } from './gateway.ts'

const context = await openContext()
const { url } = context
const workspace = await context.workspace()
const gateway = await openGateway(context, workspace)
const name = gateway.host.replace(/:\d+$/, '')
const cid = inlineCid('<script>alert(document.domain)</script>')
await workspace.api.pin({ cid: `${cid}` }, { wait: 120 })
const CONTENT = `/ipfs/${cid}`
const API_ROUTES = ['/readyz', '/healthz', '/docs', '/openapi.json', '/v3/files/public']

describe("a gateway's host", () => {
  it("a gateway's host is matched in any case, with any port, and with a trailing dot", async () => {
    for (const host of [
      name,
      gateway.host,
      `${name}:80`,
      `${name}:`,
      name.toUpperCase(),
      `${name}.`,
      `${name}.:1`,
    ]) {
      assert.equal((await gatewayReader(url, host).get(CONTENT)).status, 200, host)
    }
  })

  it("a gateway's host has no API routes", async () => {
    for (const path of API_ROUTES) {
      const authorization = `Bearer ${workspace.api.key}`
      assertRefused(await gateway.get(path, { authorization }), 404, /^A gateway has content only/)
      assert.notEqual((await serve(url, 'GET', path, { authorization })).status, 404, path)
    }
  })

  it("a gateway's host accepts only GET, HEAD and OPTIONS", async () => {
    for (const method of ['POST', 'PUT', 'PATCH', 'DELETE', 'TRACE']) {
      const served = await gateway.ask(method, CONTENT)
      assertRefused(served, 405, /^A gateway answers GET, HEAD, OPTIONS only/)
      assert.equal(served.headers.allow, 'GET, HEAD, OPTIONS')
    }
  })

  it("a gateway's host accepts requests from pages of any site", async () => {
    const { status, headers } = await gateway.ask('OPTIONS', CONTENT, {
      origin: 'https://example.com',
      'access-control-request-method': 'GET',
      'access-control-request-headers': 'range, x-pinata-gateway-token',
    })
    assert.equal(status, 204)
    assert.equal(headers['access-control-allow-origin'], '*')
    assert.match(`${headers['access-control-allow-methods']}`, /GET/)
    assert.match(`${headers['access-control-allow-headers']}`, /Range.*X-Pinata-Gateway-Token/)
    assert.equal(headers['access-control-allow-credentials'], undefined)
  })

  it('an unknown gateway host returns 404 for content and API routes', async () => {
    const domain = name.slice(name.indexOf('.') + 1)
    for (const host of [
      `nobody-here.${domain}`,
      `x.${name}`,
      `.${domain}`,
      `a.b.c.${domain}`,
      `-.${domain}`,
    ]) {
      for (const path of [CONTENT, '/readyz']) {
        assertRefused(await gatewayReader(url, host).get(path), 404, 'There is no gateway at this host')
      }
    }
  })
})

describe("the API's host", () => {
  it("the API's host serves no content", async () => {
    for (const path of [CONTENT, `/files/${cid}`, `${CONTENT}?format=raw`]) {
      const { status, headers, text } = await serve(url, 'GET', path, {})
      assert.equal(status, 404)
      assert.equal(headers['content-type'], 'application/json; charset=utf-8')
      assert.equal(headers['access-control-allow-origin'], '*', 'pages of any origin can read the reason')
      assert.doesNotMatch(text, /alert/)
    }
  })

  it("the API's host names the URL of gateways instead of content [report: unresolvable hosts]", async () => {
    const gateways = `http://<gateway>.${name.slice(name.indexOf('.') + 1)}:${new URL(url).port}`
    for (const path of [CONTENT, `${CONTENT}/a%20b`, '/ipns/docs.ipfs.tech', `/files/${cid}`]) {
      const { status, body } = await context.anonymous.get(`${path}?format=car`)
      assert.equal(status, 404)
      assert.equal(
        body.error,
        `No such route: GET ${path}. Gateways serve content: ${gateways}${path} (GET /v3/gateways has their names)`,
      )
    }
    const { body } = await context.anonymous.get('/ipfsx')
    assert.equal(body.error, 'No such route: GET /ipfsx')
  })

  it("a host that only resembles a gateway's is the API's host", async () => {
    for (const host of [
      `${name}.evil.com`,
      `${name}evil.com`,
      name.replace('.', '-'),
      'localhost',
      '[::1]:80',
    ]) {
      const { status, text } = await serve(url, 'GET', CONTENT, { host })
      assert.equal(status, 404, host)
      assert.match(JSON.parse(text).error, /^No such route/)
    }
  })

  it('forwarded-host headers of a client do not change the host', async () => {
    const headers = { 'x-forwarded-host': gateway.host, forwarded: `host=${gateway.host}` }
    assert.match(JSON.parse((await serve(url, 'GET', CONTENT, headers)).text).error, /^No such route/)
    const { status } = await gateway.get(CONTENT, { 'x-forwarded-host': new URL(url).host })
    assert.equal(status, 200)
  })
})

describe('hosts in unusual places', () => {
  const first = (answer: string) => answer.split('\r\n')[0]
  const CLOSE = 'Connection: close\r\n\r\n'

  it('if the request target is a URL, its host overrides the Host header', async () => {
    const api = new URL(url).host
    const toGateway = await sendRaw(url, `GET http://${name}${CONTENT} HTTP/1.1\r\nHost: ${api}\r\n${CLOSE}`)
    assert.match(toGateway, /^HTTP\/1\.1 200 /)
    const toApi = await sendRaw(url, `GET http://${api}${CONTENT} HTTP/1.1\r\nHost: ${name}\r\n${CLOSE}`)
    assert.match(toApi, /^HTTP\/1\.1 404 [\s\S]*No such route/)
    const routed = await sendRaw(url, `GET HTTP://${name}/readyz HTTP/1.1\r\nHost: ${api}\r\n${CLOSE}`)
    assert.match(routed, /^HTTP\/1\.1 404 [\s\S]*A gateway has content only/)
    const bare = await sendRaw(url, `GET http://${name}?x HTTP/1.1\r\nHost: ${api}\r\n${CLOSE}`)
    assert.match(bare, /A gateway has content only/)
    const signed = `POST http://${api}/v3/files/x?X-Signature=x HTTP/1.1\r\nHost: ${api}\r\n`
    assert.match(await sendRaw(url, `${signed}Content-Length: 0\r\n${CLOSE}`), /403 [\s\S]*as it was signed/)
    const psa = await sendRaw(url, `GET http://${api}/psa/pins HTTP/1.1\r\nHost: ${api}\r\n${CLOSE}`)
    assert.match(psa, /^HTTP\/1\.1 401 [\s\S]*"reason"/)
  })

  it('a request with a missing or malformed host is rejected, or goes to the API', async () => {
    assert.match(first(await sendRaw(url, `GET ${CONTENT} HTTP/1.1\r\n${CLOSE}`)) ?? '', / 400 /)
    assert.match(first(await sendRaw(url, `GET ${CONTENT} HTTP/1.0\r\n\r\n`)) ?? '', / 404 /)
    const twice = `GET ${CONTENT} HTTP/1.1\r\nHost: ${name}\r\nHost: localhost\r\n${CLOSE}`
    assert.match(first(await sendRaw(url, twice)) ?? '', / 400 /)
    for (const host of [
      `a b.${name}`,
      `user@${name}`,
      `${name}/x`,
      `<${name}>`,
      `%2e.${name}`,
      `${name}:65536`,
    ]) {
      const answer = await sendRaw(url, `GET ${CONTENT} HTTP/1.1\r\nHost: ${host}\r\n${CLOSE}`)
      assert.match(first(answer) ?? '', / 40[04] /, host)
      assert.doesNotMatch(answer, /alert/)
    }
  })
})
