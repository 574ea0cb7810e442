/** Access to content at a gateway, and the effect of a swap. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UrlSigner } from '../../src/files/signed-url.ts'
import { loadSigningKey } from '../../src/lib/signing-keys.ts'
import type { Client } from '../support/client.ts'
import { assertRefused } from '../support/gateway.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { store } from './stored.ts'

const LINK = '/v3/files/private/download_link'
const NOT_KEPT = 'cid: not kept here'
const IMMUTABLE = 'max-age=29030400, immutable'

const context = await openContext()
const workspace = await context.workspace()
const { api } = workspace
const open = await openGateway(context, workspace)
const stranger = await context.workspace()
const strange = await openGateway(context, stranger)

let count = 0
/** A new file with unique content. */
const upload = (network: 'public' | 'private', client: Client = api): Promise<{ id: string; cid: string }> =>
  store(client, network, `file ${count++} of ${process.pid}`)

const now = () => Math.floor(Date.now() / 1000)
/** The path and query of a link that the API signed. */
const link = async (target: string, { host = open.host } = {}) => {
  const body = { url: `https://${host}${target}`, date: now(), expires: 60, method: 'GET' }
  const reply = await api.post(LINK, body)
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  const url = new URL(reply.body.data)
  return `${url.pathname}${url.search}`
}

describe('a gateway with access tokens', async () => {
  const gateway = await openGateway(context, workspace)
  const route = `/v3/gateways/${gateway.id}/access_tokens`
  const [first, second] = [(await api.post(route, {})).body.data, (await api.post(route, {})).body.data]
  const { cid } = await upload('public')
  const path = `/ipfs/${cid}`

  it('a gateway with access tokens accepts them in the URL or in a header', async () => {
    for (const { value } of [first, second]) {
      assert.equal((await gateway.get(`${path}?pinataGatewayToken=${value}`)).status, 200)
      assert.equal((await gateway.get(path, { 'x-pinata-gateway-token': value })).status, 200)
    }
  })

  it('a gateway with access tokens refuses all other requests', async () => {
    const without = await gateway.get(path)
    assertRefused(without, 401, /^This gateway is restricted/)
    assert.ok(without.headers['www-authenticate'])
    for (const wrong of ['', 'x', first.value.slice(1), `${first.value}x`]) {
      const served = await gateway.get(`${path}?pinataGatewayToken=${wrong}`)
      assertRefused(served, 403, 'pinataGatewayToken: not a token of this gateway')
    }
    const theirs = await stranger.api.post(`/v3/gateways/${strange.id}/access_tokens`, {})
    assertRefused(
      await gateway.get(path, { 'x-pinata-gateway-token': theirs.body.data.value }),
      403,
      /not a token/,
    )
  })

  it('a gateway with access tokens does not reveal whether it has content', async () => {
    assertRefused(await gateway.get(`/ipfs/bafkqaaa`), 401, /^This gateway is restricted/)
  })

  it('a gateway with access tokens keeps its content out of shared caches', async () => {
    const { headers } = await gateway.get(path, { 'x-pinata-gateway-token': first.value })
    assert.equal(headers['cache-control'], `private, ${IMMUTABLE}`)
  })

  it('a gateway with access tokens keeps the token in the links of its pages', async () => {
    const cid = await uploadFolder(api)
    const redirect = await gateway.get(`/ipfs/${cid}?pinataGatewayToken=${first.value}`)
    assert.equal(redirect.headers.location, `/ipfs/${cid}/?pinataGatewayToken=${first.value}`)
    const { text } = await gateway.get(redirect.headers.location ?? '')
    const [, link = ''] = /href="([^"]*\/a\.txt[^"]*)"/.exec(text) ?? []
    assert.equal((await gateway.get(link)).text, 'a')
  })
})

