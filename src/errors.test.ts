import assert from 'node:assert/strict'
import { test } from 'node:test'
import { ignoring, SandboxError } from './errors.ts'

test('only the named errors of a part are ignored', () => {
  assert.equal(ignoring('not_found')(new SandboxError('not_found', 'gone')), undefined)
  assert.throws(() => ignoring('not_found')(new SandboxError('no_room', 'full')), { code: 'no_room' })
  assert.throws(() => ignoring('ENOENT')(Object.assign(new Error('no file'), { code: 'ENOENT' })))
})
