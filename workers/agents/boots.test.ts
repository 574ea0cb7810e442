import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Boots } from './boots.ts'

test('boots wait for a place in their order, and one that is given up takes none', async () => {
  const boots = new Boots(1)
  const began: string[] = []
  const never = new AbortController().signal
  const start = (name: string, signal = never) => {
    const begun = Promise.withResolvers<void>()
    const end = Promise.withResolvers<void>()
    const ended = boots.run(signal, async () => {
      began.push(name)
      begun.resolve()
      await end.promise
    })
    return { begun: begun.promise, ended, end: end.resolve }
  }
  const first = start('first')
  assert.ok(!boots.isWaitedFor)
  const leaving = new AbortController()
  const second = start('second', leaving.signal)
  const third = start('third')
  assert.ok(boots.isWaitedFor)
  leaving.abort(new Error('left'))
  await assert.rejects(second.ended, /left/)
  first.end()
  await third.begun
  assert.deepEqual(began, ['first', 'third'])
  assert.ok(!boots.isWaitedFor)
  third.end()
  await third.ended
  const last = start('last')
  await last.begun
  last.end()
  await last.ended
})
