import assert from 'node:assert/strict'
import { test } from 'node:test'
import { passAtOnce } from '../test/support/clock.ts'
import { until } from '../test/support/processes.ts'
import { UsageWatch } from './usage.ts'

test("an agent's processor usage is measured correctly while the clock is set back", async (t) => {
  let clock = Date.now()
  t.mock.method(Date, 'now', () => (clock -= 3_600_000))
  passAtOnce(t, 15_000)
  const usage = new UsageWatch({ status: { usedBytes: 1, limitBytes: 2, hardLimit: false } })
  usage.start()
  const used = await until('something was used', async () => {
    for (const start = performance.now(); performance.now() - start < 50; );
    return usage.answer.samples.find(({ cpus }) => cpus !== 0)
  })
  usage.stop()
  assert.ok(used.cpus > 0, `${used.cpus}`)
})
