import assert from 'node:assert/strict'
import { test } from 'node:test'
import { formatDestination, parseAbsoluteForm, parseDestination } from './destination.ts'

test('a host and port are normalised to one spelling', () => {
  const cases = {
    'Example.ORG:443': 'example.org:443',
    'a_b-c.example:1': 'a_b-c.example:1',
    '127.1:65535': '127.0.0.1:65535',
    '0x7f.0.0.1:80': '127.0.0.1:80',
    '2130706433:80': '127.0.0.1:80',
    '017700000001:80': '127.0.0.1:80',
    'Host.Docker.Internal:80': '127.0.0.1:80',
    '[0:0:0:0:0:0:0:1]:80': '[::1]:80',
    '[::ffff:127.0.0.1]:80': '[::ffff:7f00:1]:80',
    [`${'a.'.repeat(126)}a:80`]: `${'a.'.repeat(126)}a:80`,
  }
  for (const [text, expected] of Object.entries(cases)) {
    const read = parseDestination(text)
    assert.ok(read, text)
    assert.equal(formatDestination(read), expected)
  }
})

test('a malformed host or port is rejected', () => {
  const malformed = [
    '',
    ':80',
    'host',
    'host:',
    'host:0',
    'host:65536',
    'host:-1',
    'host:80x',
    'user@host:80',
    'user:pw@host:80',
    'host:80/path',
    'ho st:80',
    'ho%73t:80',
    'host\\@other:80',
    '[::1:80',
    '::1:80',
    '[fe80::1%eth0]:80',
    '[zz]:80',
    '256.256.256.256:80',
    'host:80\r\n',
    'хост:80',
    `${'a.'.repeat(127)}aa:80`,
  ]
  for (const text of malformed) assert.equal(parseDestination(text), undefined, JSON.stringify(text))
})

test('the path of an absolute-form target is kept verbatim', () => {
  const cases = {
    'http://h': '/',
    'http://h?a=1': '/?a=1',
    'HTTP://h:8080/a/../b//c?x=%2F&y': '/a/../b//c?x=%2F&y',
    'http://h/http://other/': '/http://other/',
  }
  for (const [target, path] of Object.entries(cases)) assert.equal(parseAbsoluteForm(target)?.path, path)
})

test('a target that is not in absolute form has no destination', () => {
  const targets = [
    '/',
    '*',
    'h:80',
    'https://h/',
    'ftp://h/',
    'http:///x',
    'http://u:p@h/',
    'http://h/#x',
    'http:/h/',
  ]
  for (const target of targets) assert.equal(parseAbsoluteForm(target), undefined, target)
})
