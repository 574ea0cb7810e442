import assert from 'node:assert/strict'
import { test } from 'node:test'
import { withoutHopByHop } from './forward.ts'

test('hop-by-hop headers, and those that Connection names, are not forwarded', () => {
  const headers = [
    'Connection',
    'close, X-Secret',
    'x-secret',
    '1',
    'TE',
    'trailers',
    'Keep-Alive',
    'timeout=5',
  ]
  headers.push(
    'Proxy-Authorization',
    'Basic eDp5',
    'Transfer-Encoding',
    'chunked',
    'Proxy-Connection',
    'close',
  )
  assert.deepEqual(withoutHopByHop([...headers, 'Accept', '*/*']), ['Accept', '*/*'])
})

test('order, case and repeated headers are kept', () => {
  const headers = ['Set-Cookie', 'a=1', 'x-B', '2', 'Set-Cookie', 'c=3']
  assert.deepEqual(withoutHopByHop(headers), headers)
})

test('a body never loses its length', () => {
  assert.deepEqual(withoutHopByHop(['Connection', 'content-length', 'Content-Length', '5']), [
    'Content-Length',
    '5',
  ])
})
