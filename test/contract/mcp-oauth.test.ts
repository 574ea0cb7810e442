/** Access to `/mcp` through the browser: metadata, consent, codes and the keys that clients get for them. */
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { after, describe, it } from 'node:test'
import {
  discoverAuthorizationServerMetadata,
  discoverOAuthProtectedResourceMetadata,
  exchangeAuthorization,
  extractWWWAuthenticateParams,
  startAuthorization,
} from '@modelcontextprotocol/client'
import { connectMcp } from '../support/mcp.ts'
import { openContext } from './context.ts'
import { openSession } from './session-client.ts'

const context = await openContext()
const { url, anonymous, workspace } = context
const own = await workspace()
const session = await openSession(anonymous, own)
const resource = new URL(`${url}/mcp`)

/** The client's host, with documents by path. */
const host = `http://${context.env.BERTH_MCP_CLIENT_ALLOW}`
const REDIRECT = 'http://127.0.0.1/back'
const documents: Record<string, unknown> = {
  '/client.json': {
    client_name: 'Example',
    redirect_uris: [REDIRECT, 'https://app.example.com/back', 'app.example:/back'],
  },
  '/secret.json': { redirect_uris: [REDIRECT], token_endpoint_auth_method: 'private_key_jwt' },
  '/other.json': { client_id: `${host}/client.json`, redirect_uris: [REDIRECT] },
  '/script.json': { redirect_uris: ['javascript:alert(1)', 'http://app.example.com/back'] },
  '/large.json': { redirect_uris: [REDIRECT], more: 'x'.repeat(70_000) },
}
const server = createServer((req, res) => {
  const found = documents[req.url ?? ''] as object | undefined
  if (!found) return void res.writeHead(302, { location: '/client.json' }).end()
  res.end(JSON.stringify({ client_id: `${host}${req.url}`, ...found }))
}).listen(Number(new URL(host).port), '127.0.0.1')
await once(server, 'listening')
after(() => server.close())
const client = { client_id: `${host}/client.json` }

const discovered = await discoverAuthorizationServerMetadata(url)
assert.ok(discovered)
const metadata = discovered

/** The query of the consent page, and the verifier that the client keeps. */
async function begin({
  redirect = 'http://127.0.0.1:7777/back',
  scope = 'org:files:write',
  clientId = client.client_id,
} = {}) {
  const begun = await startAuthorization(url, {
    ...{
      metadata,
      clientInformation: { client_id: clientId },
      redirectUrl: redirect,
      scope,
      state: 's1',
      resource,
    },
  })
  const { codeVerifier, authorizationUrl } = begun
  assert.equal(authorizationUrl.pathname, '/dashboard/authorize')
  return { codeVerifier, query: authorizationUrl.search.slice(1), redirectUri: redirect }
}
const consent = (json: object, by = session) => by.ask('POST', '/v0/oauth/grants', {}, json)
const look = (query: string, by = session) => by.ask('POST', '/v0/oauth/requests', {}, { query })

async function grant({
  scopes = ['org:files:write'],
  days = 30,
  ...more
}: {
  scopes?: string[]
  days?: number
  redirect?: string
} = {}) {
  const begun = await begin(more)
  const { status, body } = await consent({ query: begun.query, scopes, days })
  assert.equal(status, 200, JSON.stringify(body))
  const back = new URL(body.data.url)
  assert.deepEqual([back.searchParams.get('state'), back.searchParams.get('iss')], ['s1', url])
  return { ...begun, back, code: back.searchParams.get('code') ?? '' }
}
const exchange = ({ code, codeVerifier, redirectUri }: Awaited<ReturnType<typeof grant>>) =>
  exchangeAuthorization(url, {
    ...{
      metadata,
      clientInformation: client,
      authorizationCode: code,
      codeVerifier,
      redirectUri,
      resource,
      iss: url,
    },
  })

