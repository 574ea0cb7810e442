import assert from 'node:assert/strict'
import { once } from 'node:events'
import { it } from 'node:test'
import { createLogger } from '../log.ts'
import { Passes, startLoop } from './loop.ts'

it('a loop can rest longer after a long run', async () => {
  const times: number[] = []
  const ended = new EventTarget()
  const work = async () => {
    const began = performance.now()
    while (performance.now() - began < 10);
    times.push(began, performance.now())
    if (times.length > 2) ended.dispatchEvent(new Event('twice'))
  }
  const loop = startLoop('test', 1, createLogger('test', 'silent'), work, { rest: 9 })
  await once(ended, 'twice')
  await loop.stop()
  const [began = 0, done = 0, next = 0] = times
  // A timer may be a millisecond early.
  assert.ok(next - done >= 9 * (done - began) - 2, `${next - done} ms behind ${done - began} ms`)
})

it('a loop does not rest longer after a failed run', async () => {
  const failed = new EventTarget()
  let runs = 0
  const work = async () => {
    const began = performance.now()
    while (performance.now() - began < 10);
    if (++runs === 2) failed.dispatchEvent(new Event('twice'))
    throw new Error('failed')
  }
  const twice = once(failed, 'twice')
  const loop = startLoop('test', 1, createLogger('test', 'silent'), work, { rest: 1_000_000 })
  await twice
  await loop.stop()
})

it('passes run one at a time, once more for all wakes during a run, and not after the stop', async () => {
  let runs = 0
  let free = Promise.withResolvers<void>()
  const passes = new Passes(
    () => {
      runs++
      return free.promise
    },
    () => 1_000_000,
  )
  passes.wake()
  passes.wake()
  passes.wake()
  assert.equal(runs, 1)
  const { resolve } = free
  free = Promise.withResolvers()
  resolve()
  while (runs < 2) await new Promise(setImmediate)
  const stopped = passes.stop()
  passes.wake()
  free.resolve()
  await stopped
  assert.equal(runs, 2)
})

it('a pass runs by itself after its rest', async () => {
  const twice = Promise.withResolvers<void>()
  let runs = 0
  const passes = new Passes(
    async () => {
      if (++runs === 2) twice.resolve()
    },
    () => 1,
  )
  passes.wake()
  await twice.promise
  await passes.stop()
})
