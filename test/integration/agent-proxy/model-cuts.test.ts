/** Streams that end early: what they cost. */
import assert from 'node:assert/strict'
import type { ServerResponse } from 'node:http'
import { test } from 'node:test'
import { tokensOf } from '../../../src/agent-proxy/model/tokens.ts'
import { startModelGateway } from '../../support/model-gateway.ts'

const CHAT = '/berth/v1/chat/completions'
const chunk = (content: string) => `data: ${JSON.stringify({ choices: [{ delta: { content } }] })}\n\n`
const headOf = (res: ServerResponse) => res.writeHead(200, { 'content-type': 'text/event-stream' })

test('an agent that leaves a stream pays for the images and files of the request', async (t) => {
  const { post, control } = await startModelGateway(t, (res) => headOf(res).write(chunk('1234')))
  const image = { type: 'image_url', image_url: { url: 'https://x/y.png' } }
  for (const [n, part, tokens] of [
    [0, image, 16_384],
    [1, { type: 'file', file: { file_id: 'f' } }, 1_048_576],
  ] as const) {
    const leaving = new AbortController()
    const body = JSON.stringify({
      ...{ model: 'm', stream: true, stream_options: { include_usage: true }, max_tokens: 9 },
      messages: [{ role: 'user', content: [part] }],
    })
    await post(CHAT, body, { signal: leaving.signal })
    leaving.abort()
    const { input, estimated } = await control.record(n)
    assert.deepEqual([input, estimated], [tokens + Math.ceil(tokensOf(body)), true])
  }
})

test('a query does not make a stream of a whole response, which is paid whole', async (t) => {
  const arrived = Promise.withResolvers<ServerResponse>()
  const { post, control } = await startModelGateway(t, arrived.resolve)
  const leaving = new AbortController()
  const asking = post(
    `${CHAT}?alt=sse`,
    { model: 'm', max_tokens: 9, messages: [] },
    { signal: leaving.signal },
  )
  const res = await arrived.promise
  leaving.abort()
  await assert.rejects(asking)
  // After another request, the gateway has noticed.
  await post('/', {})
  res.end('{"usage":{"prompt_tokens":10,"completion_tokens":7}}')
  assert.equal((await control.record()).output, 7)
})

test('an agent that leaves a silent stream pays for what the model may have thought', async (t) => {
  const { post, control } = await startModelGateway(t, (res) => headOf(res).flushHeaders(), { quietMs: 1100 })
  const leaving = new AbortController()
  const body = { model: 'm', stream: true, max_tokens: 70, messages: [] }
  // The gateway breaks the silence after more than a second.
  await post(CHAT, body, { signal: leaving.signal })
  leaving.abort()
  assert.equal((await control.record()).output, 70)
})

test('a budget ends a stream that ignores the limit of its request', async (t) => {
  const text = '8 bytes '.repeat(2200)
  const { post, control } = await startModelGateway(t, (res) => headOf(res).write(chunk(text)))
  const answer = await post(CHAT, { model: 'm', stream: true, max_tokens: 10, messages: [] })
  assert.match(await answer.text(), /"Usage limit: .*"budget_exceeded"/)
  assert.equal((await control.record()).output, Math.ceil(tokensOf(text)))
})
