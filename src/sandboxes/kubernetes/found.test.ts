import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { V1Pod } from '@kubernetes/client-node'
import { specOf } from '../../../test/integration/sandboxes/subject.ts'
import { endOf, toSandbox } from './found.ts'
import { recordOf } from './objects.ts'
import { AGENT, type PodOptions, podOf } from './pod-spec.ts'

const options: PodOptions = {
  image: 'engine',
  template: { serviceAccountName: 'default' },
  requestPercent: 25,
  egressUrl: 'http://10.0.0.1:3128',
  openNetwork: false,
  guardSeconds: 1,
}
const spec = specOf('x0000001')
const proxy = { labels: {}, namespace: 'berth', networks: [] }

/** A pod whose agent container ended this way. */
function ended(terminated: { exitCode: number; reason: string }) {
  const made = recordOf(spec, 'berth', options, proxy)
  const record = { ...made, metadata: { ...made.metadata, uid: '1' } }
  const pod: V1Pod = {
    ...podOf(spec, options),
    metadata: { labels: record.metadata.labels ?? {}, ownerReferences: [{ uid: '1' } as never] },
    status: {
      phase: 'Failed',
      containerStatuses: [{ name: AGENT, state: { terminated } } as never],
    },
  }
  return { record, pod }
}

test('a pod killed for memory reports its limit [report: out of memory]', () => {
  const { record, pod } = ended({ exitCode: 137, reason: 'OOMKilled' })
  const sandbox = toSandbox(record, pod)
  assert.deepEqual([sandbox.state, sandbox.exitCode, sandbox.oomKilled], ['exited', 137, true])
  const { code, message } = endOf(pod)
  assert.equal(code, 'out_of_memory')
  assert.match(message, /during startup, the agent's limit is 256 MiB$/)
})

test('a pod killed for another reason does not blame memory [report: out of memory]', () => {
  const { record, pod } = ended({ exitCode: 137, reason: 'Error' })
  assert.equal(toSandbox(record, pod).oomKilled, false)
  assert.equal(endOf(pod).code, 'internal')
})
