import assert from 'node:assert/strict'
import { test } from 'node:test'
import { releasePassed } from './memory-at-rest.ts'

test('forwarded buffers are freed before the whole heap is collected', async () => {
  // Other tests in the same process use some.
  const before = process.memoryUsage().arrayBuffers
  let most = 0
  for (let i = 0; i < 4096; i++) {
    releasePassed(Buffer.alloc(65_536))
    if (i % 16 === 0) await new Promise((resolve) => setImmediate(resolve))
    most = Math.max(most, process.memoryUsage().arrayBuffers - before)
  }
  // V8 itself would wait for 64 MB.
  assert.ok(most < 50_000_000, `${most}`)
})
