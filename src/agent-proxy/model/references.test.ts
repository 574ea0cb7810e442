import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Json } from '../../../agentd/json.ts'
import { referencesOf } from './references.ts'

test('images and files add an allowance', () => {
  const part = (...content: object[]) => referencesOf('openai', { messages: [{ content }] }).tokens
  const [image, context] = [16_384, 1_048_576]
  assert.equal(part({ type: 'image_url', image_url: { url: 'https://x/y.png', type: 'x' } }), image)
  assert.equal(part({ type: 'input_image', image_url: 'https://x/y.png' }, { type: 'text', text: '' }), image)
  assert.equal(part({ type: 'image', source: { type: 'url', url: 'https://x/y.png' } }), image)
  assert.equal(part({ inlineData: { mimeType: 'image/png', data: '' } }, { type: 'image' }), 2 * image)
  for (const file of [
    { type: 'input_file', file_id: 'f' },
    { type: 'file', file: { file_data: 'data:application/pdf;base64,' } },
    { type: 'video_url', video_url: { url: 'https://x/y' } },
    { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: '' } },
    { inline_data: { mime_type: 'application/pdf', data: '' } },
    { fileData: { fileUri: 'https://x/y' } },
  ])
    assert.equal(part(file, file), context, JSON.stringify(file))
  for (const text of [
    { type: 'document', source: { type: 'text', media_type: 'text/plain', data: 'x' } },
    { inlineData: { mimeType: 'text/plain', data: '' } },
    { type: 'tool_result', content: [{ type: 'text', text: '{"file_id":"f"}' }] },
  ])
    assert.equal(part(text), 0, JSON.stringify(text))
  const tools = [{ name: 'x', input_schema: { properties: { file_id: { type: 'string' } } } }]
  assert.equal(referencesOf('openai', { tools }).tokens, 0)
  assert.equal(referencesOf('anthropic', { tools }).tokens, 2048)
})

test('the data of images and files counts as such, and elsewhere as text', () => {
  const data = (body: object) => referencesOf('openai', body as Json).data
  const base64 = 'AAAA'
  const url = `data:image/png;base64,${base64}`
  const png = { type: 'image', source: { type: 'base64', media_type: 'image/png', data: base64 } }
  const image = { type: 'image_url', image_url: { url } }
  assert.deepEqual(data({ messages: [{ content: [image, { type: 'text', text: url }] }] }), [url])
  assert.deepEqual(data({ input: [{ content: [{ type: 'input_image', image_url: url }] }] }), [url])
  assert.deepEqual(data({ input: [{ output: [{ type: 'input_image', image_url: url }] }] }), [url])
  assert.deepEqual(data({ messages: [{ content: [{ type: 'tool_result', content: [png] }, png] }] }), [
    base64,
    base64,
  ])
  assert.deepEqual(
    data({ contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data: base64 } }] }] }),
    [base64],
  )
  for (const text of [
    { tools: [{ function: { parameters: { content: [image] } } }] },
    { messages: [{ content: [{ type: 'text', image_url: { url }, source: png.source }] }] },
    {
      messages: [
        { content: [{ type: 'image_url', image_url: { url: `data:text/plain;base64,${base64}` } }] },
      ],
    },
    { contents: [{ parts: [{ inlineData: { mimeType: 'text/plain', data: base64 } }] }] },
    { contents: [{ parts: [{ inlineData: { data: base64 } }] }] },
    {
      contents: [
        { parts: [{ inlineData: { mime_type: 'image/png', mimeType: 'text/plain', data: base64 } }] },
      ],
    },
    { messages: [{ content: url }] },
  ])
    assert.deepEqual(data(text), [], JSON.stringify(text))
})
