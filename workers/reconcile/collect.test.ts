import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Pool } from '../../src/db/pool.ts'
import { createLogger } from '../../src/log.ts'
import { collectInTurn } from './collect.ts'

const GIB = 1024 ** 3
const { signal } = new AbortController()

test('garbage is collected when due, and earlier while the disk is short of space', async () => {
  let free = 50 * GIB
  let collected = 0
  const gc = async () => {
    collected++
    return { removedBlocks: 0, removedBytes: 0, keptBlocks: 0 }
  }
  const pool = { query: async () => ({ rows: [] }) } as unknown as Pool
  const services = { pool, intervalMs: 3_600_000, log: createLogger('test', 'silent') }
  const place = { folder: '/', reserveBytes: undefined }
  const read = async () => ({ free, size: 100 * GIB })
  const turn = collectInTurn(services, { gc, network: 'public' }, place, read)
  await turn(signal)
  await turn(signal)
  assert.equal(collected, 1)
  free = GIB
  await turn(signal)
  assert.equal(collected, 2)
})
