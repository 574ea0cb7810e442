import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Ending } from '../../src/operations/lease.ts'
import type { Run } from '../../src/operations/runner.ts'
import { atMost } from './at-most.ts'
import type { AgentWorkerServices } from './services.ts'

test('runs beyond the bound wait in line, whichever handler is theirs, and go on after a fault', async () => {
  const endings: Ending[] = []
  const run = {
    operation: { attempts: 3 },
    end: async (_: unknown, ending: Ending) => void endings.push(ending),
  } as unknown as Run
  const bound = atMost(2, {} as AgentWorkerServices)
  const { promise, reject } = Promise.withResolvers<void>()
  let begun = 0
  const handle = () => {
    begun++
    return promise
  }
  const [one, other] = [bound({ handle }), bound({ handle })]
  const first = [one.handle(run), other.handle(run)]
  await one.handle(run)
  assert.equal(begun, 2)
  const [ending] = endings
  assert.ok(ending?.state === 'queued' && ending.code === 'busy' && ending.delayMs >= 1000)
  reject(new Error('a fault'))
  await Promise.allSettled(first)
  await assert.rejects(other.handle(run), /a fault/)
  assert.equal(begun, 3)
  assert.equal(endings.length, 1)
})
