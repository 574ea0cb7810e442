import assert from 'node:assert/strict'
import { describe, it, mock } from 'node:test'
import { coalesce } from './coalesce.ts'

describe('a shared result', () => {
  it('a shared result is loaded once for concurrent callers, and cached for a while', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    let asked = 0
    const ask = coalesce(100, async () => ++asked)
    assert.deepEqual(await Promise.all([ask(), ask()]), [1, 1])
    mock.timers.tick(99)
    assert.equal(await ask(), 1)
    mock.timers.tick(1)
    assert.equal(await ask(), 2)
    mock.timers.reset()
  })

  it('a shared result may be a failure, which expires as well', async () => {
    mock.timers.enable({ apis: ['setTimeout'] })
    let asked = 0
    const ask = coalesce(100, async () => {
      if (++asked === 1) throw new Error('away')
      return asked
    })
    await assert.rejects(ask(), /away/)
    await assert.rejects(ask(), /away/)
    mock.timers.tick(100)
    assert.equal(await ask(), 2)
    mock.timers.reset()
  })
})
