import assert from 'node:assert/strict'
import { test } from 'node:test'
import { loadConfig } from '../../src/config.ts'
import type { Sandbox } from '../../src/sandboxes/port.ts'
import { describeEnd, explainStart, SandboxEnded } from './failure.ts'

const limit = { BERTH_AGENT_LIMITS: { ...loadConfig({}).BERTH_AGENT_LIMITS, memoryMb: 2048 } }
const sandbox: Sandbox = {
  agentId: 'x0000001',
  state: 'exited',
  engineVersion: '2026.1.1',
  address: null,
  exitCode: 137,
  oomKilled: false,
  startedAt: null,
}
const fault = 'its container is paused'

for (const [what, changes, sentence] of [
  [
    'ran out of memory [report: out of memory]',
    { oomKilled: true },
    "out of memory: the kernel killed its container, the agent's limit is 2048 MiB",
  ],
  ['was killed', {}, "the agent's container ended: exit code 137"],
  ['was evicted', { cause: 'Evicted: full' }, "the agent's container ended: Evicted: full"],
  ['is paused [report: broken sandboxes]', { state: 'running', fault }, fault],
] as const)
  test(`a sandbox's end is explained if it ${what}`, () => {
    assert.equal(describeEnd({ ...sandbox, ...changes }, limit), sentence)
  })

test('outages do not count as ends of a sandbox [report: broken sandboxes]', () => {
  const attempt = (attempts: number, errorCount: number) =>
    explainStart(new SandboxEnded(sandbox, limit), { operation: { attempts, errorCount } } as never)?.code
  assert.equal(attempt(40, 3), 'outage')
  assert.equal(attempt(5, 4), 'sandbox_ended')
})
