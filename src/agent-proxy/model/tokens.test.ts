import assert from 'node:assert/strict'
import { test } from 'node:test'
import { tokensOf, tokensOfRequest } from './tokens.ts'

/** Texts, each with its number of tokens in o200k_base. */
const TEXTS: [text: string, tokens: number][] = [
  [
    'The gateway reserves the most that a call can cost before it is sent, and charges what the provider reports.',
    22,
  ],
  ['export const sumOf = (values: readonly number[]) => values.reduce((sum, one) => sum + one, 0)\n', 27],
  [
    '{"id":"chatcmpl-8Xk2","created":1764400000,"choices":[{"index":0,"delta":{"content":"ok"},"finish_reason":null}]}',
    39,
  ],
  ['2026-11-29T07:31:12.482Z INFO [worker-3] GET /v0/agents/x7f3k2ab/files 200 in 17 ms', 41],
  ['Das Budget gilt für alle Agenten des Arbeitsbereichs zusammen und für jeden Tag.', 17],
  ['预算限制了工作区每天和每月的支出。', 13],
  ['ወኪሉ በማጠሪያ ውስጥ ይሰራል', 33],
  ['9f1c2b7e-3d4a-4e0b-8c55-07d2f6a1b3c9', 34],
  ['deadbeef0123456789abcdef0f1e2d3c4b5a6978', 22],
  ['31415926535897932384626433832795', 11],
  ['@#%^~`|<?]{*$&!\\>)/[}', 15],
  ['🦊🧪🪐🎻', 11],
]

test('an estimate of tokens is between a tokenizer’s count and twice as much', () => {
  for (const [text, tokens] of TEXTS) {
    const ratio = tokensOf(text) / tokens
    assert.ok(ratio >= 1 && ratio <= 2, `${ratio} for ${text}`)
  }
})

test('an estimate never exceeds the bytes, which are reserved', () => {
  for (const text of [...TEXTS.map(([text]) => text), 'a b c', ' \n \n', 'é', '€', ''])
    assert.ok(tokensOf(text) <= Buffer.byteLength(text), text)
})

test('images in a request count by number, in the places where a model gets them as images', () => {
  const data = 'iVBORw0KGgo'.repeat(1000)
  const url = `data:image/png;base64,${data}`
  const text = (body: object) => tokensOfRequest(Buffer.from(JSON.stringify(body)), true)
  const images = [
    { messages: [{ content: [{ type: 'image_url', image_url: { url } }] }] },
    { input: [{ content: [{ type: 'input_image', image_url: url }] }] },
    { messages: [{ content: [{ type: 'tool_result', content: [{ type: 'image', source: { data } }] }] }] },
    { contents: [{ parts: [{ inlineData: { mimeType: 'image/png', data } }] }] },
  ]
  for (const body of images) assert.ok(text(body) < 100, JSON.stringify(body).slice(0, 99))
  const texts = [
    { messages: [{ content: url }] },
    { messages: [{ content: [{ type: 'tool_use', input: { type: 'image', source: { data } } }] }] },
    { tools: [{ content: [{ type: 'image', source: { data } }] }] },
    { contents: [{ parts: [{ inlineData: { mimeType: 'text/plain', data } }] }] },
  ]
  for (const body of texts) assert.ok(text(body) > data.length / 2, JSON.stringify(body).slice(0, 99))
  assert.ok(tokensOfRequest(Buffer.from('[]'), true) > 0)
})
