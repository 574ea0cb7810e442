import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MOST_USD } from './protocol.ts'
import { type Asked, needOf } from './reserve.ts'

const asked = (body: Asked['body'], changes: Partial<Asked> = {}): Asked => ({
  dialect: 'openai',
  operation: 'chat',
  body,
  bytes: 100,
  ...changes,
})
const outputOf = (body: Asked['body'], changes?: Partial<Asked>) =>
  needOf(asked(body, changes), []).amounts.tokens - 100

test('a request needs its bytes and its longest replies, at the dearest price', () => {
  const price = { input: 10, output: 100, reasoning: 200, maxOutput: 1000 }
  const need = needOf(asked({ max_tokens: 3, n: 2 }), [price, { input: 20, output: 1 }])
  assert.deepEqual(need.amounts, { usd: 100 * 10 + 6 * 200, tokens: 106, requests: 1 })
  assert.equal(needOf(asked({}), [price]).amounts.tokens, 1100)
  assert.equal(outputOf({}), 32_768)
  assert.equal(outputOf({ max_tokens: -1 }), 32_768)
  assert.equal(outputOf({ max_tokens: 1, max_completion_tokens: 9, Max_Tokens: 7 }), 9)
  assert.equal(outputOf({ max_output_tokens: 5 }, { operation: 'responses' }), 5)
  assert.equal(outputOf({ max_tokens: 5 }, { operation: 'embeddings' }), 0)
  // A server ignores the limits of other operations.
  assert.equal(outputOf({ max_output_tokens: 1 }), 32_768)
  assert.equal(outputOf({ max_tokens: 1, max_completion_tokens: 1 }, { operation: 'responses' }), 32_768)
  assert.equal(
    outputOf({ max_completion_tokens: 1 }, { dialect: 'anthropic', operation: 'messages' }),
    32_768,
  )
  assert.equal(needOf(asked({ n: 1e9 }), [{ input: 1e9, output: 1e9 }]).amounts.usd, MOST_USD)
  const google: Partial<Asked> = { dialect: 'google', operation: 'generate' }
  assert.equal(
    outputOf({ generation_config: { maxOutputTokens: 1, max_output_tokens: 4, candidateCount: 3 } }, google),
    12,
  )
  assert.deepEqual(needOf(asked({ max_tokens: 9 }, { operation: 'count' }), [price]).amounts, {
    usd: 0,
    tokens: 0,
    requests: 1,
  })
})
