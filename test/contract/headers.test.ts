/** Headers of every response (contract 4.1). */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Reply } from '../support/client.ts'
import { inlineCid, openContext } from './context.ts'

const { anonymous, workspace, url } = await openContext()
const { api } = await workspace()
const PIN = '/v3/files/public/pin_by_cid'

const answers: Record<string, () => Promise<Reply>> = {
  'an accepted pin': () => api.post(PIN, { cid: `${inlineCid('headers')}` }),
  'a list': () => api.get('/v3/files/public'),
  'a bad request': () => api.post(PIN, {}),
  'bad JSON': () => api.request('POST', PIN, { body: '{' }),
  'a missing key': () => anonymous.get('/v3/files/public'),
  'an unknown route': () => anonymous.get('/nowhere'),
  'an unsupported method': () => api.request('PATCH', '/v3/files/public'),
  'the health of the process': () => anonymous.get('/healthz'),
}

for (const [what, ask] of Object.entries(answers)) {
  it(`the headers of ${what} match the contract`, async () => {
    const { headers, body } = await ask()
    assert.match(headers.get('x-request-id') ?? '', /^[0-9a-f]{32}$/)
    assert.equal(headers.get('strict-transport-security'), 'max-age=15724800; includeSubDomains')
    assert.equal(headers.get('content-type'), 'application/json; charset=utf-8')
    assert.equal(headers.get('content-length'), String(Buffer.byteLength(JSON.stringify(body))))
    assert.equal(headers.get('connection'), 'keep-alive')
    assert.ok(Math.abs(Date.parse(headers.get('date') ?? '') - Date.now()) < 60_000)
    assert.equal(headers.get('x-content-type-options'), 'nosniff')
    assert.equal(headers.get('cache-control'), 'no-store')
    assert.ok(headers.get('content-security-policy'))
    assert.equal(headers.get('x-powered-by'), null)
  })
}

describe('X-Request-Id', () => {
  it('X-Request-Id differs for each request, whatever the client sends', async () => {
    const sent = 'f'.repeat(32)
    const seen = new Set([sent])
    for (let i = 0; i < 5; i++) {
      const { headers } = await anonymous.get('/healthz', undefined, { 'x-request-id': sent })
      seen.add(headers.get('x-request-id') ?? sent)
    }
    assert.equal(seen.size, 6)
  })
})

describe('errors', () => {
  it('an error has a machine-readable word in Error-Code', async () => {
    assert.equal((await api.post(PIN, {})).headers.get('error-code'), 'bad_request')
    assert.equal((await api.get('/v3/files/public/x')).headers.get('error-code'), 'not_found')
  })
})

describe('operations', () => {
  it('Operation-Id and Location name the operation', async () => {
    const { headers } = await api.post(PIN, { cid: `${inlineCid('operation')}` })
    const id = headers.get('operation-id')
    assert.equal(headers.get('location'), `/v0/operations/${id}`)
    const response = await fetch(new URL(headers.get('location') ?? '', url), {
      headers: { authorization: `Bearer ${api.key}` },
    })
    assert.equal(((await response.json()) as { data: { id: string } }).data.id, id)
  })
})
