import assert from 'node:assert/strict'
import { once } from 'node:events'
import { it } from 'node:test'
import { createLogger } from '../log.ts'
import { startLoop } from './loop.ts'

it('a loop rests longer behind a run that took long, where it is told to', async () => {
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

it('a loop that is told to rest longer rests no longer behind a run that failed', async () => {
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
