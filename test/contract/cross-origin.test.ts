/**
 * CORS: pages of any origin may call routes that take a key, and read the responses, including errors; no page may use
 * a session.
 */
import assert from 'node:assert/strict'
import { it } from 'node:test'
import { openContext } from './context.ts'
import { openSession } from './session-client.ts'

const { url, workspace, anonymous } = await openContext()
const own = await workspace()
const { api } = own
const PAGE = { origin: 'https://page.example', 'sec-fetch-site': 'cross-site' }

const allowed = ({ headers }: Response) => headers.get('access-control-allow-origin')

/** Sends the preflight that a browser sends for a page of another origin. */
async function preflight(method: string, path: string, headers = 'authorization'): Promise<Response> {
  return fetch(`${url}${path}`, {
    method: 'OPTIONS',
    headers: {
      ...PAGE,
      'access-control-request-method': method,
      'access-control-request-headers': headers,
    },
  })
}

it('each route responds to pages as its preflight promises [report: CORS]', async () => {
  const { paths } = api.document as unknown as {
    paths: Record<string, Record<string, { security?: unknown[] }>>
  }
  const differing: string[] = []
  let openCount = 0
  for (const [template, operations] of Object.entries(paths)) {
    // No network, agent or file has this id, so nothing changes.
    const path = template.replace(/\{[^}]+\}/g, crypto.randomUUID())
    for (const method of Object.keys(operations)) {
      if (method === 'options') continue
      const asked = await preflight(method.toUpperCase(), path)
      await asked.text()
      const methods = (asked.headers.get('access-control-allow-methods') ?? '').split(', ')
      const isPromised = allowed(asked) === '*' && methods.includes(method.toUpperCase())
      const answer = await fetch(`${url}${path}`, {
        method: method.toUpperCase(),
        headers: PAGE,
        redirect: 'manual',
      })
      await answer.body?.cancel()
      const isRead = allowed(answer) === '*'
      if (isPromised) openCount++
      if (isPromised !== isRead) differing.push(`${method} ${template}: ${isPromised}, ${isRead}`)
      assert.equal(answer.headers.get('access-control-allow-credentials'), null)
      assert.equal(asked.headers.get('access-control-allow-credentials'), null)
    }
  }
  assert.deepEqual(differing, [])
  assert.ok(openCount > 100, `${openCount}`)
})

it('a page of any origin reads uploads, lists, signed URLs and their errors [report: CORS]', async () => {
  const form = new FormData()
  form.set('network', 'private')
  form.set('file', new File(['from a page'], 'page.txt'))
  const key = { authorization: `Bearer ${api.key}` }
  const json = (body: unknown) => ({
    method: 'POST',
    headers: { ...PAGE, ...key },
    body: JSON.stringify(body),
  })
  const large = 'x'.repeat(2_000_000)
  const asked: [status: number, path: string, init: RequestInit][] = [
    [200, '/v3/files', { method: 'POST', headers: { ...PAGE, ...key }, body: form }],
    [200, '/v3/files/public', { headers: { ...PAGE, ...key } }],
    [200, '/v3/files/sign', json({ date: Math.floor(Date.now() / 1000), expires: 60 })],
    [400, '/v3/files/sign', json({})],
    [400, '/v3/files/public/%', { headers: { ...PAGE, ...key } }],
    [401, '/v3/files/public', { headers: PAGE }],
    [401, `/v3/files/${crypto.randomUUID()}`, { method: 'POST', headers: PAGE }],
    [404, `/v3/files/public/${crypto.randomUUID()}`, { headers: { ...PAGE, ...key } }],
    [404, '/v3/nowhere', { headers: { ...PAGE, ...key } }],
    [404, '/ipfs/bafkqaaa', { headers: PAGE }],
    [405, '/v3/usage', { method: 'DELETE', headers: { ...PAGE, ...key } }],
    [413, '/v3/files/public/pin_by_cid', json({ cid: large })],
    [415, '/v3/files', json({})],
  ]
  for (const [status, path, init] of asked) {
    const answer = await fetch(`${url}${path}`, init)
    assert.deepEqual([answer.status, allowed(answer)], [status, '*'], `${path}: ${await answer.text()}`)
    assert.match(answer.headers.get('access-control-expose-headers') ?? '', /\bError-Code\b.*\bRetry-After\b/)
  }
})

it('a page of any origin can read that it exceeds the rate limit [report: CORS]', async () => {
  const few = await workspace('free')
  const read = () =>
    fetch(`${url}/v3/files/public`, { headers: { ...PAGE, authorization: `Bearer ${few.api.key}` } })
  let answer = await read()
  for (let i = 0; i < 70 && answer.status === 200; i++) {
    await answer.body?.cancel()
    answer = await read()
  }
  assert.deepEqual([answer.status, allowed(answer)], [429, '*'])
  assert.match(answer.headers.get('access-control-expose-headers') ?? '', /\bRetry-After\b/)
})

it('a preflight allows the headers that a page names, except session headers [report: CORS]', async () => {
  const asked = await preflight(
    'POST',
    '/v3/files',
    'authorization,source,x-stainless-os,berth-session, berth-workspace',
  )
  const headers = asked.headers.get('access-control-allow-headers') ?? ''
  for (const name of ['Authorization', 'source', 'x-stainless-os']) assert.ok(headers.includes(name), headers)
  assert.doesNotMatch(headers, /berth/i)
  assert.match(asked.headers.get('vary') ?? '', /Access-Control-Request-Headers/)
  assert.match(asked.headers.get('access-control-allow-methods') ?? '', /\bPOST\b/)
})

it('a page of another origin can neither use a session nor sign in [report: CORS]', async () => {
  const { cookie, ask } = await openSession(anonymous, own)
  const answer = await fetch(`${url}/v3/files/public`, { headers: { ...PAGE, cookie } })
  assert.deepEqual([answer.status, answer.headers.get('access-control-allow-credentials')], [403, null])
  for (const [method, path] of [
    ['POST', '/v0/login'],
    ['POST', '/v0/logout'],
    ['GET', '/v0/passkeys'],
    ['POST', '/v0/login/passkey'],
  ] as const) {
    assert.equal(allowed(await preflight(method, path)), null, path)
    const answer = await fetch(`${url}${path}`, {
      method,
      headers: { ...PAGE, cookie, 'berth-session': '1' },
    })
    assert.equal(allowed(answer), null, path)
    assert.ok(answer.status >= 400, `${path}: ${answer.status}`)
  }
  assert.equal((await ask('GET', '/v0/me')).status, 200)
})
