import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Run } from '../../src/operations/handler.ts'
import { withSlowSteps } from './spare.ts'

test('a takeover shows the steps that take long, and its last one', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const shown: unknown[] = []
  const report: Run['report'] = async (step, progress) => void shown.push([step, progress])
  {
    await using quiet = withSlowSteps({ report } as Run)
    await quiet.report('workspace')
    await quiet.report('skills')
    t.mock.timers.tick(300)
    await quiet.report('gateway')
    t.mock.timers.tick(299)
    await quiet.report('scripts', { build: 'pending' })
  }
  assert.deepEqual(shown, [
    ['skills', undefined],
    ['scripts', { build: 'pending' }],
  ])
})