describe('a private file', async () => {
  const { cid } = await upload('private')
  const path = `/files/${cid}`
  // Tests may sign URLs that the API would refuse to sign.
  const signer = new UrlSigner([loadSigningKey(context.env.JWT_KEY, context.env.BERTH_DATA_DIR ?? '')])
  const forge = (target: string, method = 'GET', date = now()) => {
    const url = new URL(`https://${open.host}${target}`)
    const signed = signer.sign(url, {
      algorithm: 'PINATA1',
      date,
      expires: 60,
      method,
      subject: open.id,
    })
    return `${signed.pathname}${signed.search}`
  }

  it('a private file is read by a signed link, even in parts', async () => {
    const signed = await link(path)
    const { status, headers, text } = await open.get(signed)
    assert.equal(status, 200)
    assert.match(text, /^file \d+ of/)
    assert.equal(headers['cache-control'], 'private, no-store')
    assert.equal((await open.head(signed)).status, 200)
    assert.equal((await open.get(signed, { range: 'bytes=0-3' })).text, 'file')
  })

  it('a private file is not served at any other URL', async () => {
    const signed = await link(path)
    assertRefused(await open.get(path), 401, 'X-Signature: private content is read with a signed URL only')
    const changed = [
      signed.replace(/(?<=X-Signature=)./, (digit) => (digit === '0' ? '1' : '0')),
      signed.replace('X-Expires=60', 'X-Expires=6000'),
      signed.replace(cid, (await upload('private')).cid),
      signed.replace(path, `${path}/`),
      `${signed}&download=true`,
      signed.replace('PINATA1', 'PINATA2'),
    ]
    for (const url of changed) {
      assertRefused(await open.get(url), 403, 'X-Signature: not the signature of this URL')
    }
    const elsewhere = await openGateway(context, workspace)
    assertRefused(await elsewhere.get(signed), 403, 'X-Signature: not the signature of this URL')
  })

  it('a private file is served only while its link is valid', async () => {
    assertRefused(await open.get(forge(path, 'GET', now() - 100)), 403, 'X-Expires: the URL has expired')
    assertRefused(await open.get(forge(path, 'GET', now() + 5000)), 403, 'X-Date: lies in the future')
  })

  it('a private file is not served by a link signed for another method', async () => {
    assertRefused(await open.get(forge(path, 'PUT')), 403, 'X-Method: the URL was not signed for GET')
  })

  it('private files are never served as public content, nor public files as private content', async () => {
    assertRefused(await open.get(`/ipfs/${cid}`), 404, NOT_KEPT)
    const { cid: published } = await upload('public')
    assertRefused(await open.get(forge(`/files/${published}`)), 404, NOT_KEPT)
  })

  it('a gateway serves only private files of its own workspace', async () => {
    const theirs = await upload('private', stranger.api)
    assertRefused(await open.get(forge(`/files/${theirs.cid}`)), 404, NOT_KEPT)
  })

  it('a private file is not served by a link from a previous gateway with the same name', async () => {
    const old = await openGateway(context, stranger)
    const [domain = ''] = old.host.split('.')
    const { cid } = await upload('private')
    const text = (await open.get(await link(`/files/${cid}`))).text
    await store(stranger.api, 'private', text)
    const body = { url: `https://${old.host}/files/${cid}`, expires: 60, method: 'GET' }
    const { pathname, search } = new URL((await stranger.api.post(LINK, body)).body.data)
    assert.equal((await old.get(`${pathname}${search}`)).text, text)
    await stranger.api.delete(`/v3/gateways/${old.id}`)
    assert.equal((await api.post('/v3/gateways', { domain })).status, 200)
    const refused = await old.get(`${pathname}${search}`)
    assertRefused(refused, 403, 'X-Signature: not the signature of this URL')
    assert.equal((await old.get(await link(`/files/${cid}`, old))).text, text)
  })

  it('a signed link can make a private file a download', async () => {
    const { headers } = await open.get(await link(`${path}?filename=a%20b.txt&download=true`))
    assert.equal(headers['content-disposition'], 'attachment; filename="a b.txt"')
  })

  it('the listing of a private folder has no links, because each would need a signature', async () => {
    const folder = await uploadFolder(api, 'private')
    const { status, text } = await open.get(await link(`/files/${folder}`))
    assert.equal(status, 200)
    assert.match(text, /a\.txt/)
    assert.doesNotMatch(text, /href/)
    assert.equal((await open.get(await link(`/files/${folder}/a.txt`))).text, 'a')
  })

  it('a signed link works at a restricted gateway without an access token', async () => {
    const restricted = await openGateway(context, workspace)
    await api.post(`/v3/gateways/${restricted.id}/access_tokens`, {})
    assert.equal((await restricted.get(await link(path, { host: restricted.host }))).status, 200)
  })
})

/** Uploads a folder with one file, `a.txt`. Resolves to its CID. */
async function uploadFolder(client: Client, network = 'public'): Promise<string> {
  const form = new FormData()
  form.set('network', network)
  form.append('file', new Blob(['a']), 'folder/a.txt')
  const encoded = new Response(form)
  const reply = await client.request('POST', '/v3/files', {
    body: new Uint8Array(await encoded.arrayBuffer()),
    headers: { 'content-type': encoded.headers.get('content-type') ?? '' },
  })
  assert.equal(reply.status, 200, JSON.stringify(reply.body))
  return reply.body.data.cid
}
