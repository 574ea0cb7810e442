import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { createPool } from '../../../src/db/pool.ts'
import { importCar } from '../../../src/files/uploads/import.ts'
import { createLogger } from '../../../src/log.ts'
import { createEmbeddedStorage } from '../../../src/storage/embedded.ts'

test('so many CARs at a time are imported, and the next ones are when they have ended', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'berth-cars-'))
  const storage = createEmbeddedStorage({ dir, network: 'public', offline: true })
  await storage.start()
  // Never connected to: nothing is pinned here that would have to be released.
  const keepPool = createPool('postgres://127.0.0.1:1/none', 1, createLogger('test', 'silent'))
  const services = { keepPool, storages: { public: storage, private: storage } }
  const ending = new AbortController()
  const begin = (bytes: AsyncIterable<Uint8Array>) =>
    importCar({ services, network: 'public', signal: ending.signal }, bytes)
  try {
    const slow = Array.from({ length: 16 }, () => begin(silence(ending.signal)))
    await assert.rejects(begin(nothing()), { status: 503, code: 'busy' })
    ending.abort()
    for (const { status } of await Promise.allSettled(slow)) assert.equal(status, 'rejected')
    const next = importCar({ services, network: 'public', signal: new AbortController().signal }, nothing())
    await assert.rejects(next, { status: 400 })
  } finally {
    await storage.stop()
    await keepPool.end()
    await rm(dir, { recursive: true, force: true })
  }
})

/** A client that sends nothing until it goes. */
async function* silence(signal: AbortSignal): AsyncGenerator<Uint8Array> {
  await new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason)))
}

async function* nothing(): AsyncGenerator<Uint8Array> {}
