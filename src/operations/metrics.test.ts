import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Registry } from 'prom-client'
import { OperationMetrics } from './metrics.ts'

test('the failure counter exists before the first failure, so that its increase is visible', async () => {
  const registry = new Registry()
  new OperationMetrics(registry)
  assert.match(
    await registry.metrics(),
    /^berth_operation_attempts_total\{kind="pin.add",state="failed"\} 0$/m,
  )
})

test('a provision is counted with its duration once it has succeeded', async () => {
  const registry = new Registry()
  const metrics = new OperationMetrics(registry)
  metrics.ended('agent.provision', 'queued', 4)
  metrics.ended('agent.provision', 'failed', 8)
  metrics.ended('agent.provision', 'succeeded', 12)
  metrics.ended('pin.add', 'succeeded', 100)
  const text = await registry.metrics()
  assert.match(text, /^berth_provision_seconds_sum 12$/m)
  assert.match(text, /^berth_provision_seconds_bucket\{le="20"\} 1$/m)
  assert.match(text, /^berth_provision_seconds_count 1$/m)
  for (const [kind, state] of [
    ['agent.provision', 'queued'],
    ['agent.provision', 'failed'],
    ['pin.add', 'succeeded'],
  ])
    assert.match(text, new RegExp(`berth_operation_attempts_total\\{kind="${kind}",state="${state}"\\} 1`))
})
