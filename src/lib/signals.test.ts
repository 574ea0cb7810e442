import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { orAborted, withDeadline, within } from './signals.ts'

const late = () => new Error('late')
const until = (signal: AbortSignal) => delay(60_000, undefined, { signal })

test('a deadline ends work with the error of its caller', async () => {
  await assert.rejects(withDeadline({ ms: 1, late }, until), late())
  await assert.rejects(
    withDeadline({ ms: 1, late }, (signal) => orAborted(new Promise(() => {}), signal)),
    late(),
  )
})

test("the caller's signal ends work with its own reason", async () => {
  const caller = new AbortController()
  const work = withDeadline({ ms: 60_000, signal: caller.signal, late }, until)
  caller.abort(new Error('gone'))
  await assert.rejects(work, new Error('gone'))
  assert.equal(within(60_000, caller.signal).reason.message, 'gone')
  await assert.rejects(orAborted(new Promise(() => {}), caller.signal), new Error('gone'))
})

test('work in time keeps its result and its errors, and leaves no timer', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  let seen: AbortSignal | undefined
  const work = async (signal: AbortSignal) => {
    seen = signal
    return 'done'
  }
  assert.equal(await withDeadline({ ms: 1, late }, work), 'done')
  t.mock.timers.tick(10)
  assert.equal(seen?.aborted, false)
  const failing = withDeadline({ ms: 1, late }, () => Promise.reject(new Error('its own')))
  await assert.rejects(failing, new Error('its own'))
})

test('a signal with a deadline fires after it', async () => {
  const signal = within(1)
  await assert.rejects(until(signal))
  assert.equal(signal.reason.name, 'TimeoutError')
})
