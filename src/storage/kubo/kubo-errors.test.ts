import assert from 'node:assert/strict'
import { test } from 'node:test'
import { StorageError } from '../port.ts'
import { asStorageError, KuboError } from './kubo-errors.ts'

const codeOf = (message: string) => {
  const error = asStorageError(new KuboError(message))
  assert.ok(error instanceof StorageError)
  return error.code
}

test('quoted block content does not affect the meaning of a Kubo error', () => {
  assert.equal(codeOf('could not find it'), 'not_found')
  for (const quoted of [
    '"could not find"',
    '"a \\" could not find"',
    '"could not find',
    '"a\n\\\n could not find"',
  ])
    assert.equal(codeOf(`some error: ${quoted}`), 'unavailable', quoted)
  assert.equal(codeOf('pin: unexpected "no space left on device" here'), 'invalid_object')
  assert.equal(codeOf('"a key" and then: no space left on device'), 'no_space')
})

test('the meaning of an error with many quotes is found quickly', () => {
  const began = performance.now()
  assert.equal(codeOf(`some error: "${'\\"'.repeat(500_000)}`), 'unavailable')
  assert.ok(performance.now() - began < 2000)
})
