import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Asked, needOf, uncountable } from './reserve.ts'

const asked = (body: Asked['body'], changes: Partial<Asked> = {}): Asked => ({
  dialect: 'openai',
  operation: 'chat',
  body,
  bytes: 100,
  ...changes,
})
const outputOf = (body: Asked['body'], changes?: Partial<Asked>) =>
  needOf(asked(body, changes), []).tokens - 100

test('a request needs its bytes and its longest replies, at the dearest price', () => {
  const price = { input: 10, output: 100, reasoning: 200, maxOutput: 1000 }
  const need = needOf(asked({ max_tokens: 3, n: 2 }), [price, { input: 20, output: 1 }])
  assert.deepEqual(need, { usd: 100 * 10 + 6 * 200, tokens: 106, requests: 1 })
  assert.equal(needOf(asked({}), [price]).tokens, 1100)
  assert.equal(outputOf({}), 32_768)
  assert.equal(outputOf({ max_tokens: -1 }), 32_768)
  assert.equal(outputOf({ max_tokens: 1, max_completion_tokens: 9, Max_Tokens: 7 }), 9)
  assert.equal(outputOf({ max_output_tokens: 5 }, { operation: 'responses' }), 5)
  assert.equal(outputOf({ max_tokens: 5 }, { operation: 'embeddings' }), 0)
  const google: Partial<Asked> = { dialect: 'google', operation: 'generate' }
  assert.equal(
    outputOf({ generation_config: { maxOutputTokens: 1, max_output_tokens: 4, candidateCount: 3 } }, google),
    12,
  )
  assert.deepEqual(needOf(asked({ max_tokens: 9 }, { operation: 'count' }), [price]), {
    usd: 0,
    tokens: 0,
    requests: 1,
  })
})

test('images and files add an allowance', () => {
  const image = { messages: [{ content: [{ type: 'image_url', image_url: { url: 'https://x/y.png' } }] }] }
  assert.equal(outputOf({ ...image, max_tokens: 1 }), 16_385)
  assert.equal(outputOf({ input: [{ type: 'input_file', file_id: 'f' }], max_output_tokens: 1 }), 200_001)
  const source = { type: 'url', url: 'https://x/y.png' }
  assert.equal(outputOf({ messages: [{ content: [{ type: 'image', source }] }], max_tokens: 1 }), 16_385)
  const fileData = { mimeType: 'video/mp4', fileUri: 'https://x/y' }
  assert.ok(outputOf({ contents: [{ parts: [{ fileData }] }] }) > 200_000)
})

test('a budget refuses requests that cannot be counted', () => {
  const why = (
    body: Asked['body'],
    changes?: Partial<Asked>,
    limits = { usd: true, tokens: false, requests: true },
  ) => uncountable(asked(body, changes), limits)
  const anthropic: Partial<Asked> = { dialect: 'anthropic', operation: 'messages' }
  const google: Partial<Asked> = { dialect: 'google', operation: 'generate' }
  const tokensOnly = { usd: false, tokens: true, requests: false }
  const none = { usd: false, tokens: false, requests: true }
  for (const body of [
    { previous_response_id: 'r' },
    { conversation: { id: 'c' } },
    { prompt: { id: 'p' } },
    { background: true },
    { web_search_options: {} },
    { tools: [{ type: 'function' }, { type: 'web_search' }] },
    { tools: [{ type: 'mcp' }] },
    { tools: { type: 'mcp' } },
  ]) {
    assert.ok(why(body), JSON.stringify(body))
    assert.ok(why(body, {}, tokensOnly))
    assert.equal(why(body, {}, none), undefined)
  }
  for (const body of [
    { service_tier: 'priority' },
    { inference_geo: 'us' },
    { modalities: ['text', 'audio'] },
  ]) {
    assert.ok(why(body), JSON.stringify(body))
    assert.equal(why(body, {}, tokensOnly), undefined)
  }
  assert.ok(why({ tools: [{ type: 'web_search_20250305', name: 'web_search' }] }, anthropic))
  assert.ok(why({ mcp_servers: [{ url: 'https://x' }] }, anthropic))
  assert.ok(why({ tools: [{ functionDeclarations: [] }, { google_search: {} }] }, google))
  assert.ok(why({ generationConfig: { responseModalities: ['IMAGE'] } }, google))
  assert.ok(why({ cachedContent: 'cachedContents/x' }, google))

  assert.equal(why({ tools: [{ type: 'function' }], service_tier: 'auto', background: false }), undefined)
  assert.equal(why({ tools: [{ name: 'x' }, { type: 'bash_20250124' }] }, anthropic), undefined)
  assert.equal(why({ tools: [{ functionDeclarations: [] }] }, google), undefined)
})
