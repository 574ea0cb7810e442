import assert from 'node:assert/strict'
import { test } from 'node:test'
import { agentPaths, apiPath, realPath } from './paths.ts'

test("in a container, paths are the API's own", () => {
  const paths = agentPaths('/home/node', '/tmp')
  for (const path of ['/home/node', '/home/node/clawd/x', '/tmp/user-build.log', '/etc/passwd'])
    assert.deepEqual([realPath(paths, path), apiPath(paths, path)], [path, path])
})

test('paths outside a container are mapped both ways, and only if the name matches', () => {
  const paths = agentPaths('/srv/x/home', '/srv/x/tmp')
  const pairs = [
    ['/home/node', '/srv/x/home'],
    ['/home/node/clawd/x', '/srv/x/home/clawd/x'],
    ['/tmp/user-build.log', '/srv/x/tmp/user-build.log'],
    ['/etc/passwd', '/etc/passwd'],
  ] as const
  for (const [api, real] of pairs) assert.deepEqual([realPath(paths, api), apiPath(paths, real)], [real, api])
  assert.equal(realPath(paths, '/home/nodes/x'), '/home/nodes/x')
  assert.equal(apiPath(paths, '/srv/x/homes/x'), '/srv/x/homes/x')
})
