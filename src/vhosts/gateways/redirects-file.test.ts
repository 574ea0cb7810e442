import assert from 'node:assert/strict'
import { test } from 'node:test'
import { followRules, parseRules } from './redirects-file.ts'

const follow = (text: string, path: string, query = '') =>
  followRules(parseRules(text), path.split('/').filter(Boolean), new URLSearchParams(query))

test('the first matching rule applies, and comments and blank lines are ignored', () => {
  const rules = '# to a\r\n\r\n  /x  /a \r\n/x /b\n/* /index.html 200'
  assert.deepEqual(follow(rules, '/x'), { status: 301, location: '/a' })
  assert.deepEqual(follow(rules, '/y/z'), { status: 200, names: ['index.html'] })
  assert.deepEqual(follow(rules, '/'), { status: 200, names: ['index.html'] })
  assert.equal(follow('/x /a', '/x/y'), null)
})

test('placeholders and the splat of a rule are filled in, encoded', () => {
  const rules = '/posts/:year/:title /:title/:year/:title 302\n/old/* /new/:splat?from=:splat 308'
  assert.deepEqual(follow(rules, '/posts/2026/a b'), { status: 302, location: '/a%20b/2026/a%20b' })
  assert.deepEqual(follow(rules, '/old/a/b?'), { status: 308, location: '/new/a/b%3F?from=a/b%3F' })
  assert.deepEqual(follow(rules, '/old'), { status: 308, location: '/new/?from=' })
  assert.deepEqual(follow('/:a /files/:a/page.html 404', '/x'), {
    status: 404,
    names: ['files', 'x', 'page.html'],
  })
})

test('the query of a request overrides that of a rule', () => {
  const { location } = follow('/x /y?a=1&b=2#end', '/x', 'b=3&b=4&c=5') as { location: string }
  assert.equal(location, '/y?a=1&b=3&b=4&c=5#end')
  assert.deepEqual(follow('/x https://example.net:8080/:splat', '/x', 'a=1'), {
    status: 301,
    location: 'https://example.net:8080/:splat?a=1',
  })
})

const FAULTS: [string, RegExp][] = [
  ['/a', /line 1: must be a path/],
  ['# x\n/a /b 301!', /line 2: status 301! is not supported/],
  ['/a /b 500', /status 500 is not supported/],
  ['/a /b 301 more', /must be a path/],
  ['a /b', /must begin with a slash/],
  ['/a/*/b /b', /an asterisk must be the whole last segment/],
  ['/:a/:a /b', /a placeholder comes twice/],
  ['/a ftp://host/', /must lead to a path or an address/],
  ['/a https://example.net/ 200', /status 200 must lead to a path/],
]
for (const [text, message] of FAULTS) {
  test(`the rule ${JSON.stringify(text)} cannot be read`, () => {
    assert.throws(
      () => parseRules(text),
      (error: Error & { status?: number }) => {
        assert.equal(error.status, 500)
        assert.match(error.message, /^could not parse _redirects: /)
        assert.match(error.message, message)
        return true
      },
    )
  })
}

test('a rule that turns a short path into a long URL is rejected', () => {
  const path = '/a'.repeat(5000)
  assert.equal((follow('/* /:splat/:splat 302', path) as { location: string }).location.length, 20_000)
  assert.throws(() => follow(`/* ${'/:splat'.repeat(9000)} 302`, path), /more than 32768 characters/)
  assert.throws(() => follow(`/* ${'/:splat'.repeat(9000)} 200`, path), /more than 32768 characters/)
})

test('the longest rules file is parsed and applied quickly', () => {
  const text = Array.from({ length: 8000 }, (_, i) => `/${i} /`).join('\n')
  const began = process.cpuUsage()
  assert.equal(follow(text, '/a/b'), null)
  const { user, system } = process.cpuUsage(began)
  assert.ok(user + system < 500_000)
})
