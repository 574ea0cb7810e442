import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { onDemand } from '../test/support/clock.ts'
import { EventStreamPass } from './gateway-answer.ts'
import { NO_MODEL } from './protocol.ts'

/** A forwarded stream, and its output. */
function pass(explain = async (message: string) => message) {
  const stream = new EventStreamPass(explain)
  let passed = ''
  stream.setEncoding('utf8').on('data', (text) => {
    passed += text
  })
  return {
    async write(text: string) {
      stream.write(text)
      await turn()
    },
    async end() {
      const ended = new Promise((resolve) => stream.once('end', resolve))
      stream.end()
      await ended
    },
    passed: () => passed,
  }
}

test('a silent event stream gets comments between its events [report: idle streams]', async (t) => {
  const wait = onDemand(t, 15_000)
  const stream = pass()
  await stream.write('data: 1\n\n')
  wait()
  await stream.write('data: ')
  wait()
  await stream.write('2\n\n')
  wait()
  await stream.end()
  assert.equal(stream.passed(), 'data: 1\n\n: keep-alive\n\ndata: 2\n\n: keep-alive\n\n')
})

test('bytes without the end of an event pass unchanged', async () => {
  const stream = pass()
  const large = 'x'.repeat(1_500_000)
  await stream.write(large)
  await stream.write('the end')
  await stream.end()
  assert.equal(stream.passed(), `${large}the end`)
})

test('an error in an event stream says what is missing [report: no model]', async () => {
  const stream = pass(async () => NO_MODEL)
  await stream.write('data: {"id":1}\n\ndata: {"error":{"message":"No key","type":"t"}}\n\ndata: [DONE]\n\n')
  await stream.end()
  const [before, event = '', after] = stream.passed().split('\n\n')
  assert.deepEqual([before, after], ['data: {"id":1}', 'data: [DONE]'])
  assert.deepEqual(JSON.parse(event.slice(6)), {
    error: { message: NO_MODEL, type: 'invalid_request_error', code: 'no_model' },
  })
})
