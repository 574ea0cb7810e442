import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createPool } from '../../../src/db/pool.ts'
import { importCar } from '../../../src/files/uploads/upload-import.ts'
import { Bounds } from '../../../src/lib/bounds.ts'
import { createLogger } from '../../../src/log.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'

test('CAR imports at a time are limited for a workspace and in total, until running ones end', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'berth-cars-'))
  const storage = createEmbeddedStorage({ dir, network: 'public', offline: true })
  await storage.start()
  // Never connected to, because nothing is pinned here that must be released.
  const keepPool = createPool('postgres://127.0.0.1:1/none', 1, createLogger('test', 'silent'))
  const services = { keepPool, storages: { public: storage, private: storage }, bounds: new Bounds() }
  const ending = new AbortController()
  const begin = (workspaceId: string, bytes: AsyncIterable<Uint8Array>) =>
    importCar({ services, workspaceId, network: 'public', signal: ending.signal }, bytes)
  const tooMany = (whose: string) => ({ status: 429, message: `Too many CAR imports at a time: ${whose}` })
  try {
    const slow = Array.from({ length: 8 }, () => begin('first', silence(ending.signal)))
    await assert.rejects(begin('first', nothing()), tooMany('8 of this workspace'))
    slow.push(...Array.from({ length: 4 }, () => begin('second', silence(ending.signal))))
    const kept = tooMany('12 of this server, which keeps the others for callers with few')
    await assert.rejects(begin('second', nothing()), kept)
    slow.push(...['a', 'b', 'c', 'd'].map((workspace) => begin(workspace, silence(ending.signal))))
    await assert.rejects(begin('third', nothing()), tooMany('16 of this server'))
    ending.abort()
    for (const { status } of await Promise.allSettled(slow)) assert.equal(status, 'rejected')
    const { signal } = new AbortController()
    const next = importCar({ services, workspaceId: 'first', network: 'public', signal }, nothing())
    await assert.rejects(next, { status: 400 })
  } finally {
    await storage.stop()
    await keepPool.end()
    await rm(dir, { recursive: true, force: true })
  }
})

/** A client that sends nothing until it leaves. */
async function* silence(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