describe('access to /mcp through the browser', () => {
  it('a 401 leads to the metadata of the resource and of its server', async () => {
    const response = await fetch(resource, { method: 'POST', body: '{}' })
    assert.equal(response.status, 401)
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response)
    assert.equal(scope, 'org:agents:write org:files:write')
    const found = await discoverOAuthProtectedResourceMetadata(resource, {
      ...(resourceMetadataUrl && { resourceMetadataUrl }),
    })
    assert.deepEqual([found.resource, found.authorization_servers], [resource.href, [url]])
    assert.deepEqual(metadata.code_challenge_methods_supported, ['S256'])
    assert.equal(metadata.client_id_metadata_document_supported, true)
  })
  it('a code becomes a key with the scopes, the expiry and /mcp as its audience, once', async () => {
    const granted = await grant({ scopes: ['org:files:read'] })
    assert.equal(granted.back.origin, 'http://127.0.0.1:7777')
    const tokens = await exchange(granted)
    assert.equal(tokens.scope, 'org:files:read')
    assert.ok(Math.abs((tokens.expires_in ?? 0) - 30 * 86_400) < 120)
    await assert.rejects(exchange(granted), /invalid_grant|code/i)
    const mcp = await connectMcp(url, tokens.access_token)
    assert.ok((await mcp.listTools()).tools.some(({ name }) => name === 'files_search'))
    const refused = await anonymous.as(tokens.access_token).get('/v3/files/public')
    assert.deepEqual([refused.status, refused.body.error], [401, 'This key works only at /mcp'])
    const { keys } = (await own.api.get(`/v0/workspaces/${own.id}/keys`)).body.data
    const { id, audience, name, scopes } = keys[0]
    assert.deepEqual([audience, name, scopes], ['mcp', `MCP: ${new URL(host).host}`, ['org:files:read']])
    await own.api.delete(`/v0/workspaces/${own.id}/keys/${id}`)
    await assert.rejects(mcp.listTools())
  })
  it('a code fails for another verifier, client or redirect, and after a minute', async () => {
    const granted = await grant()
    await assert.rejects(exchange({ ...granted, codeVerifier: 'x'.repeat(43) }), /invalid_grant|code/i)
    await assert.rejects(
      exchange({ ...granted, redirectUri: 'http://127.0.0.1:7778/back' }),
      /invalid_grant|code/i,
    )
    await assert.rejects(exchange({ ...granted, code: 'x' }), /invalid_grant|code/i)
    const [keyId] = granted.code.split('.')
    await context.sql("UPDATE api_key SET expires_at = now() - interval '1 second' WHERE id = $1", [keyId])
    await assert.rejects(exchange(granted), /invalid_grant|code/i)
  })
  it('the token endpoint refuses everything except an exchange of a code', async () => {
    const post = async (form: Record<string, string>) => {
      const response = await fetch(`${url}/oauth/token`, { method: 'POST', body: new URLSearchParams(form) })
      const { error } = (await response.json()) as { error: string }
      return [response.status, error]
    }
    const form = {
      code: 'x',
      redirect_uri: 'x',
      client_id: 'x',
      code_verifier: 'x'.repeat(43),
      resource: resource.href,
    }
    assert.deepEqual(await post({}), [400, 'invalid_request'])
    assert.deepEqual(await post({ ...form, grant_type: 'refresh_token' }), [400, 'unsupported_grant_type'])
    assert.deepEqual(
      await post({ ...form, grant_type: 'authorization_code', resource: 'https://x.invalid/' }),
      [400, 'invalid_target'],
    )
    assert.deepEqual(await post({ ...form, grant_type: 'authorization_code' }), [400, 'invalid_grant'])
  })
  it('the page learns who asks for what, and where a refusal leads', async () => {
    const { query } = await begin({ scope: 'org:agents:write org:files:read admin' })
    const { data } = (await look(query)).body
    assert.deepEqual(data.client, { id: client.client_id, host: new URL(host).host, name: 'Example' })
    assert.deepEqual(
      [data.returnsTo, data.scopes],
      ['127.0.0.1:7777', ['org:agents:write', 'org:files:read']],
    )
    assert.equal(new URL(data.refusalUrl).searchParams.get('error'), 'access_denied')
  })
  it('a viewer can give a client only what they have, and no user more than it asks for', async () => {
    const { name } = await own.member('viewer')
    const viewer = await openSession(anonymous, own, name)
    const { query } = await begin({ scope: 'org:files:write' })
    assert.deepEqual((await look(query, viewer)).body.data.scopes, ['org:files:read'])
    const body = { query, days: 1 }
    assert.equal((await consent({ ...body, scopes: ['org:files:write'] }, viewer)).status, 403)
    const { status, body: refusal } = await consent({ ...body, scopes: ['org:agents:read'] })
    assert.deepEqual([status, refusal.error], [400, 'scopes: must be among those that the client asks for'])
    assert.equal(
      (await own.api.post('/v0/oauth/grants', { ...body, scopes: ['org:files:read'] })).status,
      403,
    )
  })
  it('a request with any other redirect, challenge, resource or client gets 400', async () => {
    const { query } = await begin()
    const refusal = async (changes: Record<string, string>) => {
      const search = new URLSearchParams(query)
      for (const [name, value] of Object.entries(changes)) search.set(name, value)
      const { status, body } = await look(`${search}`)
      assert.equal(status, 400, JSON.stringify(changes))
      return body.error
    }
    const redirects = [
      'http://127.0.0.1:1/back/',
      'https://app.example.com/back?x',
      'https://app.example.com:8443/back',
      'http://127.0.0.2/back',
    ]
    for (const redirect_uri of redirects)
      assert.equal(await refusal({ redirect_uri }), 'redirect_uri: is not in the document of the client')
    for (const redirect_uri of ['javascript:alert(1)', 'http://app.example.com/back'])
      assert.match(
        await refusal({ client_id: `${host}/script.json`, redirect_uri }),
        /^redirect_uri: must be https/,
      )
    assert.equal(await refusal({ code_challenge_method: 'plain' }), 'code_challenge_method: must be S256')
    assert.equal(await refusal({ resource: 'https://x.invalid/mcp' }), `resource: must be ${resource.href}`)
    assert.match(await refusal({ client_id: `${host}/other.json` }), /is not about this client/)
    assert.match(await refusal({ client_id: `${host}/secret.json` }), /not supported/)
    assert.match(await refusal({ client_id: `${host}/gone.json` }), /answered 302/)
    assert.match(await refusal({ client_id: `${host}/large.json` }), /more than 65536 bytes/)
    assert.match(
      await refusal({ client_id: 'https://127.0.0.1:1/client.json' }),
      /not on the public internet/,
    )
    assert.match(await refusal({ client_id: 'example' }), /must be the https URL/)
  })
})
