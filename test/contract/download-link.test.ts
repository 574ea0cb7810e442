/** Links to private files, at both paths that the npm SDK calls. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { UrlSigner } from '../../src/files/signed-url.ts'
import { loadSigningKey } from '../../src/lib/signing-keys.ts'
import { assertError } from '../support/client.ts'
import { gatewayReader } from '../support/gateway.ts'
import { missingCid, openContext } from './context.ts'
import { bytesOf, upload } from './tus-client.ts'

const LINK = '/v3/files/private/download_link'
const { workspace, env, url } = await openContext()
const { api, keyed } = await workspace()
const gatewayOf = async (client = api): Promise<{ id: string; host: string }> =>
  (await client.get('/v3/gateways')).body.data.rows[0]
const { id: gateway, host } = await gatewayOf()
const { cid } = await upload(api, bytesOf('a private file', 500))
const now = Math.floor(Date.now() / 1000)
const signer = new UrlSigner([loadSigningKey(env.JWT_KEY, env.BERTH_DATA_DIR ?? '')])

const request = (fields: object = {}) => ({
  url: `https://${host}/files/${cid}`,
  date: now,
  // Longer than this file may take: `now` is read at its start.
  expires: 3600,
  method: 'GET',
  ...fields,
})

for (const path of [LINK, '/v3/files/sign']) {
  describe(`links by ${path}`, () => {
    it(`a link by ${path} is the requested URL with a signature that the gateway accepts`, async () => {
      const asked = `https://${host}/files/${cid}?img-width=100&pinataGatewayToken=secret`
      const { status, body } = await api.post(path, request({ url: asked }))
      assert.equal(status, 200, JSON.stringify(body))
      const link = new URL(body.data)
      assert.ok(body.data.startsWith(`${asked}&`))
      const { 'X-Signature': signature, ...params } = Object.fromEntries(link.searchParams)
      assert.deepEqual(params, {
        'img-width': '100',
        pinataGatewayToken: 'secret',
        'X-Algorithm': 'PINATA1',
        'X-Date': `${now}`,
        'X-Expires': '3600',
        'X-Method': 'GET',
      })
      assert.match(signature ?? '', /^[0-9a-f]{64}$/)
      assert.equal(signer.verify(link, 'PINATA1', now, gateway), 'good')
      assert.equal(signer.verify(link, 'PINATA2', now, gateway), 'forged', 'it lets nobody upload')
      assert.equal(signer.verify(link, 'PINATA1', now + 3601, gateway), 'expired')
    })

    it(`a link by ${path} may point into a folder, and keeps the port`, async () => {
      const inside = `http://${host}:8080/files/${cid}/a/b%20c.txt`
      const { body } = await api.post(path, request({ url: inside }))
      assert.ok(body.data.startsWith(`${inside}?`), JSON.stringify(body))
    })

    const notALink = 'url: must be https://<gateway>/files/<cid>'
    const refused: Record<string, [object, number, string | RegExp]> = {
      'an invalid URL': [{ url: 'x' }, 400, notALink],
      'another scheme': [{ url: `ftp://${host}/files/${cid}` }, 400, notALink],
      'a user in the URL': [{ url: `https://me@${host}/files/${cid}` }, 400, notALink],
      'a public address': [{ url: `https://${host}/ipfs/${cid}` }, 400, notALink],
      'no CID': [{ url: `https://${host}/files/` }, 400, notALink],
      'an invalid CID': [{ url: `https://${host}/files/x` }, 400, /^url: not a CID/],
      'a host that is not a gateway': [
        { url: `https://example.com/files/${cid}` },
        404,
        'url: not a gateway of this workspace',
      ],
      'another method': [{ method: 'PUT' }, 400, 'method: must be GET'],
      'no method': [{ method: undefined }, 400, 'method: must be GET'],
      'no time': [{ expires: undefined }, 400, /^expires: /],
      'half a second': [{ expires: 0.5 }, 400, 'expires: must be a whole number of seconds'],
      'more than a year': [{ expires: 31_536_001 }, 400, 'expires: must be at most 31536000'],
      'a time in the past': [{ date: now - 3601 }, 400, /^expires: is over already/],
    }
    for (const [what, [fields, status, message]] of Object.entries(refused)) {
      it(`a link by ${path} for ${what} returns ${status}`, async () => {
        assertError(await api.post(path, request(fields)), status, message)
      })
    }

    it(`a link by ${path} for a gateway or file of another workspace returns 404`, async () => {
      const other = await workspace()
      const theirs = (await gatewayOf(other.api)).host
      assertError(
        await api.post(path, request({ url: `https://${theirs}/files/${cid}` })),
        404,
        'url: not a gateway of this workspace',
      )
      const noFile = 'url: there is no such private file'
      assertError(await other.api.post(path, request({ url: `https://${theirs}/files/${cid}` })), 404, noFile)
      const url = `https://${host}/files/${await missingCid()}`
      assertError(await api.post(path, request({ url })), 404, noFile)
    })

    it(`a link by ${path} for a public file returns 404, because it needs no link`, async () => {
      const { cid: open } = await upload(api, bytesOf('a public file', 500), { network: 'public' })
      const reply = await api.post(path, request({ url: `https://${host}/files/${open}` }))
      assertError(reply, 404, 'url: there is no such private file')
    })
  })
}

describe('viewing links', () => {
  const asked = (id: string, client = api) => client.get(`/v0/files/private/${id}/link`)
  it('anyone who may read files gets a link to view a private file, valid for 15 minutes', async () => {
    const content = bytesOf('to be viewed', 500)
    const { id } = await upload(api, content)
    const reader = await keyed('org:files:read')
    const { status, body, headers } = await asked(id, reader)
    assert.equal(status, 200, JSON.stringify(body))
    assert.equal(headers.get('cache-control'), 'no-store')
    const link = new URL(body.data)
    assert.equal(link.host, `${host}${new URL(url).port && `:${new URL(url).port}`}`)
    const date = Number(link.searchParams.get('X-Date'))
    assert.equal(link.searchParams.get('X-Expires'), '900')
    assert.equal(signer.verify(link, 'PINATA1', date + 899, gateway), 'good')
    assert.equal(signer.verify(link, 'PINATA1', date + 900, gateway), 'expired')
    const seen = await gatewayReader(url, link.host).get(`${link.pathname}${link.search}`)
    assert.deepEqual([seen.status, seen.bytes], [200, Buffer.from(content)])
  })
  it('a link to view a public file returns 404', async () => {
    const { id } = await upload(api, bytesOf('seen by all', 500), { network: 'public' })
    assertError(await asked(id), 404, 'There is no such file')
  })
  it('a link to view a private file needs a gateway', async () => {
    const { api: bare } = await workspace()
    const { id } = await upload(bare, bytesOf('nowhere to be seen', 500))
    await bare.delete(`/v3/gateways/${(await gatewayOf(bare)).id}`)
    assertError(await asked(id, bare), 404, 'The workspace has no gateway: create one')
  })
})
