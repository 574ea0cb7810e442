import assert from 'node:assert/strict'
import { it } from 'node:test'
import { backoffMs } from './handler.ts'

const near = (actual: number, expected: number) =>
  assert.ok(actual >= expected * 0.9 && actual <= expected * 1.1, `${actual} is not about ${expected}`)

it('the wait doubles with each attempt, up to the maximum', () => {
  const policy = { firstMs: 500, maxMs: 10_000 }
  near(backoffMs(policy, 1), 500)
  near(backoffMs(policy, 4), 4000)
  near(backoffMs(policy, 6), 10_000)
  near(backoffMs(policy, 5000), 10_000)
})

it('the wait grows by a given factor', () => {
  near(backoffMs({ firstMs: 1000, maxMs: 3_600_000, factor: 4 }, 3), 16_000)
})
