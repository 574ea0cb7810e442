import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { Logger } from './log.ts'
import { createLogger } from './log.ts'

describe('the log', () => {
  const lines: string[] = []
  const log: Logger = createLogger('test', 'debug', { write: (line) => void lines.push(line) })

  it('says of an error what it is and where it came from, and not what its client did', () => {
    const cause = Object.assign(new Error('refused'), { args: ['hunter2'] })
    const error = Object.assign(new TypeError('WRONGPASS', { cause }), {
      code: 'E_TEST',
      command: { name: 'auth', args: ['default', 'hunter2'] },
    })
    log.error({ err: error }, 'redis connection')
    log.error(error)
    for (const line of lines.splice(0)) {
      assert.doesNotMatch(line, /hunter2/)
      const { err } = JSON.parse(line)
      assert.deepEqual(err, {
        type: 'TypeError',
        message: 'WRONGPASS',
        stack: error.stack,
        code: 'E_TEST',
        cause: 'refused',
      })
    }
  })
})
