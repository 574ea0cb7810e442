/** Media types of what gateways serve: by name, then as declared, then by content. */
import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { assertError } from '../support/client.ts'
import { openContext } from './context.ts'
import { openGateway } from './gateway.ts'
import { file, send, upload } from './upload-form.ts'

const context = await openContext()
const workspace = await context.workspace()
const { api } = workspace
const gateway = await openGateway(context, workspace)
const OCTETS = 'application/octet-stream'

const share = (content: string | Uint8Array, name: string, type?: string) =>
  upload(api, ['network', 'public'], file(content, name, type))
const served = async (path: string) => (await gateway.get(path)).headers['content-type']
const script = (text: string) => `export const mark = '${text} ${crypto.randomUUID()}'\n`

describe('the type of served content', () => {
  it('a file that curl uploads has the type of its name [report: content types]', async () => {
    const { cid } = await share(script('curl'), 'app.js', OCTETS)
    assert.equal(await served(`/ipfs/${cid}`), 'text/javascript; charset=utf-8')
  })
  it('?filename= determines the type before anything else [report: content types]', async () => {
    const drawing = `<svg xmlns="http://www.w3.org/2000/svg"><!-- ${crypto.randomUUID()} --></svg>`
    const { cid } = await share(drawing, 'drawing', OCTETS)
    assert.equal(await served(`/ipfs/${cid}`), 'text/plain; charset=utf-8')
    const { status, headers } = await gateway.get(`/ipfs/${cid}?filename=logo.svg`)
    assert.deepEqual([status, headers['content-type']], [200, 'image/svg+xml'])
    assert.match(`${headers['content-disposition']}`, /filename="logo\.svg"/)
    assert.match(`${headers['content-security-policy']}`, /^sandbox/)
    const named = await share(script('both'), 'app.js')
    assert.equal(await served(`/ipfs/${named.cid}?filename=app.css`), 'text/css; charset=utf-8')
    assert.equal(await served(`/ipfs/${named.cid}?filename=nothing`), 'text/javascript; charset=utf-8')
  })
  it('without a known extension, the declared type is used [report: content types]', async () => {
    for (const name of ['style', 'style.unknown-extension']) {
      const { cid } = await share(`a{--mark:"${crypto.randomUUID()}"}`, name, 'text/css')
      assert.equal(await served(`/ipfs/${cid}`), 'text/css; charset=utf-8')
    }
  })
  it('without a name and type, the type is detected from the content [report: content types]', async () => {
    const { cid } = await share(JSON.stringify({ mark: crypto.randomUUID() }), 'data', OCTETS)
    assert.equal(await served(`/ipfs/${cid}`), 'application/json')
    const table = await share(`BMI,age\n22,${crypto.randomUUID()}\n`, 'table')
    assert.equal(await served(`/ipfs/${table.cid}`), 'text/plain; charset=utf-8')
    for (const bytes of [
      [0, 0],
      [0, 1],
      [0, 0, 1],
    ]) {
      const few = await share(Uint8Array.from(bytes), 'few')
      assert.equal(await served(`/ipfs/${few.cid}`), OCTETS)
    }
  })
})

describe('stored types', () => {
  it('a repeated upload updates the type only to a better one [report: content types]', async () => {
    const text = `a{--mark:"${crypto.randomUUID()}"}`
    const first = await share(text, 'style', OCTETS)
    assert.equal(first.mime_type, 'text/plain')
    const second = await share(text, 'style', 'text/css')
    assert.deepEqual(second, { ...first, mime_type: 'text/css', is_duplicate: true })
    assert.equal(await served(`/ipfs/${first.cid}`), 'text/css; charset=utf-8')
    for (const worse of [OCTETS, 'text/plain', undefined]) {
      assert.equal((await share(text, 'style', worse)).mime_type, 'text/css')
    }
  })
  it('a signed URL does not admit files by name or padded bytes [report: content types]', async () => {
    const sign = async (type: string): Promise<string> =>
      (
        await api.post('/v3/files/sign', {
          date: Math.floor(Date.now() / 1000),
          expires: 60,
          network: 'public',
          allow_mime_types: [type],
        })
      ).body.data.slice(context.url.length)
    const refused: [allowed: string, content: string | Uint8Array, detected: string][] = [
      ['image/bmp', 'BMI,age\n1,2\n', 'text/plain'],
      ['font/ttf', Uint8Array.from([0, 1]), OCTETS],
      ['text/javascript', script('by name'), 'text/plain'],
    ]
    for (const [allowed, content, detected] of refused) {
      const reply = await send(context.anonymous, [file(content, 'a.js', OCTETS)], await sign(allowed))
      const message = `Presigned URL does not grant permissions to upload detected MIME type: ${detected}`
      assertError(reply, 400, message)
    }
    const table = [file('BMI,age\n3,4\n', 'table.csv')]
    assert.equal((await send(context.anonymous, table, await sign('text/plain'))).status, 200)
  })
})
