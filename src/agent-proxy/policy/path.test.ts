import assert from 'node:assert/strict'
import { test } from 'node:test'
import { plainPath } from './path.ts'

test('a path is decoded, without its query', () => {
  for (const [target, path] of [
    ['/', '/'],
    ['/v1/files?path=../x', '/v1/files'],
    ['/%76%31/a%20b', '/v1/a b'],
    ['/caf%C3%A9', '/café'],
    ["/a.b/..c/...;v=1/(x),'y'!$&+=@:~_-*", "/a.b/..c/...;v=1/(x),'y'!$&+=@:~_-*"],
    ['*', '*'],
  ] as const)
    assert.equal(plainPath(target), path)
})

test('a path that servers may read differently has no reading', () => {
  for (const target of [
    '/v1/../admin',
    '/v1/./admin',
    '/..',
    '/v1/%2e%2e/admin',
    '/v1/.%2E/admin',
    '/v1/..%2fadmin',
    '/v1/..%5cadmin',
    '/v1/..\\admin',
    '/v1/..;/admin',
    '/v1/..;a=b/admin',
    '/v1/%252e%252e/admin',
    '/v1%252fadmin',
    '/v1/%00',
    '/v1/%0d%0a',
    '/v1/%',
    '/v1/%zz',
    '/v1/%c0%af',
    '/v1/%ff',
    '/v1/a b',
    '/v1/é',
    '/v1/#x',
  ])
    assert.equal(plainPath(target), undefined, target)
})

test('an encoded slash is for hosts without rules of paths, and hides no dots', () => {
  assert.equal(plainPath('/@scope%2Fname'), undefined)
  assert.equal(plainPath('/@scope%2Fname', true), '/@scope/name')
  for (const target of ['/v1/..%2fadmin', '/v1/%2e%2e%2Fadmin', '/v1/x%2f..'])
    assert.equal(plainPath(target, true), undefined, target)
})
