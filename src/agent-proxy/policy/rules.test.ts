import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDestination } from '../destination.ts'
import { parseRule, refusalOf } from './rules.ts'

const isAllowed = (
  policy: { mode: 'open' | 'listed' | 'none'; allow?: string[]; deny?: string[] },
  to: string,
) =>
  refusalOf(
    { agentId: 'x', allow: [], deny: [], secrets: [], ...policy },
    parseDestination(to) ?? assert.fail(to),
  ) === undefined

test('rules are hosts, with or without a port', () => {
  assert.deepEqual(parseRule('API.Example.com'), { host: 'api.example.com' })
  assert.deepEqual(parseRule('*.example.com:443'), { host: '*.example.com', port: 443 })
  assert.deepEqual(parseRule('example.com.'), { host: 'example.com' })
  assert.deepEqual(parseRule('[2001:DB8::1]:80'), { host: '2001:db8::1', port: 80 })
  for (const text of [
    '',
    '*',
    '*.',
    'https://a.example',
    'a.example/x',
    'a@b',
    'a.example:0',
    'a b',
    '*.*.com',
  ])
    assert.equal(parseRule(text), undefined, text)
})

test('a listed policy allows the hosts of its rules, in any spelling, and no look-alike', () => {
  const policy = { mode: 'listed' as const, allow: ['api.example.com', '*.example.org:443', '192.0.2.1'] }
  for (const to of [
    'api.example.com:443',
    'API.example.com.:80',
    'a.b.example.org:443',
    '192.0.2.1:443',
    '3221225985:443',
  ])
    assert.ok(isAllowed(policy, to), to)
  for (const to of [
    'example.com:443',
    'api.example.com.evil:443',
    'xapi.example.com:443',
    'example.org:443',
    'a.example.org:80',
    '192.0.2.2:443',
    '93.184.216.34:443',
  ])
    assert.ok(!isAllowed(policy, to), to)
})

test('a denial counts more than an entry that allows, and mode none allows nothing', () => {
  const deny = ['*.example.com']
  assert.ok(!isAllowed({ mode: 'listed', allow: ['a.example.com'], deny }, 'a.example.com:443'))
  assert.ok(!isAllowed({ mode: 'open', deny }, 'a.example.com:443'))
  assert.ok(isAllowed({ mode: 'open', deny }, 'example.com:443'))
  assert.ok(!isAllowed({ mode: 'none', allow: ['a.example.com'] }, 'a.example.com:443'))
})
