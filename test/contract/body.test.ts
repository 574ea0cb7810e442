/** Malformed bodies, queries, headers and paths. */

import assert from 'node:assert/strict'
import { randomUUID } from 'node:crypto'
import { describe, it } from 'node:test'
import { gzipSync } from 'node:zlib'
import { assertError } from '../support/client.ts'
import { sendRaw } from '../support/gateway.ts'
import { inlineCid, openContext } from './context.ts'
import { CONTENT_TYPE, encodeForm, file } from './upload-form.ts'

const PIN = '/v3/files/public/pin_by_cid'
const { workspace } = await openContext()
const { api } = await workspace()
const body = JSON.stringify({ cid: `${inlineCid('body')}` })
const send = (body: string | Uint8Array<ArrayBuffer> | undefined, headers: Record<string, string> = {}) =>
  api.request('POST', PIN, { body, headers })

describe('a body', () => {
  for (const type of ['application/json', 'text/plain', 'application/x-www-form-urlencoded', 'x', '']) {
    it(`a body is parsed as JSON if Content-Type is ${type || 'empty'}`, async () => {
      assert.equal((await send(body, { 'content-type': type })).status, 200)
    })
  }
  it('a body may be compressed', async () => {
    assert.equal((await send(new Uint8Array(gzipSync(body)), { 'content-encoding': 'gzip' })).status, 200)
  })
  it('a body is required', async () => {
    for (const nothing of [undefined, ''])
      assertError(await send(nothing), 400, 'body: a JSON body is required')
  })

  const notJson = ['{', '{"cid":', 'cid=x', '\0', '{"cid":"x"}x', "{'cid':'x'}", '\ufffe', 'undefined', 'NaN']
  for (const text of notJson) {
    it(`the body ${JSON.stringify(text)} returns 400`, async () => {
      assertError(await send(text), 400, 'body: not valid JSON')
    })
  }
  for (const text of ['null', '[]', '5', '"x"', 'true', `[${body}]`]) {
    it(`a body returns 400 for ${text.slice(0, 20)}`, async () =>
      assertError(await send(text), 400, /^body: /))
  }
  it('a body with extremely deep JSON returns 400', async () => {
    assertError(await send(`${'['.repeat(100_000)}${']'.repeat(100_000)}`), 400, /^body: /)
    const deep = `{"cid":${'{"a":'.repeat(50_000)}1${'}'.repeat(50_000)}}`
    assertError(await send(deep), 400, /^cid: /)
  })
  it('a body above 1 MiB returns 413', async () => {
    const large = (length: number) => JSON.stringify({ cid: 'x'.repeat(length) })
    assertError(await send(large(2 ** 20)), 413, 'body: larger than 1 MiB')
    assertError(await send(large(5 * 2 ** 20)), 413, 'body: larger than 1 MiB')
    assertError(await send(large(2 ** 20 - 100)), 400, 'cid: not a CID')
  })
  it('a compressed body above 1 MiB returns 413', async () => {
    const bomb = new Uint8Array(gzipSync(' '.repeat(50 * 2 ** 20)))
    assertError(await send(bomb, { 'content-encoding': 'gzip' }), 413, 'body: larger than 1 MiB')
  })
  it('a body that is not compressed as its header claims returns 400', async () => {
    assertError(await send(body, { 'content-encoding': 'gzip' }), 400, /./)
  })
  it('a body in an unsupported encoding or charset returns 415', async () => {
    assertError(await send(body, { 'content-encoding': 'pack200' }), 415, /./)
    assertError(await send(body, { 'content-type': 'application/json; charset=nonsense' }), 415, /./)
  })
})

describe('a form', () => {
  it('a compressed form returns 415 on every upload route [report: HTTP rules]', async () => {
    const signed = await api.post('/v3/files/sign', { date: Math.floor(Date.now() / 1000), expires: 60 })
    const paths = ['/v3/files', '/pinning/pinFileToIPFS', signed.body.data.slice(api.url.length)]
    for (const path of paths) {
      const sent = new Uint8Array(gzipSync(encodeForm([file('compressed', 'a.txt')])))
      const headers = { 'content-type': CONTENT_TYPE, 'content-encoding': 'gzip' }
      const reply = await api.request('POST', path, { body: sent, headers })
      assertError(reply, 415, 'unsupported content encoding "gzip"')
    }
    const tus = { 'upload-length': '5', 'content-encoding': 'gzip' }
    assertError(
      await api.request('POST', '/v3/files', { headers: tus }),
      415,
      /^unsupported content encoding/,
    )
    const nothing = await api.request('HEAD', `/v3/files/tus/${randomUUID()}/x`, { headers: tus })
    assert.equal(nothing.status, 404, 'a request without a body may name any encoding')
  })
})

describe('a query', () => {
  it('a repeated parameter returns 400 [report: HTTP rules]', async () => {
    const twice: [path: string, message: string][] = [
      ['/v3/files/public?keyvalues[a]=1&keyvalues[a]=2', 'keyvalues.a: given twice'],
    ]
    for (const [path, message] of twice) assertError(await api.get(path), 400, message)
  })
})

describe('Authorization', () => {
  it('two Authorization headers return 400 [report: HTTP rules]', async () => {
    const good = `Authorization: Bearer ${api.key}`
    for (const headers of [
      [good, good],
      [good, 'Authorization: Bearer x'],
      ['authorization: x', good],
    ]) {
      const answer = await sendRaw(
        api.url,
        `GET /v3/files/public HTTP/1.1\r\nHost: x\r\n${headers.join('\r\n')}\r\nConnection: close\r\n\r\n`,
      )
      assert.match(answer, /^HTTP\/1\.1 400 [\s\S]*{"error":"Authorization: sent more than once"}$/)
    }
  })
})

describe('a path', () => {
  it('a path that does not decode returns 400', async () => {
    const response = await fetch(`${api.url}/v3/files/public/%E0%A4%A`, {
      headers: { authorization: `Bearer ${api.key}` },
    })
    assert.equal(response.status, 400)
    assert.deepEqual(Object.keys((await response.json()) as object), ['error'])
  })
  for (const path of ['/v3', '/v3/', '/v3/files/public/a/b', '/V3/FILES/public'])
    it(`the path ${path} returns 404`, async () =>
      assertError(await api.get(path), 404, `No such route: GET ${path}`))
  it('the path /v3/files does not support GET', async () =>
    assertError(await api.get('/v3/files'), 405, 'No such method here: GET /v3/files'))
})
