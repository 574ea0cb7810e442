import assert from 'node:assert/strict'
import { after, before, describe, test } from 'node:test'
import type { Storage } from '../../../src/storage/port.ts'
import { addCases } from './cases/add.ts'
import { buildCases } from './cases/build.ts'
import { carCases } from './cases/car.ts'
import type { Cases } from './cases/context.ts'
import { gcCases } from './cases/gc.ts'
import { pathCases } from './cases/paths.ts'
import { pinCases } from './cases/pin.ts'
import { readCases } from './cases/read.ts'
import { untrustedDagCases } from './cases/untrusted.ts'
import { startProvider } from './node-process.ts'

/** A driver under test. */
export interface Subject {
  storage: Storage
  close(): Promise<void>
}

/** The cases that every driver of the storage port has to pass. */
export function storageContract(
  name: string,
  open: () => Promise<Subject>,
  skip: string | false = false,
): void {
  describe(`storage contract: ${name}`, { skip }, () => {
    const { signal } = new AbortController()
    let subject: Subject
    let storage: Storage
    let provider: Awaited<ReturnType<typeof startProvider>>

    before(async () => {
      provider = await startProvider()
      subject = await open()
      storage = subject.storage
    })
    after(async () => {
      await subject?.close()
      await provider?.stop()
    })

    const cases: Cases = { storage: () => storage, provider: () => provider }
    addCases(cases)
    readCases(cases)
    pathCases(cases)
    carCases(cases)
    buildCases(cases)
    untrustedDagCases(cases)
    pinCases(cases)
    gcCases(cases)

    test('info says who and where the node is', async () => {
      const info = await storage.info({ signal })
      assert.equal(info.driver, storage.driver)
      for (const address of info.addresses) assert.match(address, /\/p2p\/[^/]+$/)
    })
  })
}
