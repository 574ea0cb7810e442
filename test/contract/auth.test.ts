/** Authentication and scopes: contract 5, and the order in which a request is checked. */
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { describe, it } from 'node:test'
import { decodeJwt, SignJWT, UnsecuredJWT } from 'jose'
import { assertError, type Client, type Reply, soon } from '../support/client.ts'
import { pathsOf } from '../support/openapi.ts'
import { inlineCid, openContext } from './context.ts'

const NO_HEADER = 'Missing Authorization header: send "Authorization: Bearer <API key>"'
const BAD_KEY = 'Invalid, expired or revoked API key'
const FILES = '/v3/files/public'
const PIN = '/v3/files/public/pin_by_cid'

const { anonymous, berth, workspace } = await openContext()
const { api, created, keyed, member, name } = await workspace()
const list = (client: Client, headers?: Record<string, string>) => client.get(FILES, undefined, headers)
const refused = ({ status }: Reply) => status !== 200

/** Every operation of the document that needs a key, as a request for something that does not exist. */
const guarded = pathsOf(anonymous.document).flatMap(([path, operations]) =>
  Object.entries(operations)
    .filter(([, { security }]) => security?.length !== 0)
    .map(([method, { description = '', security = [] }]) => ({
      method: method.toUpperCase(),
      path: path.replace(/\{[^}]+\}/g, 'x'),
      takesPassword: security.some((way) => Object.hasOwn(way as object, 'password')),
      scope: (/Scope: (`[^.]+`)\./.exec(description)?.[1] ?? '').replaceAll('`', ''),
    })),
)

describe('a request without a valid key', () => {
  it('a request without a valid key returns 401 on every route that needs one', async () => {
    assert.ok(guarded.length > 15)
    for (const { method, path, takesPassword } of guarded) {
      const reply = await anonymous.request(method, path, method === 'POST' ? { json: {} } : {})
      assertError(reply, 401, NO_HEADER)
      const asked = takesPassword ? 'Basic realm="Berth", charset="UTF-8"' : 'Bearer'
      assert.equal(reply.headers.get('www-authenticate'), asked, path)
      assert.equal(reply.headers.get('error-code'), 'no_authorization')
    }
  })

  const headers = {
    'another scheme': 'Basic dXNlcjpwYXNz',
    'a bare key': 'abc',
    'no key': 'Bearer',
    'only a space': 'Bearer ',
    'two keys': 'Bearer a b',
    garbage: 'Bearer garbage',
    'garbage in three parts': 'Bearer a.b.c',
    'a very long key': `Bearer ${'a'.repeat(8000)}`,
    'not ASCII': 'Bearer \u00e9\u00ff',
  }
  for (const [what, authorization] of Object.entries(headers)) {
    it(`a request without a valid key returns 401 for ${what}`, async () => {
      const reply = await list(anonymous, { authorization })
      assertError(reply, 401, BAD_KEY)
      assert.equal(reply.headers.get('error-code'), 'bad_token')
    })
  }

  it('a request without a valid key returns 401 if the key is in the query', async () => {
    assertError(await anonymous.get(FILES, { token: api.key ?? '' }), 401, NO_HEADER)
  })
})

describe('a token', () => {
  const claims = decodeJwt(api.key ?? '')
  const sign = (payload: object, alg = 'HS256', key: Uint8Array = randomBytes(64)) =>
    new SignJWT({ ...payload }).setProtectedHeader({ alg, typ: 'JWT' }).sign(key)

  it('a token is a JWT that names its workspace, its user and its key', () => {
    assert.equal(claims.authenticationType, 'scopedKey')
    assert.ok(claims.jti && claims.sub && claims.iat)
    assert.deepEqual(claims.userInformation, { id: claims.sub })
  })
  it('a token is accepted with any spelling of Bearer', async () => {
    for (const scheme of ['bearer', 'BEARER', 'Bearer  ']) {
      const reply = await list(anonymous, { authorization: `${scheme} ${api.key}` })
      assert.equal(reply.status, 200)
    }
  })
  it('a token signed by another key is rejected', async () => {
    for (const alg of ['HS256', 'HS512'])
      assertError(await list(anonymous.as(await sign(claims, alg))), 401, BAD_KEY)
  })
  it('a token without a signature is rejected', async () => {
    assertError(await list(anonymous.as(new UnsecuredJWT(claims).encode())), 401, BAD_KEY)
  })
  it('a token with a changed claim is rejected', async () => {
    const [header, , signature] = (api.key ?? '').split('.')
    const changed = Buffer.from(JSON.stringify({ ...claims, workspace: claims.jti })).toString('base64url')
    assertError(await list(anonymous.as(`${header}.${changed}.${signature}`)), 401, BAD_KEY)
  })
})

