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

test('a request has no tokens of the data in it', () => {
  const data = 'iVBORw0KGgo'.repeat(1000)
  const body = Buffer.from(JSON.stringify({ text: 'x', data }))
  assert.ok(tokensOfRequest(body, [data]) < 20)
  assert.ok(tokensOfRequest(body, []) > data.length / 4)
  assert.equal(tokensOfRequest(Buffer.from('x'), [data]), 0)
})
