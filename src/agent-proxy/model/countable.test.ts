import assert from 'node:assert/strict'
import { test } from 'node:test'
import { uncountable } from './countable.ts'
import type { Asked } from './reserve.ts'

const USD = { usd: true, tokens: false, requests: true }
const TOKENS = { usd: false, tokens: true, requests: false }
const NONE = { usd: false, tokens: false, requests: true }
const chat = { dialect: 'openai', operation: 'chat' } as const
const responses = { dialect: 'openai', operation: 'responses' } as const
const anthropic = { dialect: 'anthropic', operation: 'messages' } as const
const google = { dialect: 'google', operation: 'generate' } as const
type Case = [of: Pick<Asked, 'dialect' | 'operation'>, body: Asked['body'], reason: RegExp]

const why = ([of, body]: [Case[0], Case[1], ...unknown[]], limits: typeof USD) =>
  uncountable({ ...of, body, bytes: 100 }, limits)
const summary = { edits: [{ type: 'clear_tool_uses_20250919' }, { type: 'compact_20260112' }] }
const search = { functionDeclarations: [], google_search: {} }

test('a budget refuses requests whose tokens nobody can bound', () => {
  for (const one of [
    [chat, { previous_response_id: 'r' }, /field previous_response_id$/],
    [chat, { background: 1 }, /field background$/],
    [chat, { web_search_options: {} }, /field web_search_options$/],
    [chat, { deferred: true }, /field deferred$/],
    [chat, { prediction: { content: 'x' } }, /field prediction$/],
    [chat, { n: '9' }, /field n, which is no number,$/],
    [chat, { max_tokens: '9' }, /field max_tokens, which/],
    [chat, { tools: [{ type: 'function' }, { type: 'web_search' }] }, /tool "web_search"$/],
    [chat, { tools: { type: 'mcp' } }, /tool "mcp"$/],
    [responses, { conversation: { id: 'c' } }, /field conversation$/],
    [responses, { prompt: { id: 'p' } }, /field prompt$/],
    [responses, { new_feature: true }, /field new_feature$/],
    [responses, { context_management: [{ type: 'compaction' }] }, /field context_management$/],
    [
      responses,
      { input: [{ role: 'user' }, { type: 'item_reference', id: 'i' }] },
      /input "item_reference"$/,
    ],
    [responses, { input: [{ type: 'x_call_output', tools: [{ type: 'mcp' }] }] }, /tool "mcp"$/],
    [
      anthropic,
      { tools: [{ type: 'web_search_20250305', name: 'web_search' }] },
      /tool "web_search_20250305"$/,
    ],
    [anthropic, { mcp_servers: [{ url: 'https://x' }] }, /field mcp_servers$/],
    [anthropic, { fallbacks: [{ model: 'other' }] }, /field fallbacks$/],
    [anthropic, { context_management: summary }, /field context_management$/],
    [google, { tools: [{ functionDeclarations: [] }, search] }, /tool "functionDeclarations,google_search"$/],
    [google, { cachedContent: 'cachedContents/x' }, /field cachedContent$/],
    [google, { generationConfig: { candidateCount: '8' } }, /field candidateCount, which/],
  ] satisfies Case[]) {
    assert.match(why(one, USD) ?? '', one[2], JSON.stringify(one))
    assert.match(why(one, TOKENS) ?? '', one[2])
    assert.equal(why(one, NONE), undefined)
  }
})

test('a budget in US dollars refuses what has a price of its own', () => {
  const sound = { mimeType: 'audio/wav', data: '' }
  for (const one of [
    [chat, { service_tier: 'priority' }, /tier "priority"$/],
    [chat, { modalities: ['text', 'audio'] }, /output "audio"$/],
    [chat, { messages: [{ content: [{ type: 'input_audio', input_audio: {} }] }] }, /sound/],
    [chat, { model: 'openai/gpt-5.5:online' }, /web search/],
    [responses, { reasoning: { mode: 'pro' } }, /reasoning mode "pro"$/],
    [chat, { prompt_cache_options: { mode: 'explicit', ttl: '12h' } }, /cache for "12h"$/],
    [anthropic, { inference_geo: 'us' }, /tier "us"$/],
    [anthropic, { speed: 'fast' }, /tier "fast"$/],
    [google, { generationConfig: { responseModalities: ['IMAGE'] } }, /output "IMAGE"$/],
    [google, { generation_config: { serviceTier: 'PRIORITY' } }, /tier "PRIORITY"$/],
    [google, { contents: [{ parts: [{ inlineData: sound }] }] }, /sound/],
    [google, { contents: [{ parts: [{ fileData: { fileUri: 'https://x/y' } }] }] }, /sound/],
  ] satisfies Case[]) {
    assert.match(why(one, USD) ?? '', one[2], JSON.stringify(one))
    assert.equal(why(one, TOKENS), undefined)
  }
})

test('a budget lets requests pass whose cost shows', () => {
  const pdf = { fileUri: 'https://x/y', mimeType: 'application/pdf' }
  for (const one of [
    [chat, { tools: [{ type: 'function' }], service_tier: 'auto', background: false, top_k: 3, n: null }],
    [chat, { tools: null, chat_template_kwargs: { enable_thinking: false } }],
    [responses, { input: [{ role: 'user' }, { type: 'function_call_output' }], previous_response_id: null }],
    [responses, { input: 'x', reasoning: { effort: 'high' }, store: false }],
    [responses, { reasoning: { mode: 'standard' }, prompt_cache_options: { ttl: '30m' } }],
    [anthropic, { tools: [{ name: 'x' }, { type: 'bash_20250124' }], thinking: { type: 'adaptive' } }],
    [anthropic, { context_management: { edits: [{ type: 'clear_thinking_20251015' }] } }],
    [google, { tools: [{ functionDeclarations: [] }], contents: [{ parts: [{ fileData: pdf }] }] }],
  ] satisfies [Case[0], Case[1]][])
    assert.equal(why(one, USD), undefined, JSON.stringify(one))
})