describe('a key', () => {
  it('a key stops working when it expires', async () => {
    const client = await created({ expiresAt: new Date(Date.now() + 1000) })
    assertError(await soon(() => list(client), refused), 401, BAD_KEY)
  })

  it('a key revoked by the command line stops working', async () => {
    const { id, token } = JSON.parse(await berth('keys', 'create', '--workspace', name, '--json'))
    const client = anonymous.as(token)
    assert.equal((await list(client)).status, 200)
    await berth('keys', 'revoke', id)
    assertError(await soon(() => list(client), refused), 401, BAD_KEY)
  })

  it('a key revoked over HTTP fails on the next request', async () => {
    for (let i = 0; i < 20; i++) {
      const created = await api.post('/v3/pinata/keys', { keyName: 'brief', permissions: { admin: true } })
      const client = anonymous.as(created.body.JWT)
      assert.equal((await list(client)).status, 200)
      assert.equal((await api.put(`/v3/pinata/keys/${created.body.pinata_api_key}`)).status, 200)
      assertError(await list(client), 401, BAD_KEY)
    }
  })

  it('a key that acts for no user gets 401 Missing userId, whatever its scopes', async () => {
    const client = await created({ user: null, scopes: ['org:groups:read'] })
    for (const { method, path } of guarded) {
      const reply = await client.request(method, path, method === 'POST' ? { json: {} } : {})
      assertError(reply, 401, 'Missing userId')
    }
  })

  it('a key whose user has left the workspace gets 401 Missing userId', async () => {
    await member('member', 'leaver')
    const client = await created({ user: 'leaver' })
    assert.equal((await list(client)).status, 200)
    await berth('users', 'remove', 'leaver', '--workspace', name)
    assertError(await soon(() => list(client), refused), 401, 'Missing userId')
  })

  it('a key with a limited number of uses stops working after the last one', async () => {
    const { body } = await api.post('/v3/pinata/keys', {
      keyName: 'three',
      permissions: { resources: ['org:files:read'] },
      maxUses: 3,
    })
    const client = anonymous.as(body.JWT)
    const replies = await Promise.all(Array.from({ length: 10 }, () => list(client)))
    assert.equal(replies.filter(({ status }) => status === 200).length, 3)
    assertError(await list(client), 401, BAD_KEY)
  })
})

const OPEN_TO_ALL_KEYS = [
  '/data/testAuthentication',
  '/v3/data/testAuthentication',
  '/v0/feedback',
  '/v0/invitations/join',
  '/v0/issues',
  '/v0/me',
  '/v0/logout',
  '/v0/sessions',
  // Only sessions may call these, whatever the scopes of a key: docs/accounts.md.
  '/v0/passkeys',
  '/v0/identities',
  '/v0/oauth',
]

describe('scopes', () => {
  it('only key tests, feedback, joining, the closed beta and own-account routes need no scope', async () => {
    const other = 'org:analytics:read'
    const client = await keyed(other)
    assert.ok((await client.get('/data/testAuthentication')).body.message)
    for (const { method, path, scope } of guarded) {
      if (scope === other || OPEN_TO_ALL_KEYS.some((open) => path.startsWith(open))) continue
      const reply = await client.request(method, path, method === 'POST' ? { json: {} } : {})
      assertError(reply, 403, `Missing scope: ${scope}`)
      assert.equal(reply.headers.get('error-code'), 'missing_scope')
    }
  })
})

describe('roles', () => {
  it('a changed role applies to existing keys at once', async () => {
    const { name: user } = await member('viewer')
    const client = await created({ user })
    const pin = () => client.post(PIN, { cid: `${inlineCid('riser')}` })
    assertError(await pin(), 403, 'Workspace permission denied')
    await member('member', user)
    await soon(pin, ({ status }) => status === 200)
  })
})

describe('the order of checks', () => {
  const malformed = { body: '{', headers: { 'content-type': 'application/json' } }

  it('a request is checked for its route first', async () => {
    assertError(await anonymous.get('/v3/nowhere'), 404, 'No such route: GET /v3/nowhere')
  })
  it('the key is checked after the route', async () => {
    assertError(await anonymous.request('POST', PIN, malformed), 401, NO_HEADER)
  })
  it('the scope is checked after the key', async () => {
    const client = await keyed('org:files:read')
    assertError(await client.request('POST', PIN, malformed), 403, 'Missing scope: org:files:write')
  })
  it('the shape of a request is checked after the scope', async () => {
    assertError(await api.request('POST', PIN, malformed), 400, 'body: not valid JSON')
  })
  it('the plan is checked after the shape of the request', async () => {
    const { api } = await workspace('free')
    assertError(await api.post(PIN, { cid: 5 }), 400, /^cid: /)
    assertError(await api.post(PIN, { cid: 'x' }), 403, 'Pin by CID is not part of the free plan')
  })
})
