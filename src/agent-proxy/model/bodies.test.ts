import assert from 'node:assert/strict'
import { test } from 'node:test'
import { EventReader } from './events.ts'
import { readJsonBody, withValues } from './json-body.ts'
import { readCall } from './paths.ts'

test('a body changes only in the named values', () => {
  const text =
    ' {"a":1.10, "ü":"—🪙", "model" : "x\\"}" ,"big":12345678901234567890,"g\\u00f6\\/\\"":{"model":[{}]}}'
  const body = readJsonBody(Buffer.from(text))
  assert.equal(body.value.model, 'x"}')
  const changed = withValues(body, { model: 'y', stream_options: { include_usage: true } }).toString()
  assert.equal(
    changed,
    ' {"stream_options":{"include_usage":true},"a":1.10, "ü":"—🪙", "model" :"y","big":12345678901234567890,"g\\u00f6\\/\\"":{"model":[{}]}}',
  )
  assert.equal(withValues(readJsonBody(Buffer.from('{ }')), { a: 1 }).toString(), '{"a":1 }')
})

test('a body that servers could read differently is refused', () => {
  for (const text of [
    '{"n":1,"n":2}',
    '{"n":1,"N":2}',
    '{"max_tokens":1,"maxTokens":2}',
    // As Go's JSON reads it, the second is the same field.
    '{"max_tokens":1,"max_token\u017f":2}',
    '{"maxTokens":1}',
    '{"STREAM_OPTIONS":{}}',
    '{"stream":1}',
    '{"stream":"true"}',
    `{"a":[${'[],'.repeat(500_000)}[]]}`,
    '{"a":{"\\n":1,"\\u000a":2}}',
    // Some versions of V8 read such keys wrong.
    '{"a":1,"\\u006e":2}',
    '{"tools":[{"\\u0074ype":"web_search"}]}',
    '[{}]',
    '{"a":1',
    '{"a":"b',
    '"a"',
    '',
    '\ufeff{}',
    '['.repeat(300),
  ])
    assert.throws(() => readJsonBody(Buffer.from(text)), { name: 'RefusalError' }, text)
  assert.throws(() => readJsonBody(Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])), /UTF-8/)
})

test('events pass as they came, however they are split, except for dropped ones', () => {
  const events = [
    'data: {"a":1}\n\n',
    ': comment\n\n',
    'event: x\r\ndata: {"drop":1}\r\n\r\n',
    'data: [DONE]\n\n',
    'data: {"b":',
  ]
  const text = events.join('')
  for (const size of [1, 2, 7, text.length]) {
    const seen: unknown[] = []
    const reader = new EventReader((value) => {
      seen.push(value)
      return Object.hasOwn(value as object, 'drop')
    })
    let passed = ''
    for (let at = 0; at < text.length; at += size)
      passed += reader.push(Buffer.from(text.slice(at, at + size)))
    passed += reader.end()
    assert.equal(passed, text.replace(events[2] as string, ''))
    assert.deepEqual(seen, [{ a: 1 }, { drop: 1 }])
  }
  const reader = new EventReader(() => false)
  assert.throws(() => reader.push(Buffer.alloc(9_000_000)), /too long/)
})

test('only paths of the dialects are served, in one spelling', () => {
  assert.equal(readCall('POST', '/berth/v1/chat/completions')?.upstreamPath('m'), '/chat/completions')
  assert.equal(readCall('POST', '/anthropic/v1/messages')?.upstreamPath('m'), '/v1/messages')
  const google = readCall('POST', '/google/v1beta/models/gemini-3.0:streamGenerateContent')
  assert.equal(google?.model, 'gemini-3.0')
  assert.equal(google?.upstreamPath('other'), '/v1beta/models/other:streamGenerateContent')
  for (const [method, path] of [
    ['GET', '/berth/v1/chat/completions'],
    ['DELETE', '/berth/v1/models'],
    ['GET', '/berth/v1/models/m'],
    ['POST', '/berth/v1/chat/completions/'],
    ['POST', '//berth/v1/chat/completions'],
    ['POST', '/berth//v1/chat/completions'],
    ['POST', '/berth/v1/../v1/chat/completions'],
    ['POST', '/berth/v1/%2e%2e/api/pull'],
    ['POST', '/berth/v1/chat%2Fcompletions'],
    ['POST', '/berth/api/pull'],
    ['POST', '/google/v1beta/models/..:generateContent'],
    ['POST', '/google/v1beta/models/a/b:generateContent'],
    ['POST', '/google/v1beta/models/a%2Fb:generateContent'],
    ['POST', '/google/v1beta/models/m:batchGenerateContent'],
    ['POST', '/google/v1beta/models/{model}:generateContent'],
    ['POST', '/openai/v1/images/generations'],
    ['POST', '/openai/v1/batches'],
  ] as const)
    assert.equal(readCall(method, path), undefined, path)
})
