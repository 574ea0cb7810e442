import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Agent } from '../../src/agents/agent.ts'
import { describeShortage } from '../../src/lib/disk.ts'
import type { Run } from '../../src/operations/handler.ts'
import { StorageError } from '../../src/storage/port.ts'
import { explainUnsaved } from './save.ts'

test('a snapshot that a full disk refuses fails as the contract has it, and its detail names the disk', () => {
  const message = describeShortage('blocks')
  const failure = explainUnsaved(
    new StorageError('no_space', message),
    {} as Run,
    { status: 'running' } as Agent,
  )
  // `snapshot-routes.ts` does not know this code, so the status is 500, and the kind says `Sync failed`.
  assert.equal(failure?.code, 'no_space')
  assert.deepEqual(failure?.result, { detail: message })
})
