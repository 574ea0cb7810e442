import assert from 'node:assert/strict'
import { test } from 'node:test'
import { parseDestination } from '../destination.ts'
import type { EgressPolicy } from './protocol.ts'
import { hasLimits, parseHost, parseRule, refusalOf, secretsFor } from './rules.ts'

const isAllowed = (
  policy: { mode: 'open' | 'listed' | 'none'; allow?: string[]; deny?: string[] },
  to: string,
) =>
  refusalOf(
    { agentId: 'x', allow: [], deny: [], secrets: [], ...policy },
    parseDestination(to) ?? assert.fail(to),
  ) === undefined

test('rules are hosts, with or without a port', () => {
  assert.deepEqual(parseHost('API.Example.com'), { host: 'api.example.com' })
  assert.deepEqual(parseHost('*.example.com:443'), { host: '*.example.com', port: 443 })
  assert.deepEqual(parseHost('example.com.'), { host: 'example.com' })
  assert.deepEqual(parseHost('[2001:DB8::1]:80'), { host: '2001:db8::1', port: 80 })
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
    assert.equal(parseHost(text), undefined, text)
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

test('rules with methods and paths limit only hosts that no other rule allows', () => {
  const policy: EgressPolicy = {
    ...{ agentId: 'x', mode: 'listed', secrets: [] },
    allow: [
      { host: 'api.example.com', methods: ['GET', 'HEAD'] },
      { host: 'api.example.com', methods: ['POST'], paths: ['/v1/*', '/caf%C3%A9'] },
      { host: '*.example.org', paths: ['/only'] },
      'www.example.org',
    ],
    deny: [
      { host: 'www.example.org:443', methods: ['DELETE'] },
      { host: 'api.example.com', paths: ['/v1/admin*'] },
    ],
  }
  const of = (to: string) => parseDestination(to) ?? assert.fail(to)
  const why = (to: string, method?: string, target = '/') =>
    refusalOf(policy, of(to), method ? { method, target } : undefined)
  assert.equal(why('api.example.com:443'), undefined)
  for (const [to, method, target] of [
    ['api.example.com:443', 'GET', '/x?y=../z'],
    ['api.example.com.:443', 'POST', '/v1/'],
    ['api.example.com:443', 'POST', '/v1/x'],
    ['api.example.com:443', 'POST', '/caf%c3%a9'],
    ['a.example.org:443', 'PUT', '/only'],
    ['www.example.org:443', 'PUT', '/any'],
    ['www.example.org:80', 'DELETE', '/any'],
  ] as const)
    assert.equal(why(to, method, target), undefined, `${method} ${to}${target}`)
  for (const [to, method, target, expected] of [
    ['api.example.com:443', 'POST', '/v2/x', /does not list POST \/v2\/x on api\.example\.com$/],
    ['api.example.com:443', 'POST', '/v1', /does not list/],
    ['api.example.com:443', 'DELETE', '/v1/x', /does not list/],
    ['api.example.com:443', 'get', '/', /does not list/],
    ['api.example.com:443', 'GET', '/v1/%61dmin/x', /denies GET \/v1\/admin\/x on/],
    ['api.example.com:443', 'GET', '/v1/..%2fx', /several ways$/],
    ['api.example.com:443', 'GET', '//v1/admin', /several ways$/],
    ['a.example.org:443', 'GET', '/only/x', /does not list/],
    ['www.example.org:443', 'DELETE', '/any', /denies DELETE/],
    ['www.example.net:443', 'GET', '/', /does not list www\.example\.net$/],
  ] as const)
    assert.match(why(to, method, target) ?? '', expected, `${method} ${to}${target}`)
  const limited = [
    'api.example.com:443',
    'a.example.org:80',
    'www.example.org:443',
    'www.example.org:80',
    'x.example:1',
  ]
  assert.deepEqual(
    limited.map((to) => hasLimits(policy, of(to))),
    [true, true, true, false, false],
  )
  const open = { ...policy, mode: 'open' as const }
  assert.deepEqual(
    limited.map((to) => hasLimits(open, of(to))),
    [true, false, true, false, false],
  )
})

test('methods and paths need a name, and paths begin with a slash', () => {
  for (const rule of [
    { host: '192.0.2.1', methods: ['GET'] },
    { host: '[2001:db8::1]:443', paths: ['/'] },
    { host: 'a.example', paths: ['v1'] },
    { host: 'a.example', paths: ['/a/*/b'] },
    { host: 'a.example', paths: ['/a/../b'] },
    { host: 'a.example', paths: ['/a%2fb'] },
    { host: 'a/example', paths: ['/'] },
  ])
    assert.equal(parseRule(rule), undefined, JSON.stringify(rule))
})

test('a secret is for its hosts on port 443, and no look-alike', () => {
  const secret = { placeholder: 'p', value: 'v', via: { as: 'bearer' as const } }
  const secrets = [{ ...secret, hosts: ['api.example.com', '*.example.org', '*.amazonaws.com'] }]
  const policy: EgressPolicy = { agentId: 'x', mode: 'open', allow: [], deny: [], secrets }
  const has = (to: string) => secretsFor(policy, parseDestination(to) ?? assert.fail(to)).length === 1
  for (const to of [
    'api.example.com:443',
    'API.example.com.:443',
    'a.b.example.org:443',
    'sts.amazonaws.com:443',
  ])
    assert.ok(has(to), to)
  for (const to of [
    'api.example.com:8443',
    'api.example.com:80',
    'api.example.com.evil:443',
    'x.api.example.com:443',
    'xapi.example.com:443',
    'example.org:443',
    'xexample.org:443',
    'shop.s3.amazonaws.com:443',
    's3.amazonaws.com:443',
    '192.0.2.1:443',
    '[2001:db8::1]:443',
  ])
    assert.ok(!has(to), to)
})
