import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Dialect } from '../../model-providers.ts'
import { MOST_USD } from './protocol.ts'
import { costOf, dearest, Meter, NO_USAGE } from './usage.ts'

const read = (dialect: Dialect, ...values: unknown[]) => {
  const meter = new Meter(dialect)
  for (const value of values) meter.push(value)
  return meter
}

test('usage is read in each dialect, and the last report wins', () => {
  const openai = read(
    'openai',
    { usage: null, choices: [{ delta: { content: 'pöng' } }] },
    { usage: { prompt_tokens: 1, completion_tokens: 1 } },
    {
      usage: {
        prompt_tokens: 100,
        completion_tokens: 20,
        total_tokens: 150,
        prompt_tokens_details: { cached_tokens: 60, cache_write_tokens: 20 },
        completion_tokens_details: { reasoning_tokens: 30 },
      },
    },
  )
  // The total contains reasoning that `completion_tokens` lacks.
  const cached = { cachedInput: 60, cacheWrite: 20 }
  assert.deepEqual(openai.usage, { ...NO_USAGE, input: 100, output: 50, ...cached, reasoning: 30 })
  assert.equal(openai.textBytes, 5)

  const responses = read('openai', {
    type: 'response.completed',
    response: { usage: { input_tokens: 7, output_tokens: 3, input_tokens_details: { cached_tokens: 2 } } },
  })
  assert.deepEqual(responses.usage, { ...NO_USAGE, input: 7, output: 3, cachedInput: 2 })

  const anthropic = read(
    'anthropic',
    {
      type: 'message_start',
      message: {
        usage: {
          input_tokens: 10,
          cache_read_input_tokens: 20,
          cache_creation_input_tokens: 30,
          cache_creation: { ephemeral_1h_input_tokens: 25 },
          output_tokens: 1,
        },
      },
    },
    { type: 'message_delta', usage: { output_tokens: 9, input_tokens: null } },
  )
  assert.deepEqual(anthropic.usage, {
    input: 60,
    output: 9,
    cachedInput: 20,
    cacheWrite: 30,
    reasoning: 0,
    hourWrite: 25,
  })

  const google = read('google', [
    { candidates: [{ content: { parts: [{ text: 'ab' }] } }], usageMetadata: { promptTokenCount: 1 } },
    {
      usageMetadata: {
        promptTokenCount: 8,
        cachedContentTokenCount: 4,
        candidatesTokenCount: 2,
        thoughtsTokenCount: 5,
        totalTokenCount: 15,
      },
    },
  ])
  assert.deepEqual(google.usage, { ...NO_USAGE, input: 8, output: 7, cachedInput: 4, reasoning: 5 })
})

test('reports with other values than counts are ignored', () => {
  const usage = {
    prompt_tokens: -5,
    completion_tokens: 'many',
    total_tokens: 1e300,
    prompt_tokens_details: 1,
  }
  assert.deepEqual(read('openai', { usage }).usage, { ...NO_USAGE, output: 1e9 })
  assert.equal(read('openai', null, 'x', { usage: null }).usage, undefined)
  const most = { ...NO_USAGE, input: 2e9, output: 1e9 }
  assert.equal(costOf(most, { input: 30e6, output: 180e6 }), MOST_USD)
})

test('summaries of thoughts, roles and names of events do not count as words', () => {
  for (const [dialect, event] of [
    ['openai', { choices: [{ delta: { role: 'assistant', content: '' } }] }],
    ['openai', { type: 'response.reasoning_summary_text.delta', delta: 'Thinking of' }],
    ['anthropic', { type: 'content_block_delta', delta: { type: 'thinking_delta', thinking: 'First' } }],
    ['anthropic', { type: 'content_block_delta', delta: { type: 'signature_delta', signature: 'Eqo' } }],
  ] as const)
    assert.equal(read(dialect, event).hasWords, false, JSON.stringify(event))
  const words = { type: 'content_block_delta', delta: { type: 'text_delta', text: 'Hi' } }
  const meter = read('anthropic', words)
  assert.deepEqual([meter.hasWords, meter.textBytes], [true, 2])
  const call = { tool_calls: [{ id: 'call_1', type: 'function', function: { name: 'f', arguments: '{}' } }] }
  assert.equal(read('openai', { choices: [{ delta: call }] }).textBytes, 3)
})

test('each kind of token has its own price, and long requests a multiple', () => {
  const usage = { input: 100, output: 50, cachedInput: 40, cacheWrite: 20, reasoning: 30, hourWrite: 10 }
  const price = { input: 10, output: 100, cachedInput: 1, cacheWrite: 12, reasoning: 200 }
  const plain = 40 * 10 + 40 * 1 + 10 * 12 + 10 * 20
  const output = 20 * 100 + 30 * 200
  assert.equal(costOf(usage, price), plain + output)
  const long = { above: 99, input: 2, output: 1.5 }
  assert.equal(costOf(usage, { ...price, long }), 2 * plain + 1.5 * output)
  assert.equal(costOf(usage, { input: 10, output: 100 }), 100 * 10 + 50 * 100)
  assert.deepEqual(dearest({ ...price, long }, 100), { input: 40, output: 300 })
})
