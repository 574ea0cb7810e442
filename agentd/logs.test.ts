import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Log } from './logs.ts'

const messages = (log: Log, count = 1000) => log.lines(count).map(({ message }) => message)

test('the last lines are kept, oldest first', () => {
  const log = new Log()
  for (let i = 0; i < 2500; i++) log.info(`line ${i}`)
  assert.equal(messages(log).length, 1000)
  assert.deepEqual(messages(log, 2), ['line 2498', 'line 2499'])
  assert.equal(messages(log)[0], 'line 1500')
  assert.deepEqual(messages(log, 0), [])
})

test('hidden values stay out of the log: several, nested, and of several lines', () => {
  const log = new Log()
  log.hide([
    'secret-1',
    'secret-1-longer',
    'short',
    'a+b(c)[d]',
    '-----BEGIN KEY-----\nMIIEabc\n-----END KEY-----',
  ])
  log.info('secret-1-longer and secret-1, but short stays; a+b(c)[d]')
  log.info('MIIEabc')
  log.info('-----BEGIN KEY-----\nMIIEabc\n-----END KEY-----')
  assert.deepEqual(messages(log), [
    '[redacted] and [redacted], but short stays; [redacted]',
    '[redacted]',
    '[redacted]',
  ])
})

test('a value that would be halved by cutting a long message is hidden first', () => {
  const log = new Log()
  log.hide(['0123456789'])
  log.info(`${'x'.repeat(4090)}0123456789`)
  assert.doesNotMatch(messages(log)[0] ?? '', /0123/)
})
